"""Atomics of a sub-group that meet at one word are done one after the other: how many passes that takes.

Local memory does those of one bank in turn, whether their words differ or not. Global memory does them in its
second-level cache, a sector at a time, as often as most work-items meet at one of the sector's places. Where a whole
sub-group has one place that does not depend on ids, compilers combine whole numbers of 32 bits first: an H100 takes
0.77 ns for such an update of a sub-group, 23.4 ns for one of 64 bits, or an exchange, and 56 ns for one of floats.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.counting.banks import WORD_BYTES

Integers = NDArray[np.int64]
SECTOR, ANYWHERE = 32, 2**40
"""Global atomics reach the memory that all compute units share in blocks of so many bytes; all memory is in one of the
other size."""
COMBINED_TYPES = ("int32", "uint32")
COMBINED = ("and", "max", "min", "or", "xor")
"""Compilers combine these for a sub-group first, where nobody wants to know what was there before, and sums always."""
FLOAT_SUM = 2.4
"""An addition of floats takes a sector of global memory so much longer than one of whole numbers (H100: 1.76 and 0.733
ns), while others have their turn."""
COMPARISON = 1.8
"""A comparison and exchange in local memory takes so many passes of an addition (H100: 9.1 and 5.0 ps at one place)."""
ROUND, INTERRUPTED = 2.7, 1.3
"""Updates that local memory has no instruction for, as sums of floats and all of 64 bits, are loops of comparisons:
work-items of a sub-group that meet go through it in turn, and each round takes so many passes, and more for each other
sub-group that comes between (H100: 63 ns where a sub-group of 32 has a place for itself, 98 ns where two share one, 222
ns where eight do; of 64 bits half as long again)."""
MOST_WORDS = 2**20
"""Hardly any two work-items of a sub-group meet among more words than so many."""


@dataclass(frozen=True)
class Update:
    """Says what an atomic does to its place, on which its time depends.

    Attributes:
        operation: ``add``, ``and``, ``or``, ``xor``, ``min``, ``max``, ``exchange``, ``compare`` (and exchange), or any
            other word.
        dtype: numpy's name of the type.
        is_of_all: whether a compiler sees that all work-items of a sub-group have one place.
        is_read: whether the work-items want to know what was there before.
    """

    operation: str
    dtype: str
    is_of_all: bool = True
    is_read: bool = False

    @property
    def is_combined(self) -> bool:
        """True if a compiler makes one update of those of a sub-group that go to one place."""
        can_be = self.operation == "add" or (self.operation in COMBINED and not self.is_read)
        return self.is_of_all and can_be and self.dtype in COMBINED_TYPES

    @property
    def is_loop(self) -> bool:
        """True if local memory has no instruction for it, but a loop of comparisons."""
        return self.operation in ("add", *COMBINED) and self.dtype not in COMBINED_TYPES

    @property
    def at_sector(self) -> float:
        """The time that a sector of global memory is taken, where a sum of whole numbers takes one."""
        return FLOAT_SUM if self.operation == "add" and self.dtype.startswith("float") else 1.0

    def local(self, passes: Integers, rounds: Callable[[], NDArray[Any]]) -> NDArray[Any]:
        """Returns the passes that an update in local memory takes.

        Args:
            passes: of whole numbers of 32 bits that are added.
            rounds: returns the passes of a loop of comparisons.
        """
        if self.operation == "compare":
            return COMPARISON * passes
        if self.is_loop:
            return passes + rounds() * (1.5 if np.dtype(self.dtype).itemsize > WORD_BYTES else 1.0)
        return np.asarray(passes, np.float64)


WHOLE_NUMBERS = Update("add", "uint32", is_of_all=False)
"""The update that others are compared with: its place is not known to be one for all."""


def bank_passes(
    addresses: Integers,
    item: int,
    banks: int,
    word: int = WORD_BYTES,
    active: NDArray[np.bool_] | None = None,
    update: Update = WHOLE_NUMBERS,
    subgroups: float = 1.0,
    is_shared: bool = False,
    others: float = math.inf,
) -> NDArray[Any]:
    """Returns how many passes atomics in local memory take: the most work-items at one bank, times what one takes.

    Args:
        addresses: in bytes, of a sub-group's work-items in a row, shape (R, L).
        item, banks, word, active: see `perfmodel.counting.banks.bank_cycles`.
        update: what they do.
        subgroups: of a work-group, which may come between.
        is_shared: whether all of a work-group go to one place.
        others: so many work-items of other sub-groups go to the place where most of a sub-group's go, for each of
            these, where that is known.

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
    passes = np.asarray(found.reshape(rows, most, banks).max(axis=2).sum(axis=1))
    return update.local(passes, lambda: _rounds(addresses, is_there, subgroups, is_shared, others))


def _rounds(
    addresses: Integers, active: NDArray[np.bool_], subgroups: float, is_shared: bool, most: float
) -> NDArray[Any]:
    """Returns the passes of loops of comparisons, in which those who meet at a place have their turn one by one.

    Those of other sub-groups come between as often as those of a sub-group meet, but no more often than `most`; where
    these all have one place, it says nothing of the others unless all of the work-group do.
    """
    met = sector_passes(addresses, ANYWHERE, active)
    taking_part = np.maximum(active.sum(axis=1), 1)
    others = np.minimum((subgroups - 1) * met / taking_part, most)
    if not is_shared:
        others = np.where(met == taking_part, np.minimum(others, 1.0), others)
    return np.asarray(met * (ROUND + INTERRUPTED * others))


def sector_passes(
    addresses: Integers, block: int = SECTOR, active: NDArray[np.bool_] | None = None, *, are_tried_again: bool = False
) -> Integers:
    """Returns how often atomics ask for sectors of global memory: each as often as most work-items meet at one place.

    Args:
        addresses, active: as for `bank_passes`.
        block: bytes of a sector.
        are_tried_again: whether they are comparisons and exchanges of which one succeeds each time, and the others ask
            again.
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
    most = np.maximum.reduceat(met, starts)
    asked = most * (most + 1) // 2 if are_tried_again else most
    passes = np.bincount(touched // span, weights=asked, minlength=count)
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
