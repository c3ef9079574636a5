"""Tells which part of their blocks accesses have for themselves that go to fields of one record, wherever it lies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.distinct import distinct_in_rows
from perfmodel.counting.counts import Blocks
from perfmodel.ptx.counting.access_addresses import AccessAddresses
from perfmodel.ptx.emulation.lanes import Mask

Execution: TypeAlias = tuple[Mask, NDArray[np.int64]]
"""The work-items that take part, and the address of each."""

SIZES = (32, 64, 128)
"""Bytes of the blocks that records share."""
MOST = 4096
"""So many work-items are looked at."""


def shares_of_records(accesses: Sequence[AccessAddresses]) -> list[Blocks | None]:
    """Returns the part of its own blocks that each of some accesses counts with, by the blocks' bytes, as those share
    them that are equally far from it for all work-items; None where no other is."""
    found: list[Blocks | None] = [None] * len(accesses)
    left = {number: run[0] for number, each in enumerate(accesses) if (run := each.executions_at(1))}
    while left:
        first = next(iter(left.values()))
        alike = {number: run[1] for number, run in left.items() if distance(first, run) is not None}
        if len(alike) > 1:
            fields = [(own[:MOST], accesses[number].noted.n_bytes) for number, own in alike.items()]
            shares = tuple((size, _shared(fields, size)) for size in SIZES)
            for number in alike:
                found[number] = shares
        left = {number: run for number, run in left.items() if number not in alike}
    return found


def distance(one: Execution, other: Execution) -> int | None:
    """Returns by how many bytes an execution lies behind another for all work-items; None where they differ in that."""
    (mask, own), (others, theirs) = one, other
    if not np.array_equal(mask.index, others.index) or np.ptp(theirs - own):
        return None
    return int(theirs[0] - own[0])


def _shared(fields: Sequence[tuple[NDArray[np.int64], int]], size: int) -> float:
    """Returns the distinct blocks that work-items touch by all fields, as a part of those by each of them.

    Args:
        fields: where each begins, by work-item, and its bytes.
    """
    touched = [
        np.minimum(begins[:, None] + size * np.arange(-(-n_bytes // size) + 1), begins[:, None] + n_bytes - 1) // size
        for begins, n_bytes in fields
    ]
    return float(_number(np.concatenate(touched, axis=1)) / sum(map(_number, touched)))


def _number(blocks: NDArray[np.int64]) -> int:
    return int(distinct_in_rows(blocks, np.ones(blocks.shape, bool)).sum())
