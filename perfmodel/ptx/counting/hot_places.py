"""Says how much room a cache needs for private arrays of which some places are asked for more often than others.

Where data decide on places, as in a histogram of few grey levels or in a stack that is mostly empty, few of an array's
sectors get most of the loads. A cache that drops what was used least recently keeps these: from the probability that a
sector is asked for follows how long it is kept, and so the hits (H. Che, Y. Tung, Z. Wang, Hierarchical Web caching
systems: modeling, design and experimental results, 2002, section III).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.distinct import distinct
from perfmodel.counting.atomics import SECTOR
from perfmodel.counting.banks import WORD_BYTES
from perfmodel.ptx.counting.access_addresses import AccessAddresses

MOST_EXECUTIONS, LEAST = 4_000, 16
"""So many executions are looked at, shared out among the accesses, of each of which there are some."""
ENOUGH = 2
"""Sectors that are asked for less often, on average, are too few to say how often each is."""


def bytes_in_use(accesses: Sequence[AccessAddresses], n_bytes: int, width: int) -> float:
    """Returns the bytes of private arrays whose places are all loaded as often, and of whose loads a cache finds half
    with as much room as it needs to find half of these; at most so many bytes, the arrays' own.

    Args:
        accesses: loads from private arrays, whose words of one place lie side by side for a sub-group.
        width: work-items of a sub-group.
    """
    from scipy.optimize import brentq  # slow to import

    most = max(MOST_EXECUTIONS // len(accesses), LEAST)
    asked = [_sectors(each, width, most) for each in accesses]
    _, times = np.unique(np.concatenate(asked), return_counts=True)
    if times.sum() < ENOUGH * max(len(times), 1):
        return float(n_bytes)
    rates = times / times.sum()

    def kept(time: float) -> NDArray[np.float64]:
        """Returns with which probability each sector is in a cache that keeps it for so many requests."""
        return np.asarray(-np.expm1(-rates * time))

    half = brentq(lambda time: float(rates @ kept(time)) - 0.5, 0.0, 1 / float(rates.min()))
    lanes = accesses[0].lanes
    subgroups = lanes.count * -(-lanes.threads // width)
    return min(2 * float(kept(half).sum()) * SECTOR / (subgroups * width), float(n_bytes))


def _sectors(access: AccessAddresses, width: int, most: int) -> NDArray[np.int64]:
    """Returns the sectors that sub-groups ask for in so many executions, each as often as it is asked for."""
    per_block, beside = -(-access.lanes.per_block // width), max(width * WORD_BYTES // SECTOR, 1)
    found = [np.zeros(0, np.int64)]
    for mask, addresses in access.executions_at(most):
        subgroup = access.lanes.block_of[mask.index] * per_block + mask.within // width
        column = mask.within % width * WORD_BYTES // SECTOR
        row = addresses // WORD_BYTES * beside + column
        found.append(distinct(row * (access.lanes.count * per_block) + subgroup))
    return np.concatenate(found)
