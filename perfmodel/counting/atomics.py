"""Atomics of a sub-group that meet at one word are done one after the other: how many passes that takes.

Local memory does those of one bank in turn, whether their words differ or not. Global memory does them in its
second-level cache, a sector at a time, as often as most work-items meet at one of the sector's places. Where a whole
sub-group has one place that does not depend on ids, compilers add up whole numbers of 32 bits first: on an H200 such
an update takes 0.8 ns, one of floats 56 ns, and one of 64 bits 23 ns.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.counting.banks import WORD_BYTES

Integers = NDArray[np.int64]
SECTOR = 32
"""Global atomics reach the memory that all compute units share in blocks of so many bytes."""
ADDED_UP_TYPES = ("int32", "uint32")
"""The types that compilers add up for a sub-group first."""
MOST_WORDS = 2**20
"""Hardly any two work-items of a sub-group meet among more words than so many."""


def bank_passes(
    addresses: Integers, item: int, banks: int, word: int = WORD_BYTES, active: NDArray[np.bool_] | None = None
) -> Integers:
    """Returns how many passes atomics in local memory take: the most work-items at one bank.

    Args:
        addresses: in bytes, of a sub-group's work-items in a row, shape (R, L).
        item, banks, word, active: see `perfmodel.counting.banks.bank_cycles`.

    Returns:
        An array of shape (R,).
    """
    rows, lanes = addresses.shape
    is_there = np.ones((rows, lanes), bool) if active is None else active
    at_once = max(1, banks * word // item) if item > word else lanes
    turns = np.where(is_there, np.cumsum(is_there, axis=1) - 1, 0) // at_once
    most = int(turns.max(initial=0)) + 1
    group = (np.arange(rows)[:, None] * most + turns)[is_there]
    parts = np.arange(max(1, item // word))
    served = group[:, None] * banks + (addresses[is_there][:, None] // word + parts) % banks
    found: Integers = np.bincount(served.ravel(), minlength=rows * most * banks).astype(np.int64)
    return np.asarray(found.reshape(rows, most, banks).max(axis=2).sum(axis=1))


def sector_passes(addresses: Integers, block: int = SECTOR, active: NDArray[np.bool_] | None = None) -> Integers:
    """Returns how often atomics ask for sectors of global memory: each as often as most work-items meet at one place.

    Args:
        addresses, active: as for `bank_passes`.
        block: bytes of a sector.
    """
    count = len(addresses)
    is_there = np.ones(addresses.shape, bool) if active is None else active
    if not is_there.any():
        return np.zeros(count, np.int64)
    own = addresses[is_there]
    low = int(own.min()) // block
    span = int(own.max()) // block - low + 1
    sectors = np.nonzero(is_there)[0] * span + own // block - low
    places, met = np.unique(sectors * block + own % block, return_counts=True)
    touched, starts = np.unique(places // block, return_index=True)
    passes = np.bincount(touched // span, weights=np.maximum.reduceat(met, starts), minlength=count)
    return np.asarray(passes, np.int64)


@lru_cache
def _expected(width: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Returns numbers of words (their logarithms), and how many passes work-items take that each go to any of them."""
    random = np.random.default_rng(20150824)
    words = [2**exponent for exponent in range(MOST_WORDS.bit_length())]
    found = [float(sector_passes(random.integers(0, n, (256, width)) * WORD_BYTES).mean()) for n in words]
    return tuple(map(math.log, words)), tuple(found)


def expected_passes(words: Any, width: int) -> Any:
    """Returns `sector_passes` of `width` work-items that each go to any of so many words, elementwise."""
    return np.interp(np.log(np.maximum(words, 1.0)), *_expected(width))
