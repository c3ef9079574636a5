"""CUDA kernels of the benchmark are there as PTX, and are judged by what was measured and predicted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.cuda_kernels.cases import as_kernel, compiled_launches
from benchmarks.cuda_kernels.judging import as_text, rows
from benchmarks.cuda_kernels.opencl_as_cuda import as_cuda
from benchmarks.cuda_kernels.twins import TWINS
from perfmodel.kernels.arguments import Struct
from perfmodel.vocabulary.named_features import feature


def test_compiled_kernels_are_launched_as_those_in_opencl() -> None:
    launches = compiled_launches()
    assert len(launches) >= 150
    for name, twin in TWINS.items():
        kernel, other = as_kernel(name, launches[f"twin {name}"]), twin.opencl()
        assert kernel.launch().arrays() == other.launch().arrays()
        assert kernel.sizes == other.sizes
        assert (kernel.launch().global_size, kernel.launch().local_size) == (
            other.launch().global_size,
            other.launch().local_size,
        )
    copy = as_kernel("copy", launches["twin copy"])
    assert feature("f_mem_access_global_float32_load").eval(copy) == 10**7


def test_structs_are_passed_as_the_source_lays_them_out() -> None:
    arguments = [argument for launch in compiled_launches().values() for argument in launch.arguments]
    structs = [argument for argument in arguments if isinstance(argument, Struct)]
    assert structs
    assert all(len(each.contents) == each.n_bytes > max(each.offsets) for each in structs)


def test_opencl_c_becomes_cuda_at_these_places() -> None:
    source = """__kernel __attribute__((reqd_work_group_size(8, 4, 1))) void one(__global float *x, __local float *p) {
  __local float part[8];
  barrier(CLK_LOCAL_MEM_FENCE);
  float2 v = (float2)(x[0], T);
}
__kernel void two(__global float *x) { x[0] = 1; }"""
    text = as_cuda(source, "one", ["-DT=2", "-cl-fast-relaxed-math"])
    assert text.rstrip().endswith(
        "#define T 2\n__kernel __launch_bounds__(8* 4* 1) void one(__global float *x,  float *p) {\n"
        "  __shared__ float part[8];\n  barrier(CLK_LOCAL_MEM_FENCE);\n  float2 v = make_float2(x[0], T);\n}"
    )


def test_judging(tmp_path: Path) -> None:
    def measured(name: str, cuda: float, opencl: float, why: str = "") -> str:
        times = {"CUDA": {"seconds": cuda, "flags": []}, "OpenCL": {"seconds": opencl, "flags": []}}
        return json.dumps({"name": name, "origin": "twin", "why": why, "times": times}) + "\n"

    def predicted(name: str, cuda: float, opencl: float) -> str:
        return json.dumps({"name": name, "seconds": {"CUDA": cuda, "OpenCL": opencl}, "why": {}}) + "\n"

    (tmp_path / "measured.jsonl").write_text(
        measured("a", 1e-4, 1e-4)
        + measured("b", 1e-3, 2e-3)
        + measured("short", 1e-6, 1e-6)
        + measured("wrong", 1e-4, 1e-4, "results differ")
        + measured("unknown", 1e-4, 1e-4)
    )
    (tmp_path / "predicted.jsonl").write_text(predicted("a", 1.1e-4, 1e-4) + predicted("b", 1.4e-3, 1e-3))
    found, left = rows(tmp_path)
    assert [(row.name, round(row.ratio("CUDA"), 3), round(row.ratio("OpenCL"), 3)) for row in found] == [
        ("a", 1.1, 1.0),
        ("b", 1.4, 0.5),
    ]
    assert len(left) == 3
    text = as_text(found, left)
    assert "wrong: results differ" in text
    (line,) = (line for line in text.splitlines() if line.startswith("all, CUDA"))
    assert line.split()[2:] == ["2", "20.0%", "25.0%", "40.0%", "50.0%"]
    assert "1 take the same time by way of both runtimes within 5 %" in text


@pytest.mark.parametrize("name", ["two", "three"])
def test_other_kernels_of_a_source_are_left_out(name: str) -> None:
    source = "__kernel void one(void) { if (1) { } }\nkernel void two(void) { }\n__kernel\nvoid three(void) { }\n"
    text = as_cuda(source, name)
    assert f"void {name}(" in text
    assert sum(f"void {other}(" in text for other in ("one", "two", "three")) == 1
