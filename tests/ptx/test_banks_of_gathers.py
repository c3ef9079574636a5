"""Loads from global memory at places that data choose take the cycles of their busiest bank, as numpy counts them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import perfmodel as pm

pytest.importorskip("nvidia.cuda_nvrtc", reason="needs the extra nvidia")

ITEMS, BLOCK, SIZE, WARP, BANKS = 4096, 128, 65536, 32, 32
SOURCE = """
__global__ void gather(const T *a, const int *at, T *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = a[at[i]];
}
"""
RNG = np.random.default_rng(7)
PLACES = {
    "anywhere": RNG.integers(0, SIZE, ITEMS),
    "in a table": RNG.integers(0, 512, ITEMS),
    "in rows of 16": 16 * RNG.permuted(np.arange(ITEMS).reshape(-1, WARP), axis=1).reshape(-1),
    "at few places": 32 * RNG.integers(0, 3, ITEMS),
}


def cycles(words: NDArray[np.int64]) -> int:
    """Returns the different words of the bank that has most, of words that are asked for at once."""
    return int(np.bincount(np.unique(words) % BANKS).max())


@pytest.mark.parametrize("places", PLACES)
@pytest.mark.parametrize(("type_", "words"), [("float", 1), ("double", 2)])
def test_gathers_take_the_cycles_of_their_busiest_bank(places: str, type_: str, words: int) -> None:
    at = PLACES[places].astype(np.int32)
    arrays = {"a": SIZE, "at": ITEMS, "out": ITEMS}
    kernel = pm.Kernel.from_cuda(SOURCE.replace("T", type_), "gather", ITEMS // BLOCK, BLOCK, arrays)
    found = pm.feature("f_mem_transactions_global_load_banks:32_var:a").eval(kernel.as_observed({"at": at}))
    passes = at.astype(np.int64).reshape(-1, WARP // words, 1) * words + np.arange(words)
    handed_out = words * WARP // words / BANKS
    expected = sum(max(cycles(each), handed_out) for each in passes.reshape(len(passes), -1))
    assert found == pytest.approx(expected, rel=0.1)


KEYED = """
__constant__ unsigned key[4];
__global__ void looked_up(const unsigned *words, unsigned *out)
{
    __shared__ unsigned table[256];
    for (int k = threadIdx.x; k < 256; k += blockDim.x) table[k] = 2654435761u * k;
    __syncthreads();
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = table[(words[i] ^ key[0]) & 255];
}
"""


def test_a_key_that_is_not_set_leaves_it_to_data_which_banks_meet() -> None:
    words = RNG.integers(0, 2**32, ITEMS, dtype=np.uint32)
    kernel = pm.Kernel.from_cuda(KEYED, "looked_up", ITEMS // BLOCK, BLOCK, {"words": ITEMS, "out": ITEMS})
    found = pm.feature("f_mem_transactions_local_load_banks:32").eval(
        kernel.as_countable({"words": words}).as_compiled()
    )
    loaded = sum(cycles(each) for each in (words & 255).astype(np.int64).reshape(-1, WARP))
    assert found == pytest.approx(loaded, rel=0.1)


@pytest.mark.parametrize("taking_part", [2, 8, 20, 32])
def test_work_items_that_do_not_take_part_meet_nobody_in_a_bank(taking_part: int) -> None:
    """Words that lie 16 apart are in two banks, in turn."""
    source = "__global__ void k(const float *x, float *y) { __shared__ float s[512]; int t = threadIdx.x;"
    source += " for (int j = t; j < 512; j += 32) s[j] = x[j]; __syncthreads();"
    source += f" if (t < {taking_part}) y[32 * blockIdx.x + t] = s[16 * t]; }}"
    kernel = pm.Kernel.from_cuda(source, "k", 64, 32, {"x": 512, "y": 64 * 32})
    found = pm.feature("f_mem_transactions_local_load_banks:32").eval(kernel)
    assert found == 64 * taking_part / 2


def test_a_table_that_the_text_declares_comes_from_memory_once() -> None:
    """Sines in double precision look numbers up in a table of 128 bytes, where data that nobody gave decide."""
    source = "__global__ void k(const double *x, double *y) { int i = blockIdx.x * blockDim.x + threadIdx.x;"
    kernel = pm.Kernel.from_cuda(f"{source} y[i] = sin(x[i]); }}", "k", 4096, 256, {"x": 2**20, "y": 2**20})
    assert pm.feature("f_mem_access_global_load").eval(kernel) > 2 * 2**20
    scattered = "f_mem_scattered_global_load_missed_keeps:50000000_block:32_reach:>8000000"
    assert pm.feature(scattered).eval(kernel) == 0


IN_ROWS = """
__global__ void in_rows(const int *a, int *out, int row, int m)
{
    __shared__ int table[256];
    for (int k = threadIdx.x; k < 256; k += blockDim.x) table[k] = a[k];
    __syncthreads();
    int s = 0;
    for (int k = 0; k < m; k++) s += table[(k * 96 + threadIdx.x) / row * 8 & 255];
    out[blockIdx.x * blockDim.x + threadIdx.x] = s;
}
"""


@pytest.mark.parametrize("row", [2, 5, 7])
def test_lanes_may_lie_otherwise_in_each_iteration(row: int) -> None:
    m = 12
    kernel = pm.Kernel.from_cuda(IN_ROWS, "in_rows", 8, 96, {"a": 256, "out": 8 * 96}, row=row, m=m)
    found = pm.feature("f_mem_transactions_local_load_banks:32").eval(kernel)
    places = (np.arange(96 * m) // row * 8 & 255).reshape(-1, WARP)
    assert found == 8 * sum(cycles(each) for each in places)
