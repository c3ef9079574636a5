"""Updates of the same places in turn: what each finds there, and what they leave; or each as if it came alone.

Whoever calls these gives the updates in ascending order of their places, those of one place in the order in which they
come, and numbers of the cells' type.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

ALONE = "alone"
"""The operation of a comparison and exchange that each lane makes as if no other came to its place."""
GIVEN_BACK = "given back"
"""The operation of an exchange that gives back a sum to where nothing was left, as if no other lane came there."""
_Array = NDArray[Any]


def updated_in_turn(function: np.ufunc, cells: _Array, places: NDArray[np.int64], values: _Array) -> _Array:
    """Updates cells by a function of what is there and a value, and returns what each update found.

    Sums of whole numbers are made all at once. Of other updates, those of the places with most of them are made place
    by place, and those of all other places in rounds, in each of which one comes to its place.
    """
    found = np.empty(len(places), cells.dtype)
    if not len(places):
        return found
    firsts, counts = _runs(places)
    if function in (np.add, np.subtract) and cells.dtype.kind in "iu":
        # Whole numbers wrap around, so that differences of running sums are right whatever they reach.
        moved = values if function is np.add else np.negative(values)
        sums = np.cumsum(moved, dtype=cells.dtype)
        before = sums - moved
        found[:] = before + np.repeat(cells[places[firsts]] - before[firsts], counts)
        cells[places[firsts]] += sums[firsts + counts - 1] - before[firsts]
        return found
    by_count = np.argsort(counts)[::-1]
    steps = np.arange(len(counts) + 1) + np.append(counts[by_count], 0)  # with so many places by themselves
    alone = by_count[: int(np.argmin(steps))]
    for first, count in zip(firsts[alone].tolist(), counts[alone].tolist(), strict=True):
        cell, end = places[first], first + count
        running = function.accumulate(np.r_[cells[cell], values[first:end]], dtype=cells.dtype)
        found[first:end], cells[cell] = running[:-1], running[-1]
    is_left = np.ones(len(counts), bool)
    is_left[alone] = False
    left = np.flatnonzero(np.repeat(is_left, counts))
    for now in in_rounds(places[left]):
        own = left[now]
        found[own] = cells[places[own]]
        cells[places[own]] = function(found[own], values[own])
    return found


def in_rounds(places: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Yields the numbers of the first updates of all places, then of the second, and so on."""
    if not len(places):
        return
    firsts, counts = _runs(places)
    turns = np.arange(len(places)) - np.repeat(firsts, counts)
    yield from np.split(np.argsort(turns, kind="stable"), np.cumsum(np.bincount(turns))[:-1])


def exchanged_in_turn(cells: _Array, places: NDArray[np.int64], new: _Array) -> _Array:
    """Puts new numbers into cells, and returns what each finds there."""
    found = np.empty(len(places), cells.dtype)
    if len(places):
        firsts, counts = _runs(places)
        found[1:] = new[:-1]
        found[firsts] = cells[places[firsts]]
        cells[places[firsts]] = new[firsts + counts - 1]
    return found


def compared_in_turn(cells: _Array, places: NDArray[np.int64], expected: _Array, new: _Array) -> _Array:
    """Puts new numbers where the expected ones are found, and returns what is found.

    As many updates wait at one place, and one of them finds what it expects, all up to the next such one are made at
    once.
    """
    cell, group = np.unique(places, return_inverse=True)
    found = np.empty(places.shape, cells.dtype)
    left = np.arange(len(places))
    while len(left):
        found[left] = cells[places[left]]
        met = left[expected[left] == found[left]]
        groups, first = np.unique(group[met], return_index=True)
        cells[cell[groups]] = new[met[first]]
        last = np.full(len(cell), len(places))
        last[groups] = met[first]
        left = left[left > last[group[left]]]
    return found


def exchanged_alone(cells: _Array, places: NDArray[np.int64], expected: _Array, new: _Array) -> _Array:
    """Puts new numbers where the expected ones are found, and returns what is found, for each update as if no other
    came to its place."""
    found: _Array = cells[places]
    met = found == expected
    cells[places[met]] = new[met]
    return found


def _runs(places: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns where the updates of each place begin, and how many there are."""
    firsts = np.flatnonzero(np.r_[True, places[1:] != places[:-1]])
    return firsts, np.diff(np.r_[firsts, len(places)])
