"""A sample of work-groups tells with other weights how far the counts are off that follow from it.

A sample has one group out of each of an even number of parts of the grid. Of two parts that are neighbours, one weighs
half as much again and the other half as much, in balanced patterns: the spread of what follows, twice over, is the
standard error (balanced half-samples: McCarthy, "Pseudo-replication: half samples", 1969; with weights of a half and
three halves: Fay's method, in Judkins, "Fay's method for variance estimation", 1990).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SAMPLES = 16
"""So many parts of the grid have a group in a sample, unless more are asked for."""
MOST_APART = 16
"""Some pairs share a pattern where there are more than so many, so that there are no more replicas."""
TIMES = 2.0
"""The standard error is so many times the spread of replicas."""


def weights(groups: int) -> list[list[int]]:
    """Returns the weights of the groups in each replica, 1 or 3; none for a sample that has no pairs."""
    pairs, odd = divmod(groups, 2)
    if odd or not pairs:
        return []
    replicas = 1 << (min(pairs, MOST_APART) - 1).bit_length()
    return [
        [
            1 if ((replica & pair % MOST_APART).bit_count() + second) % 2 else 3
            for pair in range(pairs)
            for second in range(2)
        ]
        for replica in range(replicas)
    ]


def deviation(values: Floats, replicas: Sequence[Floats]) -> Floats:
    """Returns the standard errors of values' logarithms, from the replicas of all of them; 0 without any."""
    found = np.zeros(np.shape(values))
    if replicas:
        with np.errstate(all="ignore"):
            squares = [np.nan_to_num(np.log(replica / values), posinf=0, neginf=0) ** 2 for replica in replicas]
        found = TIMES * np.sqrt(np.mean(squares, axis=0))
    return np.asarray(found)
