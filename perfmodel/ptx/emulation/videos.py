"""Video instructions: whole numbers of 32 bits, or packed parts of them, with a second operation behind the first."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from perfmodel.ptx.syntax import Instruction
from perfmodel.ptx.types import Type

Function = Callable[..., Any]
_FIRST: dict[str, Function] = {
    "vadd": np.add,
    "vsub": np.subtract,
    "vabsdiff": lambda a, b: np.abs(a - b),
    "vmin": np.minimum,
    "vmax": np.maximum,
    "vavrg": lambda a, b: (a + b + (a + b >= 0)) >> 1,
}
_SECOND: dict[str, Function] = {"add": np.add, "min": np.minimum, "max": np.maximum}
_NAME = re.compile(r"(v[a-z]+)([24]?)")


def video(instruction: Instruction) -> tuple[Function, list[Type], Type] | None:
    """Returns what a video instruction computes, the types of its operands and of its result; None for any other."""
    named = _NAME.fullmatch(instruction.opcode)
    if named is None or named[1] not in _FIRST or len(instruction.types) != 3:
        return None
    to, *sources = instruction.types
    parts = int(named[2] or 1)
    first = _FIRST[named[1]]
    second = next((_SECOND[word] for word in instruction.modifiers if word in _SECOND), None)

    def compute(a: Any, b: Any, *third: Any) -> Any:
        found = [_stored(first(*both), to, 32 // parts, instruction.has("sat")) for both in _parted(a, b, parts)]
        if second is None:
            return _joined(found, parts).astype(to.raw).view(to.numpy)
        if parts > 1:  # which adds up all parts
            return (sum(found) + third[0].astype(np.int64)).astype(to.raw).view(to.numpy)
        return second(found[0].astype(to.raw).view(to.numpy), third[0])

    return compute, [*sources, to][: len(instruction.operands) - 1], to


def _parted(a: Any, b: Any, parts: int) -> list[tuple[Any, Any]]:
    """Returns the numbers in two registers, part by part, with room for whatever is computed of them."""
    bits = 32 // parts

    def part(number: Any, place: int) -> Any:
        field = (number.astype(np.int64) >> (place * bits)) & ((1 << bits) - 1)
        return np.where(field >> (bits - 1), field - (1 << bits), field) if number.dtype.kind == "i" else field

    return [(part(a, place), part(b, place)) for place in range(parts)]


def _stored(value: Any, to: Type, bits: int, is_saturated: bool) -> Any:
    """Returns what so many bits of a type keep of a number."""
    least, most = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if to.kind == "s" else (0, (1 << bits) - 1)
    if is_saturated:
        return np.clip(value, least, most)
    field = value & ((1 << bits) - 1)
    return np.where(field > most, field - (1 << bits), field)


def _joined(found: list[Any], parts: int) -> Any:
    bits = 32 // parts
    whole = np.zeros((), np.int64)
    for place, each in enumerate(found):
        whole = whole | ((each & ((1 << bits) - 1)) << (place * bits))
    return whole
