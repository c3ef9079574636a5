"""Programs that launch kernels of CUDA C++ by CuPy; a stand-in takes its place, and the sources are really compiled."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import perfmodel
from perfmodel.interception import LaunchLog
from tests.interception.test_run_command import run

FOLDER = Path(__file__).parent / "stand_in_cupy"
PROGRAM = Path(__file__).parents[2] / "docs" / "cupy_program.py"
SCALE = 'extern "C" __global__ void scale(float *a, float factor, int n) { if (threadIdx.x < n) a[threadIdx.x] *= K; }'


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The stand-in's folder, on the path of modules; nothing of it is left behind."""
    monkeypatch.syspath_prepend(str(FOLDER))
    yield FOLDER
    for name in [each for each in sys.modules if each.split(".")[0] == "cupy"]:
        del sys.modules[name]


def test_the_command_profiles_a_program_of_cupy() -> None:
    paths = os.pathsep.join([str(FOLDER), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = run("--json", str(PROGRAM), "64", "--predict", "@h200", PYTHONPATH=paths)
    assert done.returncode == 0, done.stderr
    said, data = done.stdout.splitlines()
    assert said == "sum: 0.0"
    found = json.loads(data)
    saxpy, row_sum = found["launches"]
    assert (saxpy["kernel"], saxpy["launches"], saxpy["global_size"], saxpy["local_size"]) == (
        "saxpy",
        4,
        [65536],
        [256],
    )
    assert saxpy["sizes"] == {"a": 0.25, "n": 65536}
    assert saxpy["argument_bytes"] == 2 * 65536 * 4
    assert (row_sum["kernel"], row_sum["sizes"], row_sum["problems"]) == ("row_sum<float>", {"columns": 1024}, [])
    for each in found["launches"]:
        assert each["measured_s"] > 0
        assert each["device"] == "NVIDIA H200"
        assert each["predicted"]["@h200"]["total_s"] == each["launches"] * each["predicted"]["@h200"]["seconds"] > 0
    ways = {each["what"]: (each["copies"], each["bytes"]) for each in found["copies"]}
    assert ways == {"copies to device": (1, 262144), "copies from device": (1, 256)}
    what = [each["what"] for each in found["events"]]
    assert what == ["copies to device", *["saxpy"] * 4, "row_sum<float>", "copies from device"]
    done = run(str(PROGRAM), "64", "--predict", "@h200", PYTHONPATH=paths)
    assert any(line.startswith("saxpy ") and "|" in line for line in done.stdout.splitlines())


def test_predictions_are_those_of_the_kernel(folder: Path) -> None:
    calibration = perfmodel.Calibration.shipped(device="h200")
    with perfmodel.intercept() as log:
        import cupy

        kernel = cupy.RawKernel(SCALE, "scale", ("-DK=factor",))
        kernel((1,), (64, 1, 1), (cupy.zeros(64, np.float32), np.float32(2), 64), shared_mem=128)
    (record,) = log
    expected = perfmodel.Kernel.from_cuda(
        SCALE, "scale", (1, 1, 1), (64, 1, 1), {"a": 64}, ["-DK=factor"], shared=128, factor=2.0, n=64
    )
    assert record.predict(calibration) == pytest.approx(float(calibration.predict(expected)))
    assert cupy.launched[-1][-1] == 128
    assert (record.global_size, record.local_size, record.options) == ((64, 1, 1), (64, 1, 1), ("-DK=factor",))
    assert [(each.name, each.kind, each.dtype) for each in record.arguments] == [
        ("a", "array", "float32"),
        ("factor", "scalar", "float32"),
        ("n", "scalar", "int64"),
    ]


def test_programs_find_what_they_find_without_interception(folder: Path) -> None:
    import cupy

    before = {name: getattr(cupy, name) for name in ("RawKernel", "RawModule", "array", "asarray")}
    methods = (cupy.ndarray.get, cupy.ndarray.set)
    with perfmodel.intercept() as log:
        kernel = cupy.RawKernel(SCALE, "scale", options=("-DK=1",))
        assert isinstance(kernel, cupy.RawKernel)
        assert isinstance(kernel, before["RawKernel"])
        kernel.max_dynamic_shared_size_bytes = 65536
        assert (kernel.name, kernel.max_dynamic_shared_size_bytes) == ("scale", 65536)
        a = cupy.asarray([1.0, 2.0])
        assert cupy.asarray(a) is a
        a.set(np.array([3.0, 4.0]))
        assert cupy.asnumpy(a).tolist() == [3.0, 4.0]
        wrong: Any = cupy.RawKernel("no CUDA", "scale")
        with pytest.raises(ValueError, match="it does not compile"):
            wrong((1,), (1,), ())
    assert {name: getattr(cupy, name) for name in before} == before
    assert (cupy.ndarray.get, cupy.ndarray.set) == methods
    assert [(each.direction, each.n_bytes) for each in log.copies] == [("to", 16), ("to", 16), ("from", 16)]
    kernel((1,), (1,), (a, np.float32(1), np.int32(1)))
    assert len(log) == 0


def _launched(code: str | None, name: str, *arguments: Any, **options: Any) -> LaunchLog:
    with perfmodel.intercept() as log:
        import cupy

        module = cupy.RawModule(**({"path": "a.cubin"} if code is None else {"code": code}), **options)
        kernel = module.get_function(name)
        kernel((2,), (32,), arguments)
        kernel((2,), (32,), arguments)
    return log


@pytest.mark.parametrize(
    ("code", "name", "arguments", "words"),
    [
        (None, "scale", (), "kernel 'scale' has no source, as its module was loaded from a file"),
        (SCALE, "other", (), "has no kernel 'other'"),
        (SCALE.replace("K", "2"), "scale", (np.int32(1),), "has 3 arguments and was launched with 1"),
        (SCALE.replace("K", "2"), "scale", (12345, np.float32(1), 1), "argument 'a' of kernel 'scale' is not known"),
        (SCALE.replace("K", "2"), "scale", (None, "x", 1), "argument 'factor' of kernel 'scale' is not known (str)"),
    ],
)
def test_what_cannot_be_read_has_a_reason(
    folder: Path, code: str | None, name: str, arguments: tuple[Any, ...], words: str
) -> None:
    log = _launched(code, name, *arguments)
    times = log.times([perfmodel.Calibration.shipped(device="h200")])
    (line,) = times.lines
    assert len(line.records) == 2
    assert words in " ".join(line.problems)
    assert line.total is not None
    assert list(line.predicted.values()) == [None]


def test_nobody_imports_cupy_for_a_program(tmp_path: Path) -> None:
    code = "import sys\nprint('cupy' in sys.modules)\n"
    done = run("SCRIPT", code=code, folder=tmp_path, PYTHONPATH=str(FOLDER))
    assert done.stdout == "False\nno launches\n"
    import perfmodel.interception.cupy_patches as patches

    with perfmodel.intercept():
        assert patches.CUPY_PATCHES._finder in sys.meta_path
    assert patches.CUPY_PATCHES._finder not in sys.meta_path
