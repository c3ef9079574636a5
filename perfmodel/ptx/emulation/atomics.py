"""Atomic updates of memory: each lane's one after the other, in the order of lanes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.in_turn import ALONE, exchanged_alone, updated_in_turn
from perfmodel.ptx.emulation.narrow_floats import decoded, encoded
from perfmodel.ptx.types import Type

Update = Callable[..., Any]

_AT_ONCE: dict[str, Any] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
_UPDATES: dict[str, Update] = {
    **_AT_ONCE,
    "exch": lambda old, b, c: b,
    "inc": lambda old, b, c: np.where(old >= b, old.dtype.type(0), old + old.dtype.type(1)),
    "dec": lambda old, b, c: np.where((old == 0) | (old > b), b, old - old.dtype.type(1)),
}


def changed(
    bytes_: NDArray[np.uint8], offsets: NDArray[np.int64], type_: Type, operation: str, b: Any, c: Any, is_wanted: bool
) -> NDArray[Any] | None:
    """Updates elements of a type in memory, and returns what each update found there if that is wanted."""
    if not type_.form:
        n_bytes = type_.numpy.itemsize
        return update(bytes_.view(type_.numpy), offsets // n_bytes, operation, b, c, is_wanted)
    cells = bytes_.view(f"u{type_.bits // type_.lanes // 8}")
    own, places = np.unique(offsets // cells.itemsize, return_inverse=True)
    values = decoded(cells[own], type_.form)
    found = update(values, places, operation, b, c, is_wanted)
    cells[own] = encoded(values, type_.form)
    return found


def update(
    cells: NDArray[Any], places: NDArray[np.int64], operation: str, b: Any, c: Any, is_wanted: bool
) -> NDArray[Any] | None:
    """Updates cells, and returns what each update found there if that is wanted."""
    if operation in _AT_ONCE and not is_wanted:
        _AT_ONCE[operation].at(cells, places, b)
        return None
    b, c = (np.broadcast_to(each, places.shape) for each in (b, c))
    if operation == ALONE:
        return exchanged_alone(cells, places, b, c)
    found = np.empty(places.shape, cells.dtype)
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    lengths = np.diff(np.r_[starts, len(ordered)])
    if operation == "add" and cells.dtype.kind in "iu":
        sums = np.cumsum(b[order], dtype=cells.dtype)
        before = sums - b[order]
        before = before - np.repeat(before[starts], lengths)
        found[order] = before + np.repeat(cells[ordered[starts]], lengths)
        np.add.at(cells, places, b)
        return found
    if operation == "cas":
        found[order] = _exchanged(cells, ordered, b[order], c[order])
        return found
    if operation in _AT_ONCE:
        in_turn = updated_in_turn(_AT_ONCE[operation], cells, ordered, b[order])
        if in_turn is not None:
            found[order] = in_turn
            return found
    change = _UPDATES[operation]
    rank = np.arange(len(ordered)) - np.repeat(starts, lengths)
    by_rank = np.argsort(rank, kind="stable")
    ends = np.cumsum(np.bincount(rank))
    begin = 0
    for end in ends.tolist():
        now = order[by_rank[begin:end]]
        at = places[now]
        old = cells[at]
        found[now] = old
        cells[at] = change(old, b[now]) if operation in _AT_ONCE else change(old, b[now], c[now])
        begin = end
    return found


def _exchanged(cells: NDArray[Any], places: NDArray[np.int64], expected: Any, new: Any) -> NDArray[Any]:
    """Puts new numbers where the expected ones are found, and returns what is found.

    As many threads wait at one place, and one of them finds what it expects, all up to the next such one are done at
    once.

    Args:
        places: in ascending order.
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
