"""Work-groups that access few places meet there: how many of all accesses go to one place."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perfmodel.counting.atomics import SECTOR

PART = 512
"""So many bytes in a row of 1,024 are in one part of a second-level cache, see `parts_of`."""
SIZES = (SECTOR, 64, PART)
"""Blocks of so many bytes are places, beside single numbers: sectors, lines of processors, and what one part of a cache
has."""
MOST = 1 << 17
"""So many accesses are looked at."""
FEW = 64
"""So many blocks are told one by one."""

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Contention:
    """Says how often accesses of different work-groups go to one place.

    Attributes:
        shares: pairs of a block's bytes and the part of all accesses that goes to one of them, were they spread evenly
            over as many: of updates, to the busiest one.
        pairs: the chance that two of all accesses go to the same number. within: to the same one, in the 512 bytes of
            one part of the cache where that is most likely.
        blocks: the part of all accesses that each such part has, by its number; none where they are many.
    """

    shares: tuple[tuple[int, float], ...]
    pairs: float
    within: float
    blocks: tuple[tuple[int, float], ...] = ()

    def overlap(self, other: Contention) -> float:
        """Returns in how far two accesses go to the same blocks, which are told of both: 1 for all as often, 0 for
        none."""
        own, others = dict(self.blocks), dict(other.blocks)
        both = sum(part * others.get(block, 0.0) for block, part in own.items())
        return both / max(sum(part**2 for part in parts.values()) for parts in (own, others))


def parts_of(addresses: Integers) -> Integers:
    """Returns the number of the part of a second-level cache that has each address.

    Of 1,024 bytes in a row, one part has the first and the third 256, and another the second and the fourth, measured
    on an H200 (`benchmarks.updates`): updates of two places take half as long where these are in different parts.
    """
    return addresses // (2 * PART) * 2 + addresses // (PART // 2) % 2


def waiting_in_turn(addresses: Integers, together: Integers, item: int) -> NDArray[np.bool_]:
    """Returns which updates a sector takes one after the other: of those that a sub-group makes at once in a sector,
    those of the number that most of them go to.

    Args:
        together: a number for each update, the same for those that are made at once.
    """
    order = np.lexsort((addresses, together))
    address, at_once = addresses[order], together[order]
    firsts = np.flatnonzero(np.r_[True, (np.diff(address // item) != 0) | (np.diff(at_once) != 0)])
    counts = np.diff(np.r_[firsts, len(order)])  # of each number
    sector = np.cumsum(np.r_[0, (np.diff(address[firsts] // SECTOR) != 0) | (np.diff(at_once[firsts]) != 0)])
    by_count = np.lexsort((-counts, sector))
    is_busiest = np.zeros(len(firsts), bool)
    is_busiest[by_count[np.r_[True, np.diff(sector[by_count]) != 0]]] = True
    found = np.zeros(len(order), bool)
    found[order] = np.repeat(is_busiest, counts)
    return found


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
    order = np.argsort(groups, kind="stable")
    addresses, (_, starts) = addresses[order], np.unique(groups[order], return_index=True)
    if len(starts) < 2:
        return None
    made = np.diff(np.append(starts, len(addresses))).astype(np.float64)
    pairs = made.sum() ** 2 - (made**2).sum()
    found = []
    for size in (item, *SIZES):
        blocks, places = np.unique(parts_of(addresses) if size == PART else addresses // size, return_inverse=True)
        alike, busiest = _of_groups(np.split(places, starts[1:]), len(blocks))
        met = (np.bincount(places).astype(np.float64) ** 2 - alike) / pairs
        most = max(busiest - math.sqrt(busiest), 0.0) / made.sum() if are_updates else 0.0  # less what may be chance
        found.append((size, max(float(met.sum()), most)))
        if size == item:
            within = np.bincount(np.unique(parts_of(blocks * size), return_inverse=True)[1], met).max()
            both = float(met.sum()), float(within)
    told = zip(blocks.tolist(), (np.bincount(places) / len(places)).tolist(), strict=True)  # those of parts
    return Contention(tuple(found), *both, blocks=tuple(told) if len(blocks) <= FEW else ())


def _of_groups(of_groups: Sequence[Integers], places: int) -> tuple[NDArray[np.float64], float]:
    """Returns the pairs of accesses of one group at each place, and what all groups have at the place that is the
    busiest of the others."""
    others = np.bincount(np.concatenate(of_groups), minlength=places)
    pairs, busiest = np.zeros(places), 0
    for group in of_groups:
        own, counts = np.unique(group, return_counts=True)
        pairs[own] += counts.astype(np.float64) ** 2
        others[own] -= counts
        busiest += int(counts[own == np.argmax(others)].sum())
        others[own] += counts
    return pairs, float(busiest)


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
    each = [dict(part.blocks) for _, part in known]
    numbers = sorted(set().union(*each)) if all(each) else []
    blocks = tuple((number, of([own.get(number, 0.0) for own in each])) for number in numbers)
    return Contention(shares, of([part.pairs for _, part in known]), of([part.within for _, part in known]), blocks)
