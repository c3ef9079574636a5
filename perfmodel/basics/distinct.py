"""Numbers of an array are told apart by sorting them, or by marking each where they are dense: numpy's own way, by
hashing, takes up to thirty times as long."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

_Kind = TypeVar("_Kind", bound=np.integer[Any])


DENSE = 4
"""Numbers are dense of which there is one for so many between the least and the largest."""


def distinct(numbers: NDArray[_Kind]) -> NDArray[_Kind]:
    """Returns the distinct ones of some whole numbers, in order."""
    least, most = (int(numbers.min()), int(numbers.max())) if numbers.size else (0, 0)
    if most - least < DENSE * numbers.size:
        is_there = np.zeros(most - least + 1, bool)
        wide = numbers.astype(np.int64) if numbers.itemsize < 8 else numbers
        is_there[wide - least] = True
        return np.add(np.flatnonzero(is_there).astype(numbers.dtype), numbers.dtype.type(least), dtype=numbers.dtype)
    ordered = np.sort(numbers, axis=None)
    is_first = np.empty(len(ordered), bool)
    is_first[:1] = True
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return ordered[is_first]


def distinct_in_rows(numbers: NDArray[Any], active: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Returns how many different numbers each row has where it is active, which is at least at one place."""
    some = np.take_along_axis(numbers, active.argmax(axis=1)[:, None], axis=1)
    ordered = np.sort(np.where(active, numbers, some), axis=1)
    return np.asarray(1 + np.count_nonzero(np.diff(ordered, axis=1), axis=1))
