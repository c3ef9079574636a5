"""Triton's kernels of the benchmark are there as PTX, are timed, and are judged by what was measured and predicted."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

import perfmodel as pm
from benchmarks.cuda_kernels import measuring
from benchmarks.triton_kernels.cases import EXAM, SPACE, TERMS, cases, compiled_launches, named
from benchmarks.triton_kernels.judging import as_text
from perfmodel.basics.errors import DeviceError
from perfmodel.device import CUDA
from perfmodel.kernels.arguments import Array
from perfmodel.vocabulary.named_features import feature
from tests.fake_cuda import FakeLibrary, installed


def test_all_cases_are_compiled() -> None:
    launches, known = compiled_launches(), cases()
    assert [case.name for case in known] == list(launches)
    origins = Counter(case.origin for case in known)
    assert origins[EXAM] >= 30
    assert origins[TERMS] >= 50
    assert origins[SPACE] >= 60
    for case in known:
        launch = launches[case.name]
        axes = zip(launch.global_size, launch.local_size, strict=True)
        assert tuple(total // block for total, block in axes)[: len(case.grid)] == case.grid


def test_arrays_hold_what_times_depend_on() -> None:
    for case in cases():
        if case.arrays is None:
            continue
        kernel = case.kernel()
        extents = {each.name: (each.size, each.dtype) for each in kernel.launch().arrays()}
        for name, values in case.arrays().items():
            assert extents[name] == (values.size, values.dtype.name), (case.name, name)


def test_types_that_numpy_lacks_hold_small_positive_numbers() -> None:
    (case,) = named(["repeated_dot bfloat16 32x64x64 warps:4 1056"])
    assert case.has_data
    contents = case.contents(case.kernel())
    values = (contents["a"].astype(np.uint32) << 16).view(np.float32)
    assert values.min() > 0.005
    assert values.max() <= 1


def test_tensor_cores_work_as_cases_say() -> None:
    (case,) = named(["repeated_dot float16 64x64x64 warps:4 1056"])
    assert feature("f_op_float16_mma").eval(case.kernel()) == 1056 * 512 * 64**3


@pytest.mark.parametrize(("stages", "turns"), [(1, 64), (2, 64), (3, 32), (4, 64 / 3)])
def test_copies_that_are_begun_ahead_are_waited_for_together(stages: int, turns: float) -> None:
    (case,) = named([f"gram 64x64x32 stages:{stages} 2048x2048"])
    kernel = case.kernel()
    rounds = feature("f_mem_rounds_global").eval(kernel) / feature("f_work_items").eval(kernel)
    assert rounds == pytest.approx(turns)


def test_tiles_of_a_stencil_are_regular() -> None:
    (case,) = named(["stencil"])
    kernel = case.kernel()
    assert feature("f_mem_footprint_global_load").eval(kernel) == pytest.approx(4 * 8192**2, rel=1e-3)
    assert feature("f_mem_footprint_global_store").eval(kernel) == pytest.approx(4 * 8190**2, rel=5e-3)
    of_groups = feature("f_mem_footprint_global_load_granularity:workgroup").eval(kernel)
    assert of_groups == pytest.approx(4 * 1024 * 32 * (10 * 256 + 2 * 8), rel=5e-3)  # tiles with their borders
    assert feature("f_mem_scattered_global_load_block:32").eval(kernel) == 0


def test_loads_of_tiles_take_the_cycles_of_all_their_parts() -> None:
    (case,) = named(["repeated_dot float16 32x64x64 warps:4 1056"])
    kernel = case.kernel()
    loaded = feature("f_mem_bytes_local_load").eval(kernel)
    assert loaded == pytest.approx(1056 * 512 * 4 * 12 * 512, rel=1e-2)  # 12 ldmatrix of 512 bytes by each of 4 warps
    cycles = feature("f_mem_transactions_local_load_banks:32").eval(kernel)
    assert cycles == pytest.approx(loaded / 128, rel=1e-6)


class Copy:
    """A kernel with data, as `benchmarks.cuda_kernels.measuring` takes one."""

    name, origin, has_data = "copy", EXAM, True
    text = """.version 7.0
