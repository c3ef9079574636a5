"""Private arrays need room for the places that are asked for most, against a cache that is gone through."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest

from perfmodel import Kernel, feature

BINS, TURNS, ITEMS = 256, 128, 2**12
SOURCE = """
extern "C" __global__ void counted(const unsigned char *keys, int *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    int bins[256];
    for (int k = 0; k < 128; k++) bins[keys[i * 128 + k]]++;
    int sum = 0;
    for (int k = 0; k < 128; k++) sum += bins[keys[i * 128 + k]] * k;
    out[i] = sum;
}
"""


def in_use(keys: np.ndarray) -> float:
    """Returns the bytes of its private array that a work-item needs room for."""
    pytest.importorskip("nvidia.cuda_nvrtc", reason="the compiler of the extra nvidia is not installed")
    kernel = Kernel.from_cuda(SOURCE, "counted", ITEMS // 64, 64, {"keys": ITEMS * TURNS, "out": ITEMS})
    found = feature("f_mem_scratch").eval(kernel.as_observed({"keys": keys.ravel()}).as_compiled())
    return float(found) / ITEMS


def half_found(keys: np.ndarray) -> float:
    """Returns twice the bytes of a work-item's array for which a cache has to have room that finds half of what a
    sub-group loads, by trying."""
    asked = [np.unique(keys[:32, turn].astype(int) * 4 + np.arange(32) // 8) for turn in range(TURNS)]
    for room in range(4, 4 * BINS, 4):  # sectors, each of which eight work-items share
        cache: OrderedDict[int, None] = OrderedDict()
        hits = 0
        for sector in np.concatenate([*asked, *asked]).tolist():
            hits += sector in cache
            cache[sector] = None
            cache.move_to_end(sector)
            if len(cache) > room:
                cache.popitem(last=False)
        if hits >= sum(map(len, asked)):
            return 2.0 * room
    return 4.0 * BINS


def test_few_places_that_most_go_to_need_little_room() -> None:
    random = np.random.default_rng(4)
    anywhere = random.integers(0, BINS, (ITEMS, TURNS)).astype(np.uint8)
    few = (random.random((ITEMS, TURNS)) ** 6 * BINS).astype(np.uint8)
    assert in_use(anywhere) > 0.8 * 4 * BINS
    assert in_use(few) < 0.4 * 4 * BINS
    assert in_use(few) == pytest.approx(half_found(few), rel=0.3)
