"""Counting ends soon where data end loops and the data at hand do not, and says what to give."""

from __future__ import annotations

import numpy as np
import pytest

import perfmodel as pm
from perfmodel.basics.errors import EmulationError

OPENCL = """kernel void f(global const int *next, global int *out) {
    int at = get_global_id(0), length = 0;
    while (at >= 0) { at = next[at & 1023]; length++; }
    out[get_global_id(0)] = length;
}"""
CUDA = """__global__ void f(const int *next, int *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, at = i, length = 0;
    while (at >= 0) { at = next[at & 1023]; length++; }
    out[i] = length;
}"""
REMEDY = r"kernel.as_observed\(arrays\) \(--arg NAME=FILE.npy\), or more time \(kernel.with_budget\(10\), --effort 10\)"


def chains(length: int) -> np.ndarray:
    """Returns what follows each of 1024 places: the next one, and nothing at the last of so many."""
    places = np.arange(1, 1025, dtype=np.int32)
    places[length - 1 :: length] = -1
    return places


def test_opencl() -> None:
    kernel = pm.Kernel.from_opencl(OPENCL, "f", 1024, 64, {"next": 1024, "out": 1024}).with_budget(0.1)
    cycle = {"next": np.roll(np.arange(1024, dtype=np.int32), -1)}
    with pytest.raises(EmulationError, match=rf"kernel.cl:3:\d+: the loop of .* in kernel 'f' goes on for .*{REMEDY}"):
        kernel.as_observed(cycle)
    observed = kernel.as_observed({"next": chains(4)})
    assert pm.feature("f_mem_access_global_int32_load").eval(observed) == pytest.approx(2.5 * 1024)


def test_cuda() -> None:
    pytest.importorskip("nvidia.cuda_nvrtc", reason="the compiler of the extra nvidia is not installed")
    kernel = pm.Kernel.from_cuda(CUDA, "f", 8, 128, {"next": 1024, "out": 1024}).with_budget(0.1)
    cycle = {"next": np.roll(np.arange(1024, dtype=np.int32), -1)}
    with pytest.raises(EmulationError, match=rf"times the budget of counting in loops that data end.*{REMEDY}") as said:
        pm.feature("f_mem_bytes_global_load").eval(kernel.as_observed(cycle))
    assert str(said.value).startswith("kernel 'f' has taken")
    assert "\n" not in str(said.value)
    loads = pm.feature("f_mem_bytes_global_load").eval(kernel.as_observed({"next": chains(4)}))
    assert loads == pytest.approx(2.5 * 1024 * 4)
