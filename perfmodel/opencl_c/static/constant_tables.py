"""Tables in constant memory have known contents: what is read is a number, or one of a few, by where it is read."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from perfmodel.counting.symbolic import EVERYWHERE, Bounds, Pieces, Polynomial, both, merged, number
from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c.arithmetic import number_as
from perfmodel.opencl_c.static.known_numbers import Known, known
from perfmodel.opencl_c.types import BOOL, Scalar, Vector, element_of

MOST_READ, MOST_NUMBERS = 64, 16
"""Elements of a table that may be read by one access, and numbers that are there."""


class ConstantTables:
    """Holds the bytes of the objects in a kernel's constant memory."""

    def __init__(self, objects: Iterable[low.MemoryObject]) -> None:
        self._bytes = {each.name: bytes_of(each) for each in objects if each.space == "constant"}

    def value(self, variable: str, offset: Pieces, type_: Scalar, bounds: Bounds) -> Pieces | Known | None:
        """Returns what stands in an object at an offset in bytes; None where it may be one of many numbers."""
        content = self._bytes.get(variable)
        if content is None or type_ == BOOL:
            return None
        if type_.is_float:
            at = offset.single.constant if offset.single is not None else None
            if at is None or not 0 <= at <= len(content) - type_.size:
                return None
            return known(np.frombuffer(content, type_.numpy, 1, at)[0], type_)
        pieces: list[tuple[str, Polynomial]] = []
        for condition, place in offset.pieces:
            text, (least, most) = place.isl(), place.bounds(bounds)
            first, last = max(least or 0, 0), len(content) - type_.size
            places = range(first, min(last, last if most is None else most) + 1, type_.size)
            if text is None or len(places) > MOST_READ:
                return None
            for at in places:
                there = number(int(np.frombuffer(content, type_.numpy, 1, at)[0]))
                here = EVERYWHERE if place.constant is not None else f"{text} = {at}"
                pieces.append((both(condition, here), there))
        return merged(pieces) if 0 < len({value for _, value in pieces}) <= MOST_NUMBERS else None


def bytes_of(table: low.MemoryObject) -> bytes | None:
    """Returns what an object in constant memory holds; None where there is a pointer in it."""
    found = bytearray(table.type.size)
    for offset, type_, value in table.initial:
        if not isinstance(type_, Scalar | Vector):
            return None
        numbers = value if isinstance(value, tuple) else (value,) * (type_.width if isinstance(type_, Vector) else 1)
        element, step = element_of(type_), element_of(type_).size
        for place, each in enumerate(numbers):
            wrapped = number_as(each, element)
            if wrapped is None:
                return None
            at = offset + place * step
            found[at : at + step] = np.asarray(wrapped, element.numpy).tobytes()
    return bytes(found)
