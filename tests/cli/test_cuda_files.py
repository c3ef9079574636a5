"""Files of CUDA C++ and of PTX go wherever those of OpenCL C go on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from perfmodel.cli.command_line import main

pytest.importorskip("nvidia.cuda_nvrtc", reason="the compiler of the extra nvidia is not installed")

SOURCE = """
extern "C" __global__ void saxpy(int n, float a, const float *x, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
struct Rows { const float *x; double *y; int n; float by; };
__global__ void rows(Rows p) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < p.n) p.y[i] = p.by * p.x[i];
}
template <typename T, int N> __global__ void scale(T *x) { x[blockIdx.x * blockDim.x + threadIdx.x] *= N; }
"""
LAUNCH = ["--grid", "(n+255)/256", "--block", "256"]
GRID = ["--grid", "1", "--block", "32"]
DATA = ["--arg", "x=n", "--arg", "y=n", "--arg", "a=2"]


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "some.cu"
    path.write_text(SOURCE)
    return str(path)


def said(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_predict(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["predict", f"{file}:saxpy", *LAUNCH, *DATA, "--device", "h200", "--at", "n=1000,16777216"]
    small, large = said(capsys, *words)["predictions"]
    assert (small["kernel"], large["sizes"]) == ("saxpy", {"n": 16777216})
    assert large["predicted_s"] > 3 * 4 * 16777216 / 4.8e12  # no faster than memory
    assert small["predicted_s"] < large["predicted_s"] / 5


def test_explain_and_rank(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    kernels = [f"{file}:saxpy", *LAUNCH, *DATA, "--device", "h200"]
    (explained,) = said(capsys, "explain", *kernels, "--arg", "n=16777216")["explanations"]
    assert explained["kernel"] == "saxpy"
    first, second = said(capsys, "rank", *kernels, "--at", "n=16777216,65536")["ranking"]
    assert (first["sizes"], second["sizes"]) == ({"n": 65536}, {"n": 16777216})


def test_count(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = said(capsys, "count", f"{file}:saxpy", *LAUNCH, *DATA, "--at", "n=1000")
    (counted,) = found["kernels"]
    (operation,) = counted["operations"]
    assert (operation["kind"], operation["count"]["workitem"]["at"]) == ("madd", [1000])


def test_template_with_types(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = [f"{file}:scale<double, 3>", "--grid", "4", "--block", "64", "--arg", "x=zeros:float64:256"]
    found = said(capsys, "emulate", *words)
    assert found["kernel"] == "scale<double, 3>"
    assert {(each["use"], each["kind"], each["dtype"]) for each in found["operations"]} >= {
        ("values", "mul", "float64")
    }


@pytest.mark.parametrize(
    "arguments",
    [
        ["p_0=1000", "p_2=1000", "p_4=1000", "p_5=0"],
        ["p_0=random:float32:p_4", "p_2=zeros:float64:p_4", "p_4=1000", "p_5=0x40000000"],
        ['p=["random:float32:1000", "zeros:float64:1000", 1000, {"float32": 2}]'],
    ],
)
def test_pointers_in_structs(file: str, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    words = [f"{file}:rows", "--grid", "4", "--block", "256"]
    words += [word for each in arguments for word in ("--arg", each)]
    (counted,) = said(capsys, "count", *words)["kernels"]
    moved = {(each["variable"], each["direction"], each["dtype"]) for each in counted["accesses"]}
    assert moved == {("p_0", "load", "float32"), ("p_2", "store", "float64")}
    assert said(capsys, "emulate", *words)["kernel"] == "rows"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["saxpy", "--block", "64"], "needs --grid"),
        (["saxpy", "--grid", "4"], "needs --block; write blocks and threads by axis, as --block 256"),
        (["saxpy"], "needs --grid and --block; write blocks and threads by axis, as --grid '(n+255)/256' --block 256"),
        (["saxpi", *LAUNCH], "saxpi"),
        (
            ["saxpy", *LAUNCH],
            "needs the number of elements of its arguments 'x', 'y'; give them by --arg x=… --arg y=…",
        ),
        (["saxpy", *LAUNCH, *DATA, "--arg", "b=3"], "has no such argument"),
        (["saxpy", *LAUNCH, "--arg", "x=random:float64:n", "--arg", "y=n"], "is one of float32"),
        (["rows", *GRID, "--arg", "p_0=8", "--arg", "p_4=8"], "follows a pointer in a struct (p_2); give an array"),
        (["rows", *GRID, "--arg", "p_1=zeros:float32:8"], "no pointer can begin at byte 4"),
        (["rows", *GRID, "--arg", 'p=[8, "zeros:float32:8"]'], "a pointer in struct 'p' begins at its byte 4"),
        (["rows", *GRID, "--arg", 'p=["8", "8", {"float": 8}]'], "word 4 of struct 'p' is said to be {'float': 8}"),
        (["rows", *GRID, "--arg", 'p=["8", "8", {"int32": 0.5}]'], "0.5 is no int32; give such numbers"),
        (["rows", *GRID, "--arg", 'p=["8", "8", 8]', "--arg", "p_4=8"], "'p_4' is given twice"),
        (["rows", *GRID, "--arg", 'p=["8"'], "is no JSON"),
    ],
)
def test_what_is_wrong_is_one_sentence(
    file: str, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel, *others = words
    others += [] if kernel == "rows" else ["--arg", "n=64"]
    assert main(["emulate", f"{file}:{kernel}", *others]) == 2
    told = capsys.readouterr().err
    assert message in told
    assert len(told.strip().splitlines()) == 1


def test_folders_of_headers_that_lie_nearby_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in ("src", "include/deep", "other"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "src/k.cu").write_text(
        '#include "kernel.cuh"\n#include "deep/more.h"\n__global__ void k(float *x) { x[0] = N * twice(x[0]); }'
    )
    (tmp_path / "include/kernel.cuh").write_text("#define N 3")
    (tmp_path / "include/deep/more.h").write_text("__device__ float twice(float x) { return 2 * x; }")
    monkeypatch.chdir(tmp_path / "src")
    words = ["count", "k.cu", "--grid", "1", "--block", "32", "--arg", "x=8"]
    assert main(words) == 2
    told = capsys.readouterr().err
    assert told.endswith(
        "not found: kernel.cuh, deep/more.h; give their folders (--include), as --include ../include\n"
    )
    assert main([*words, *told.split()[-2:]]) == 0


def test_cuda_is_not_measured_by_way_of_opencl(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [f"{file}:saxpy", *LAUNCH, *DATA, "--arg", "n=64", "--store", str(tmp_path / "t.sqlite")]
    assert main(["measure", *words, "--device", "cpu"]) == 0
    assert "is PTX, which" in capsys.readouterr().out
