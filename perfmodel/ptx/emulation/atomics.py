"""Atomic updates of memory: each lane's one after the other, in the order of lanes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.in_turn import (
    ALONE,
    compared_in_turn,
    exchanged_alone,
    exchanged_in_turn,
    in_rounds,
    updated_in_turn,
)
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
_AROUND: dict[str, Update] = {
    "inc": lambda old, b: np.where(old >= b, old.dtype.type(0), old + old.dtype.type(1)),
    "dec": lambda old, b: np.where((old == 0) | (old > b), b, old - old.dtype.type(1)),
}
"""Counters that begin again behind their last number."""


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
    places, b, c = places[order], b[order], c[order]
    if operation == "cas":
        found[order] = compared_in_turn(cells, places, b, c)
    elif operation == "exch":
        found[order] = exchanged_in_turn(cells, places, b)
    elif operation in _AT_ONCE:
        found[order] = updated_in_turn(_AT_ONCE[operation], cells, places, b.astype(cells.dtype, copy=False))
    else:
        for now in in_rounds(places):
            old = found[order[now]] = cells[places[now]]
            cells[places[now]] = _AROUND[operation](old, b[now])
    return found
