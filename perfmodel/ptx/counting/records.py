"""Tells which part of their blocks accesses have for themselves that go to fields of one record, wherever it lies."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from perfmodel.counting.counts import Blocks
from perfmodel.ptx.counting.access_addresses import AccessAddresses

SIZES = (32, 64, 128)
"""Bytes of the blocks that records share."""
MOST = 4096
"""So many work-items are looked at."""


def shares_of_records(accesses: Sequence[AccessAddresses]) -> list[Blocks | None]:
    """Returns the part of its own blocks that each of some accesses counts with, by the blocks' bytes, as those share
    them that are equally far from it for all work-items; None where no other is."""
    first = [each.executions_at(1) for each in accesses]
    found: list[Blocks | None] = [None] * len(accesses)
    left = [number for number, executions in enumerate(first) if executions]
    while left:
        mask, addresses = first[left[0]][0]
        alike = [
            number
            for number in left
            if first[number][0][0].index.shape == mask.index.shape
            and np.ptp(first[number][0][1] - addresses) == 0
            and np.array_equal(first[number][0][0].index, mask.index)
        ]
        if len(alike) > 1:
            places = [first[number][0][1][:MOST] for number in alike]
            of_all = tuple(
                (size, _shared([(own, accesses[n].noted.n_bytes) for own, n in zip(places, alike, strict=True)], size))
                for size in SIZES
            )
            for number in alike:
                found[number] = of_all
        left = [number for number in left if number not in alike]
    return found


def _shared(fields: Sequence[tuple[NDArray[np.int64], int]], size: int) -> float:
    """Returns the distinct blocks that work-items touch by all fields, as a part of those by each of them.

    Args:
        fields: where each begins, by work-item, and its bytes.
    """
    apart, blocks = 0, []
    for begins, n_bytes in fields:
        last = (begins + n_bytes - 1) // size
        own = [np.minimum(begins // size + step, last) for step in range(-(-n_bytes // size) + 1)]
        distinct = np.sort(np.stack(own), axis=0)
        apart += len(begins) + int((np.diff(distinct, axis=0) > 0).sum())
        blocks += own
    together = np.sort(np.stack(blocks), axis=0)
    return float(together.shape[1] + (np.diff(together, axis=0) > 0).sum()) / apart
