"""Random numbers of cuRAND's on the device, by NVIDIA's own headers."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from perfmodel import Kernel, emulate
from perfmodel.vocabulary.named_features import feature

pytest.importorskip("nvidia.cuda_nvrtc", reason="the compiler of the extra nvidia is not installed")
pytest.importorskip("nvidia.curand", reason="cuRAND's headers of the extra nvidia are not installed")

SOURCE = """#include <stdio.h>
#include <curand.h>
#include <curand_kernel.h>
#define CHECK(call) if ((call) != CURAND_STATUS_SUCCESS) exit(1);
__global__ void start(curandState *states, unsigned long long seed) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  curand_init(seed, i, 0, &states[i]);
}
__global__ void draw(curandState_t *states, float *flat, float *normal, int times) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  curandState_t state = states[i];
  for (int k = 0; k < times; k++) {
    flat[k * 128 + i] = curand_uniform(&state);
    normal[k * 128 + i] = curand_normal(&state);
  }
  states[i] = state;
}
__global__ void philox(unsigned *x, unsigned long long seed) {
  curandStatePhilox4_32_10_t state;
  curand_init(seed, threadIdx.x, 0, &state);
  uint4 four = curand4(&state);
  unsigned drawn[] = {four.x, four.y, four.z, four.w};
  for (int k = 0; k < 4; k++) x[4 * threadIdx.x + k] = drawn[k];
}
int main() {
  curandGenerator_t generator;
  CHECK(curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_DEFAULT));
}
"""


def philox4x32(counter: NDArray[np.uint64], key: tuple[int, int]) -> NDArray[np.uint64]:
    """Ten rounds of Philox4x32 as Salmon et al. (2011) define them, for columns of a counter."""
    low = np.uint64(0xFFFFFFFF)
    keys = [np.uint64(each) for each in key]
    for _ in range(10):
        first, second = counter[0] * np.uint64(0xD2511F53), counter[2] * np.uint64(0xCD9E8D57)
        counter = np.stack(
            [
                (second >> np.uint64(32)) ^ counter[1] ^ keys[0],
                second & low,
                (first >> np.uint64(32)) ^ counter[3] ^ keys[1],
                first & low,
            ]
        )
        keys = [(keys[0] + np.uint64(0x9E3779B9)) & low, (keys[1] + np.uint64(0xBB67AE85)) & low]
    return counter


def test_xorwow() -> None:
    states = np.zeros(128 * 12, "int32")
    started = emulate(Kernel.from_cuda(SOURCE, "start", 1, 128, {"states": states.size}, seed=1234), groups="all")
    kernel = Kernel.from_cuda(
        SOURCE, "draw", 1, 128, {"states": states.size, "flat": "128 * times", "normal": "128 * times"}, times=32
    )
    found = emulate(kernel, {"states": started.array("states")}, groups="all")
    flat, normal = found.array("flat"), found.array("normal")
    assert len(np.unique(flat)) > 0.99 * flat.size
    assert flat.min() > 0
    assert flat.max() <= 1
    assert flat.mean() == pytest.approx(0.5, abs=0.02)
    assert normal.mean() == pytest.approx(0, abs=0.06)
    assert normal.std() == pytest.approx(1, abs=0.05)
    assert feature("f_mem_bytes_global_store").eval(kernel) > 2 * 4 * 128 * 32


def test_philox() -> None:
    kernel = Kernel.from_cuda(SOURCE, "philox", 1, 32, {"x": 128}, seed=(7 << 32) + 5)
    found = emulate(kernel, groups="all").array("x").reshape(32, 4)
    counter = np.zeros((4, 32), np.uint64)
    counter[2] = np.arange(32)  # each thread has a sequence of its own
    np.testing.assert_array_equal(found, philox4x32(counter, (5, 7)).T)
