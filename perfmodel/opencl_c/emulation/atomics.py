"""Lanes whose atomic operations meet at one address go one after the other, in the order of the lanes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.in_turn import (
    ALONE,
    GIVEN_BACK,
    compared_in_turn,
    exchanged_alone,
    exchanged_in_turn,
    updated_in_turn,
)
from perfmodel.opencl_c.emulation.access_handlers import Handler
from perfmodel.opencl_c.emulation.lanes import Integers, Mask, Values

_UFUNCS: Mapping[str, np.ufunc] = {
    "add": np.add,
    "inc": np.add,
    "sub": np.subtract,
    "dec": np.subtract,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
_Array = NDArray[Any]


class AtomicHandler(Handler):
    is_alone = False

    def atomic(
        self,
        mask: Mask,
        operation: str,
        operands: tuple[Values, ...],
        wants_old: bool,
        pointer: Values,
        index: Values = None,
        extra: Values = None,
    ) -> Values:
        """Returns the old values where they are wanted, for all lanes."""
        pattern, base, missed = self.locate(mask, pointer, index, extra)
        lanes = mask.lanes
        if self.access.space != "local":
            self.context.note_update(self.access.number, pattern, base)
        if self.is_alone:
            operation = GIVEN_BACK if operation == "xchg" else ALONE
        if missed:
            addresses = self._active_addresses(mask, pointer, index, extra)
            old = np.zeros(len(lanes), self.dtype)
            for region, chosen in self.reachable(mask, addresses):
                usable = chosen[addresses[chosen] % self.element == 0]
                offsets = self.filled(region, lanes[usable], addresses[usable])
                picked = tuple(_active(operand, lanes[usable]) for operand in operands)
                places = offsets[:, 0] // self.element
                old[usable] = perform(operation, region.view(self.dtype), places, picked, True)
        else:
            self.log(pattern, base)
            data, places = self.place(pattern, base)
            picked = tuple(_active(operand, lanes) for operand in operands)
            old = perform(operation, data, places, picked, wants_old, pattern.has_repeats)
        if not wants_old:
            return None
        result = np.zeros(mask.layout.lanes, self.dtype)
        result[lanes] = old
        return result


def _active(operand: Values, lanes: Integers) -> _Array:
    return np.asarray(operand[lanes] if operand.ndim else np.broadcast_to(operand, len(lanes)))


def perform(
    operation: str,
    data: _Array,
    places: Integers,
    operands: tuple[_Array, ...],
    wants_old: bool,
    has_repeats: bool = True,
) -> _Array:
    """Changes `data` at the places, one after the other, and returns what was there before each change."""
    if operation == "load":
        return data[places]
    if operation == ALONE:
        return exchanged_alone(data, places, *operands)
    if operation == GIVEN_BACK:
        data[places] = operands[0]
        return np.zeros(len(places), data.dtype)
    if operation == "store":
        operation = "xchg"
    if operation in ("inc", "dec"):
        operands = (np.ones(len(places), data.dtype),)
    if not has_repeats:
        old = data[places]
        data[places] = _changed(operation, old, operands)
        return old
    if not wants_old and operation in _UFUNCS:
        _UFUNCS[operation].at(data, places, operands[0])
        return data[:0]
    if not wants_old and operation == "xchg":
        data[places] = operands[0]  # the last one stays
        return data[:0]
    return _in_turn(operation, data, places, operands)


def _changed(operation: str, old: _Array, operands: tuple[_Array, ...]) -> _Array:
    if operation == "xchg":
        return operands[0]
    if operation == "cmpxchg":
        return np.where(old == operands[0], operands[1], old)
    result: _Array = _UFUNCS[operation](old, operands[0])
    return result


def _in_turn(operation: str, data: _Array, places: Integers, operands: tuple[_Array, ...]) -> _Array:
    order = np.argsort(places, kind="stable")
    ordered, values = places[order], [operand[order].astype(data.dtype, copy=False) for operand in operands]
    found = np.empty(len(places), data.dtype)
    if operation == "xchg":
        found[order] = exchanged_in_turn(data, ordered, *values)
    elif operation == "cmpxchg":
        found[order] = compared_in_turn(data, ordered, *values)
    else:
        found[order] = updated_in_turn(_UFUNCS[operation], data, ordered, *values)
    return found
