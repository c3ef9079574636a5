"""Copies of a loop's body are done side by side as far as registers have room for what they hold."""

from __future__ import annotations

import numpy as np
import pytest

from perfmodel import Kernel
from perfmodel.ptx.counting.latencies import SHUFFLE
from perfmodel.vocabulary.named_features import feature

pytest.importorskip("nvidia.cuda_nvrtc", reason="needs the extra nvidia")

THREADS, BODIES = 1024, 256
ATTRACTED = """
extern "C" __global__ void attracted(const float4 *a, const float *x, float *out, int m)
{
    __shared__ float places[3 * 256];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = threadIdx.x; k < 3 * 256; k += blockDim.x) places[k] = x[k];
    const float4 p = a[i];
    float r = 0, u = 0, v = 0;
    HELD
    __syncthreads();
    for (int k = 0; k < m; k++) {
        const float dx = places[3 * k] - p.x, dy = places[3 * k + 1] - p.y, dz = places[3 * k + 2] - p.z;
        float c = rsqrtf(dx * dx + dy * dy + dz * dz + 0.001f);
        c *= c * c;
        r += c * dx; u += c * dy; v += c * dz;
    }
    out[i] = r + u + v USED;
}
"""
SUMMED = """
extern "C" __global__ void summed(const float *a, float *c, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float s = 0;
    #pragma unroll 1
    for (int j = 0; j < n; j += 64) {
        float rows[8];
        #pragma unroll
        for (int k = 0; k < 8; k++) rows[k] = a[j + k * 7 + threadIdx.x % 8];
        #pragma unroll
        for (int step = 16; step > 0; step /= 2)
            #pragma unroll
            for (int k = 0; k < 8; k++) rows[k] += __shfl_xor_sync(0xffffffff, rows[k], step);
        s += rows[0] * rows[1] + rows[2] * rows[3] + rows[4] * rows[5] + rows[6] * rows[7];
    }
    c[i] = s;
}
"""
LOOKED_UP = """
extern "C" __global__ void looked_up(const int *x, const unsigned char *table, int *out, int m)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    HELD
    int s = 0;
    #pragma unroll 1
    for (int k = 0; k < m; k++) {
        #pragma unroll
        for (int each = 0; each < 16; each++) s ^= table[x[k * 16 + each]] << (each % 4);
        CHANGED
    }
    out[i] = s USED;
}
"""


def holding(source: str, held: int) -> str:
    """Returns a source whose threads hold so many more numbers, which nothing can move."""
    names = [f"h{each}" for each in range(held)]
    loaded = "".join(
        f'float {name} = x[i + {each}]; asm volatile("" : "+f"({name}));' for each, name in enumerate(names)
    )
    used = "".join(f" + {name} * {other}" for name, other in zip(names, [*names[1:], *names[:1]], strict=True))
    return source.replace("HELD", loaded).replace("USED", used)


def cycles(held: int) -> float:
    """Returns how many operations in a row an iteration of the loop over bodies has."""
    args: dict[str, int | str] = {"a": 4 * THREADS, "x": THREADS + 99, "out": THREADS}
    kernel = Kernel.from_cuda(holding(ATTRACTED, held), "attracted", THREADS // 256, 256, args, m=BODIES)
    return float(feature("f_mem_depth_local").eval(kernel)) / THREADS / BODIES


def test_copies_take_turns_where_values_that_stay_leave_them_few_registers() -> None:
    """The cycles of ptxas's machine code (MUFU 23, LDS 29): 49 beside none, 60 beside 4, 72 beside 6, and 52 beside 8,
    for which it gives out 40 registers."""
    found = {held: cycles(held) for held in (0, 4, 6, 8)}
    assert found[0] < found[4] < found[6]
    assert found[6] > 2 * found[0]
    assert found[8] < found[4]


def test_steps_of_a_sum_over_lanes_need_no_more_registers() -> None:
    """Eight rows at a time in 16 words, five steps one after the other, and three operations on what they give."""
    kernel = Kernel.from_cuda(SUMMED, "summed", THREADS // 64, 64, {"a": 2 * THREADS, "c": THREADS}, n=THREADS)
    depth = float(feature("f_mem_depth_global").eval(kernel)) / THREADS / (THREADS / 64)
    assert 5 * (SHUFFLE + 1) <= depth <= 5 * (SHUFFLE + 1) + 4


def test_addresses_of_lookups_take_turns_where_there_is_hardly_any_room() -> None:
    """Eight words are under way at a time, four waits for places and two for 16 lookups; a warp waits 5.9 times in each
    iteration of ptxas 13.0's machine code."""
    source = holding(LOOKED_UP, 24).replace("CHANGED", "".join(f"h{each} += s;" for each in range(24)))
    arrays = {"x": np.arange(2 * THREADS, dtype=np.int32) % 256}
    args: dict[str, int | str] = {"x": 2 * THREADS, "table": 256, "out": THREADS}
    kernel = Kernel.from_cuda(source, "looked_up", THREADS // 64, 64, args, m=10).as_observed(arrays)
    waits = float(feature("f_mem_waits_global").eval(kernel)) / THREADS / 10
    assert 5 <= waits <= 7
