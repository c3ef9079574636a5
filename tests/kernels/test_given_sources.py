"""Mistakes in a source, its launch and its arguments are refused in one sentence that says what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import perfmodel as pm
from perfmodel.basics.errors import KernelError, PerfmodelError

OPENCL = "kernel void k(global float *x, int n, float f)\n{ int i = get_global_id(0); if (i < n) x[i] *= f; }\n"
CUDA = """#include <cstdio>
__global__ void k(float *x, int n, float f)
{
    extern __shared__ float tile[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = f;
    if (i < n) x[i] *= tile[threadIdx.x];
}
"""
ANYTHING: dict[str, Any] = {
    "None": None,
    "a number": 3,
    "a fraction": 2.5,
    "NaN": float("nan"),
    "True": True,
    "bytes": b"4",
    "an object": object(),
    "a list of lists": [[4]],
    "a list of None": [None],
    "a list of four": [1, 1, 1, 1],
    "an array": np.array([4, 1]),
    "a set": {4},
    "a huge number": 10**30,
    "a number by a number": {1: 3},
}


def of_opencl(source: Any = OPENCL, name: Any = "k", **changes: Any) -> pm.Kernel:
    launch = {"global_size": "(n + 255) // 256 * 256", "local_size": 256, "args": {"x": "n"}, "f": 2.0, **changes}
    kernel = pm.Kernel.from_opencl(source, name, **launch).at(n=1024)
    kernel.launch()
    return kernel


def of_cuda(source: Any = CUDA, name: Any = "k", **changes: Any) -> pm.Kernel:
    launch = {"grid": "(n + 255) / 256", "block": 256, "args": {"x": "n"}, "f": 2.0, **changes}
    kernel = pm.Kernel.from_cuda(source, name, **launch).at(n=1024)
    kernel.launch()
    return kernel


def taken_of(make: Callable[..., pm.Kernel], what: str) -> set[str]:
    """Returns what is taken of `ANYTHING`; of all else, there is an error of one sentence."""
    taken: set[str] = set()
    for named, given in ANYTHING.items():
        try:
            make(**{what: given})
            taken.add(named)
        except PerfmodelError as error:
            if "\n" in str(error):
                raise
    return taken


def refusal(make: Callable[..., pm.Kernel], **given: Any) -> str:
    with pytest.raises(PerfmodelError) as caught:
        make(**given)
    text = str(caught.value)
    assert "\n" not in text, text
    assert len(text) < 300, text
    return text


@pytest.mark.parametrize("what", ["source", "name", "global_size", "local_size", "args", "options", "folders", "tags"])
def test_opencl_takes_nothing_of_another_type(what: str) -> None:
    taken = {"tags": {"None", "a number by a number"}}
    assert taken_of(of_opencl, what) <= taken.get(what, set())


@pytest.mark.parametrize("what", ["source", "name", "grid", "block", "args", "options", "folders", "tags", "shared"])
def test_cuda_takes_nothing_of_another_type(what: str) -> None:
    taken = {
        "tags": {"None", "a number by a number"},
        "name": {"None"},
        "grid": {"a number"},
        "block": {"a number"},
        "shared": {"a number"},
    }
    assert taken_of(of_cuda, what) <= taken.get(what, set())


def test_both_languages_say_the_same() -> None:
    for make, language, ending in ((of_opencl, "OpenCL C", ".cl"), (of_cuda, "CUDA C++", ".cu")):
        for nothing in ("", "  ", Path(), b"kernel void k() {}", None):
            assert f"is no source; give the text of {language}, or the path of a {ending} file" in refusal(
                make, source=nothing
            )
        missing = refusal(make, source="gone" + ending)
        assert missing == (
            f"source file gone{ending} cannot be read (No such file or directory); give the path of a {ending} file"
        )
        assert "cannot be read (File name too long)" in refusal(make, source="a" * 5000)
        assert "options='-DN=3' is no list; write options=['-DWIDTH=8']" in refusal(make, options="-DN=3")
        assert "options have 3, which is no text" in refusal(make, options=[3])
        assert "folders='include' is no list" in refusal(make, folders="include")
        assert "says nothing of arguments; give the elements of arrays by name" in refusal(make, args=3)
        assert "argument 'x' of kernel 'k' is given ndarray, not its number of elements" in refusal(
            make, args={"x": np.zeros(4, np.float32)}
        )
        assert "needs the number of elements of its argument 'x'" in refusal(make, args=None)
        assert "kernel 'k' has no argument 1; name it by text" in refusal(make, args={1: 3})
        assert "tags=3 say nothing by name" in refusal(make, tags=3)


def test_a_folder_is_no_source(tmp_path: Path) -> None:
    for make in (of_opencl, of_cuda):
        assert "cannot be read (Is a directory)" in refusal(make, source=tmp_path)


def test_a_source_of_another_language_is_told_by_its_name(tmp_path: Path) -> None:
    text = pm.Kernel.from_cuda(CUDA, "k", 4, 256, {"x": "n"}).program.text  # type: ignore[attr-defined]
    for ending, source in ((".cl", OPENCL), (".cu", CUDA), (".ptx", text)):
        (tmp_path / f"k{ending}").write_text(source)
    of_ptx = pm.Kernel.from_ptx
    for source in (CUDA, tmp_path / "k.cu"):
        words = "the source is CUDA C++, as it has __global__, and is read as OpenCL C; give it to from_cuda, or"
        assert words in refusal(of_opencl, source=source)
        with pytest.raises(KernelError, match=r"is CUDA C\+\+, as it has __global__, and is read as PTX; give it to"):
            of_ptx(source, None, 4, 256)
    for source in (OPENCL, tmp_path / "k.cl"):
        words = "the source is OpenCL C, as it has __kernel, and is read as CUDA C++; give it to from_opencl, or"
        assert words in refusal(of_cuda, source=source)
        assert words in refusal(of_cuda, source=source, name=None)
        with pytest.raises(KernelError, match=r"is OpenCL C, as it has __kernel, and is read as PTX; give it to"):
            of_ptx(source, None, 4, 256)
    for make in (of_opencl, of_cuda):
        assert "the source is PTX, as it has .entry" in refusal(make, source=tmp_path / "k.ptx")


def test_a_mistake_in_a_source_for_both_languages_stays_its_own() -> None:
    both = (
        "#ifdef __CUDACC__\n#define KERNEL __global__\n#else\n#define KERNEL __kernel\n#endif\nKERNEL void k() { x; }"
    )
    for make in (of_opencl, of_cuda):
        assert "is read as" not in refusal(make, source=both)
    assert "is read as" not in refusal(of_opencl, source="// as __global__ void k() { } of CUDA\nint k() { return 1 }")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"shared": -1}, "kernel 'k' has -1 bytes of dynamic shared memory; give 0 or more"),
        ({"shared": "-n"}, "kernel 'k' has -1024 bytes of dynamic shared memory; give 0 or more"),
        ({"shared": 10**9}, "has 1000000000 bytes of dynamic shared memory; NVIDIA's GPUs take up to 232448"),
        ({"shared": "n * 1000"}, "has 1024000 bytes of dynamic shared memory at n=1024; NVIDIA's GPUs take up to"),
        ({"block": 2048}, "kernel 'k' has 2048 threads in a block; NVIDIA's GPUs take up to 1024"),
        ({"block": (1, 1, 128)}, "kernel 'k' has 128 threads along axis 2; NVIDIA's GPUs take up to 64"),
        ({"grid": (1, 70000)}, "kernel 'k' has 70000 blocks along axis 1; NVIDIA's GPUs take up to 65535"),
        ({"grid": 2**31}, "kernel 'k' has 2147483648 blocks along axis 0; NVIDIA's GPUs take up to 2147483647"),
        ({"grid": 0}, "which is empty along axis 0; enlarge it"),
        ({"grid": float("nan")}, "grid of kernel 'k' cannot be nan; write whole numbers or expressions by axis"),
        ({"name": 3}, "3 names no kernel; give its name in the source as text, or None for the only one"),
    ],
)
def test_launches_that_no_gpu_takes(changes: dict[str, Any], words: str) -> None:
    assert words in refusal(of_cuda, **changes)


def test_what_no_gpu_takes_is_not_predicted() -> None:
    calibration = pm.Calibration.shipped(device="H200")
    for shared in (-1, 10**9):
        kernel = pm.Kernel.from_cuda(CUDA, "k", 4, 256, {"x": "n"}, shared=shared, f=2.0, n=1024)
        with pytest.raises(KernelError, match="bytes of dynamic shared memory; "):
            calibration.predict(kernel)


def test_what_a_gpu_takes_is_taken() -> None:
    for shared in (0, np.int64(1024), 232_448):
        assert of_cuda(shared=shared).launch().shared_bytes == shared
    assert of_cuda(block=(4, 4, 64), grid=(1, 65535)).launch().local_size == (4, 4, 64)
