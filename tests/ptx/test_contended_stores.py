"""Stores of many blocks to one place contend for it, also where data say which place it is."""

from __future__ import annotations

import numpy as np
import pytest

from perfmodel import Kernel, feature

BLOCKS, THREADS = 4096, 128
COMPACTED = """\
extern "C" __global__ void compacted(const int *x, int *out, int offset) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int is_kept = x[i] > 0;
    unsigned kept = __ballot_sync(0xffffffff, is_kept);
    int place = __popc(kept & ((1u << (threadIdx.x % 32)) - 1)) + threadIdx.x / 32 * 32;
    if (is_kept) out[blockIdx.x * offset + place] = i;
}"""


@pytest.mark.parametrize(("offset", "least", "most"), [(0, 0.8, 1.0), (THREADS, 0.0, 0.02)])
def test_stores_of_all_blocks_to_one_place_contend(offset: int, least: float, most: float) -> None:
    pytest.importorskip("nvidia.cuda_nvrtc", reason="the compiler of the extra nvidia is not installed")
    n = BLOCKS * THREADS
    x = np.random.default_rng(1).integers(-1, 2, n).astype(np.int32)
    kernel = Kernel.from_cuda(COMPACTED, "compacted", BLOCKS, THREADS, {"x": n, "out": n}, offset=offset)
    observed = kernel.as_observed({"x": x})
    contended = feature("f_mem_contended_global_store_block:512").eval(observed)
    stored = feature("f_mem_transactions_global_store_block:32").eval(observed)
    assert least <= contended / stored <= most
