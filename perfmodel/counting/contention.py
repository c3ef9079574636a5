"""Work-groups that access few places meet there: how many of all accesses go to one place."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perfmodel.counting.atomics import SECTOR

SIZES = (SECTOR, 512)
"""Blocks of so many bytes are places, beside single numbers: sectors, and what one part of a cache has."""
MOST = 1 << 17
"""So many accesses are looked at."""

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Contention:
    """Says how often accesses of different work-groups go to one place.

    Attributes:
        shares: pairs of a block's bytes and the part of all accesses that goes to one of them, were they spread evenly
            over as many: of updates, to the busiest one.
        pairs: the chance that two of all accesses go to the same number. within: to the same one, in the block of 512
            bytes where that is most likely.
    """

    shares: tuple[tuple[int, float], ...]
    pairs: float
    within: float


def contention_of(addresses: Integers, groups: Integers, item: int, are_updates: bool = True) -> Contention | None:
    """Returns how often accesses meet, of which some work-groups are known.

    The part that goes to the busiest place is what each group has at the place that is the busiest of all others;
    stores, which others have places of their own for, go to one place as often as those of two groups do.

    Args:
        addresses, groups: of accesses by work-items of some groups, in bytes and as numbers from 0, shape (N,).
        item: bytes of a number.

    Returns:
        None where fewer than two groups have accesses.
    """
    every = max(len(addresses) // MOST, 1)
    addresses, groups = addresses[::every], groups[::every]
    made = np.bincount(groups).astype(np.float64)
    there = np.flatnonzero(made)
    if len(there) < 2:
        return None
    pairs = made.sum() ** 2 - (made**2).sum()
    found = []
    for size in (item, *SIZES):
        blocks, places = np.unique(addresses // size, return_inverse=True)
        of_groups = [np.bincount(places[groups == group], minlength=len(blocks)).astype(np.float64) for group in there]
        of_place = np.sum(of_groups, axis=0)
        met = (of_place**2 - sum(own**2 for own in of_groups)) / pairs
        busiest = float(sum(own[np.argmax(of_place - own)] for own in of_groups)) if are_updates else 0.0
        most = max(busiest - math.sqrt(busiest), 0.0) / made.sum()  # less what may be chance
        found.append((size, max(float(met.sum()), most)))
        if size == item:
            within = np.bincount(np.unique(blocks * size // SIZES[-1], return_inverse=True)[1], met).max()
            both = float(met.sum()), float(within)
    return Contention(tuple(found), *both)


def mean_contention(parts: Iterable[tuple[float, Contention | None]]) -> Contention | None:
    """Returns the contention of accesses that are one, each with its executions, as far as it is known."""
    known = [(executions, part) for executions, part in parts if part is not None]
    total = sum(executions for executions, _ in known)
    if not total:
        return known[0][1] if known else None

    def of(values: Sequence[float]) -> float:
        return sum(executions / total * value for (executions, _), value in zip(known, values, strict=True))

    sizes = [size for size, _ in known[0][1].shares]
    shares = tuple((size, of([dict(part.shares)[size] for _, part in known])) for size in sizes)
    return Contention(shares, of([part.pairs for _, part in known]), of([part.within for _, part in known]))