.target sm_60
.address_size 64
.visible .entry copy(.param .u64 x, .param .u64 y)
{
  .reg .b32 %r<3>;
  .reg .b64 %a<5>;
  ld.param.u64 %a0, [x];
  ld.param.u64 %a1, [y];
  mov.u32 %r0, %tid.x;
  mul.wide.u32 %a2, %r0, 4;
  add.s64 %a3, %a0, %a2;
  add.s64 %a4, %a1, %a2;
  ld.global.b32 %r1, [%a3];
  st.global.b32 [%a4], %r1;
  ret;
}"""

    def kernel(self, runtime: str) -> pm.Kernel:
        arrays = [Array("x", "float32", 32), Array("y", "float32", 32, is_output=True)]
        return pm.Kernel.from_ptx(self.text, "copy", 1, 32, arrays)

    def contents(self, kernel: pm.Kernel) -> dict[str, np.ndarray]:
        return {"x": np.arange(32, dtype=np.float32), "y": np.zeros(32, np.float32)}

    def difference(self, outputs: Mapping[str, Mapping[str, np.ndarray]]) -> str:
        return "" if list(outputs[CUDA]["y"]) == list(range(32)) else "results differ"


def test_kernels_with_data_are_timed(tmp_path: Path) -> None:
    with installed(FakeLibrary()):
        measuring.work([Copy()], tmp_path, "h200", [CUDA])
    row = measuring.done(tmp_path)["copy"]
    assert row["why"] == ""
    assert row["times"][CUDA]["seconds"] > 0


def test_machines_without_a_gpu_say_so(tmp_path: Path) -> None:
    with pytest.raises(DeviceError):
        measuring.measure([Copy()], tmp_path, "no such gpu", [CUDA], "benchmarks.triton_kernels")


def test_judging(tmp_path: Path) -> None:
    def measured(name: str, origin: str, seconds: float | None, why: str = "") -> str:
        times = {CUDA: {"seconds": seconds, "flags": []}} if seconds else {}
        return json.dumps({"name": name, "origin": origin, "why": why, "times": times}) + "\n"

    def predicted(name: str, seconds: float | None, why: str = "") -> str:
        return json.dumps({"name": name, "seconds": seconds, "why": why}) + "\n"

    (tmp_path / "measured.jsonl").write_text(
        measured("a", EXAM, 1e-4)
        + measured("b", EXAM, 1e-3)
        + measured("short", EXAM, 1e-6)
        + measured("wrong", EXAM, None, "CUDA: failed")
        + measured("unread", EXAM, 1e-3)
        + "".join(measured(f"space {i}", SPACE, 1e-3 / (1 + i)) for i in range(8))
    )
    (tmp_path / "predicted.jsonl").write_text(
        predicted("a", 1.1e-4)
        + predicted("b", 1.4e-3)
        + predicted("unread", None, "an instruction that is not known")
        + "".join(predicted(f"space {i}", 1e-3 * (1 + i)) for i in range(8))
    )
    (tmp_path / "native.jsonl").write_text(json.dumps({"name": "a", "seconds": 1.2e-4, "why": ""}) + "\n")
    text = as_text(tmp_path)
    (line,) = (line for line in text.splitlines() if line.startswith("exam"))
    assert line.split()[1:] == ["2", "20.0%", "25.0%", "40.0%", "50.0%"]
    assert "predicted best is 700.0% slower than the best, the best of the first 5 60.0%" in text
    assert "wrong: CUDA: failed" in text
    assert "unread: an instruction that is not known" in text
    assert [line.split()[2:4] for line in text.splitlines() if line.startswith("a ")] == [["us", "1.20"]]
