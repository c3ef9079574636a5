"""CUDA kernels, compiled to PTX and emulated, compute what numpy computes, and waits for other blocks are told."""

from __future__ import annotations

import numpy as np
import pytest

from perfmodel import Kernel, emulate
from perfmodel.basics.errors import EmulationError
from tests.ptx.cuda import CASES

pytest.importorskip("nvidia.cuda_nvrtc", reason="the compiler of the extra nvidia is not installed")


@pytest.mark.parametrize("title", CASES)
def test_cuda_kernel_computes_what_numpy_computes(title: str) -> None:
    case = CASES[title]
    profile = emulate(case.kernel(), case.arrays, groups="all")
    expected = case.expected({name: array.copy() for name, array in case.arrays.items()})
    assert expected
    for name, wanted in expected.items():
        found = profile.array(name).reshape(case.arrays[name].shape)
        if found.dtype.kind == "f":
            np.testing.assert_allclose(
                found.astype("float64"), np.asarray(wanted, "float64"), case.tolerance, case.tolerance
            )
        else:
            np.testing.assert_array_equal(found, wanted)


WAITING = """
__global__ void rows(const float *a, float *c, unsigned *done, int n) {
  if (blockIdx.x > 0 && threadIdx.x == 0) WAIT;
  __syncthreads();
  c[blockIdx.x * n + threadIdx.x] = a[threadIdx.x] + (blockIdx.x > 0 ? c[(blockIdx.x - 1) * n + threadIdx.x] : 0);
  __threadfence();
  if (threadIdx.x == 0) atomicAdd(done, 1);
}
"""
WAITS = [
    "while (atomicAdd(done, 0) < blockIdx.x)",
    "while (*(volatile unsigned *)done < blockIdx.x)",
    "do __nanosleep(20); while (atomicOr(done, 0) < blockIdx.x)",
]


@pytest.mark.parametrize("wait", WAITS)
def test_blocks_that_wait_for_each_other_are_told_at_once(wait: str) -> None:
    kernel = Kernel.from_cuda(
        WAITING.replace("WAIT", wait), "rows", 1000, 64, {"a": 64, "c": 64_000, "done": 1}, ["-arch=sm_90"], n=64
    )
    with pytest.raises(EmulationError, match="waits for other blocks to change memory"):
        emulate(kernel, {"done": np.zeros(1, np.uint32)}, groups=[0, 999], steps=1000)
    with pytest.raises(EmulationError, match="take the wait out"):
        kernel.counts_for(32)


def test_counters_that_are_looked_at_and_go_on_are_no_wait() -> None:
    """A loop that takes the next number from memory until there is none left goes on by itself."""
    source = """__global__ void taken(unsigned *next, int *c, int n) {
      __shared__ volatile unsigned mine;
      while (true) {
        if (threadIdx.x == 0) mine = atomicAdd(next, 1);
        __syncthreads();
        unsigned i = mine;
        __syncthreads();
        if (i >= n) break;
        c[i * 32 + threadIdx.x] = i;
      }
    }"""
    kernel = Kernel.from_cuda(source, "taken", 2, 32, {"next": 1, "c": 100 * 32}, n=100)
    found = emulate(kernel, {"next": np.zeros(1, np.uint32)}, groups="all").array("c").reshape(100, 32)
    np.testing.assert_array_equal(found, np.arange(100).repeat(32).reshape(100, 32))
