"""Updates wait for each other in one part of a cache, against counting by hand."""

from __future__ import annotations

import numpy as np
import pytest

from perfmodel import Kernel, feature
from perfmodel.counting.contention import parts_of, waiting_in_turn


def test_two_blocks_of_256_bytes_apart_by_512_share_a_part() -> None:
    parts = parts_of(np.arange(0, 4096, 4))
    blocks = parts.reshape(-1, 64)
    assert (blocks == blocks[:, :1]).all()
    own = blocks[:, 0].reshape(4, 4)
    assert (own[:, :2] == own[:, 2:]).all()
    assert len(np.unique(own)) == 8


@pytest.mark.parametrize("words", [4, 60, 4000])
def test_of_a_sector_those_wait_that_go_to_its_busiest_number(words: int) -> None:
    random = np.random.default_rng(words)
    addresses, together = 4 * random.integers(0, words, 500), random.integers(0, 9, 500)
    waiting = waiting_in_turn(addresses, together, 4)
    for number in range(9):
        for sector in np.unique(addresses[together == number] // 32):
            own = (together == number) & (addresses // 32 == sector)
            counts = np.bincount(addresses[own] // 4)
            chosen = addresses[own & waiting]
            assert len(chosen) == counts.max()
            assert len(np.unique(chosen)) == 1


LETTERS = """
extern "C" __global__ void letters(int *counts, const unsigned char *text)
{
    atomicAdd(counts + text[blockIdx.x * blockDim.x + threadIdx.x], 1);
}
"""


def test_letters_contend_as_often_as_they_wait_in_the_busiest_part() -> None:
    pytest.importorskip("nvidia.cuda_nvrtc", reason="the compiler of the extra nvidia is not installed")
    n = 2**15
    odds = np.r_[6, 1 / np.arange(1, 27)]  # a blank, and letters of which few are most
    text = np.random.default_rng(2).choice(np.r_[32, 97:123], n, p=odds / odds.sum()).astype(np.uint8)
    kernel = Kernel.from_cuda(LETTERS, "letters", n // 256, 256, {"counts": 256, "text": n})
    by_part = np.zeros(2)
    for own in text.reshape(-1, 32):
        passes = np.bincount(own, minlength=256).reshape(-1, 8).max(axis=1)  # 8 numbers a sector
        by_part += passes.reshape(2, 2, 8).sum(axis=(0, 2))
    found = feature("f_mem_contended_global_atomic_block:512").eval(kernel.as_observed({"text": text}))
    assert found == pytest.approx(by_part.max(), rel=0.05)


BESIDE = """
extern "C" __global__ void beside(int *counts, const int *at)
{
    const int place = at[blockIdx.x * blockDim.x + threadIdx.x];
    if (place < 0) atomicAdd(&counts[1], 1);
    else atomicAdd(&counts[place], 1);
}
"""


def test_a_counter_is_contended_for_whatever_others_lie_beside_it() -> None:
    pytest.importorskip("nvidia.cuda_nvrtc", reason="the compiler of the extra nvidia is not installed")
    n, many = 2**16, 2**16
    random = np.random.default_rng(3)
    at = random.integers(2, many, n).astype(np.int32)
    at[random.random(n) < 0.2] = -1
    kernel = Kernel.from_cuda(BESIDE, "beside", n // 256, 256, {"counts": many, "at": n})
    found = feature("f_mem_contended_global_atomic_block:512").eval(kernel.as_observed({"at": at}))
    assert n / 32 * 0.95 < found < n / 32 * 1.3  # one of each sub-group goes there
