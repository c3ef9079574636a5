"""A footprint has the bytes of memory that the groups of a batch touch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.lazy_bytes import lazy_bytes
from perfmodel.opencl_c.emulation.lanes import Integers

Bytes = NDArray[np.uint8]

_MARKED_AT_ONCE = 1 << 18
_PENDING = 1 << 14
"""So many places at which patterns were met wait to be marked together."""
_PART = 512
_PARTED = 1 << 16
"""More marks than this are gone through only where there are any."""


class Marked(Protocol):
    """Marks are elements of so many bytes, relative to where they were met."""

    @property
    def marks(self) -> Integers: ...

    @property
    def marked_bytes(self) -> int: ...


class Footprint:
    """A footprint has one byte (zero or one) for each `unit` bytes of one memory, by group: whether it is touched.

    Attributes:
        stride: bytes of the memory that belong to one group's part.
        pending: what was met where, in elements from the first group's start, and is marked when somebody asks.
        is_marked: something was.
    """

    def __init__(self, groups: int, size: int, unit: int, stride: int | None = None) -> None:
        self.groups, self.size, self.unit = groups, size, unit
        self.stride = stride or -(-size // (128 * unit)) * 128 * unit
        self.pending: list[tuple[Marked, int]] = []
        self.is_marked = False

    @cached_property
    def marks(self) -> Bytes:
        return lazy_bytes(-(-self._count // _PART) * _PART)

    @cached_property
    def _parts(self) -> NDArray[np.bool_] | None:
        return np.zeros(len(self.marks) // _PART, bool) if self._count > _PARTED else None

    @cached_property
    def _views(self) -> dict[int, NDArray[np.unsignedinteger]]:
        return {}

    @property
    def _count(self) -> int:
        return self.groups * self.stride // self.unit

    def meet(self, met: Marked, start: int) -> None:
        """Marks what was met at a place, some time before somebody asks."""
        self.pending.append((met, start))
        if len(self.pending) > _PENDING:
            self.mark_pending()

    def mark_pending(self) -> None:
        """Marks all that was met; of what came to one place only, much together."""
        places: dict[Marked, list[int]] = {}
        for met, start in self.pending:
            places.setdefault(met, []).append(start)
        self.pending.clear()
        together: dict[int, list[Integers]] = {}
        size = 0
        for met, starts in places.items():
            if len(starts) > 1:
                self.mark_at(met, np.array(starts))
                continue
            together.setdefault(met.marked_bytes, []).append(met.marks.ravel() + starts[0])
            size += met.marks.size
            if size > _MARKED_AT_ONCE:
                self._mark_together(together)
                size = 0
        self._mark_together(together)

    def _mark_together(self, together: dict[int, list[Integers]]) -> None:
        for element, marks in together.items():
            self._mark(np.concatenate(marks), element)
        together.clear()

    def mark_at(self, met: Marked, starts: Integers) -> None:
        """Marks what was met at many places."""
        marks = met.marks.ravel()
        step = max(1, _MARKED_AT_ONCE // len(marks))
        for first in range(0, len(starts), step):
            self._mark((marks + starts[first : first + step, np.newaxis]).ravel(), met.marked_bytes)

    def view(self, element: int) -> NDArray[np.unsignedinteger]:
        """Returns the marks, one number for each element of so many bytes."""
        self.mark_pending()
        return self._view(element)

    def _view(self, element: int) -> NDArray[np.unsignedinteger]:
        found = self._views.get(element)
        if found is None:
            found = self._views[element] = self.marks.view(f"u{element // self.unit}")
        return found

    def _mark(self, elements: Integers, element: int) -> None:
        """Marks elements of so many bytes, counted from the first group's start, as touched."""
        self.is_marked = True
        self._view(element)[elements] = _ONES[element // self.unit]
        if self._parts is not None:
            self._parts[elements // (_PART * self.unit // element)] = True

    def mark_bytes(self, addresses: Integers) -> None:
        self.is_marked = True
        units = addresses // self.unit
        self.marks[units] = 1
        if self._parts is not None:
            self._parts[units // _PART] = True

    def touched(self, other: Footprint | None = None) -> tuple[Integers, Integers]:
        """Returns the units that are touched here or in another footprint, by their numbers within the group's part,
        one group's after the other's; and at which place those of each group start."""
        for footprint in (self,) if other is None else (self, other):
            footprint.mark_pending()
        own, others = self._parts, None if other is None else other._parts
        if own is None or (other is not None and others is None):
            found = _nonzero(self.marks if other is None else self.marks | other.marks)
        else:
            parts = own if others is None else own | others
            numbers = parts.nonzero()[0]
            marks = self.marks.reshape(-1, _PART)[numbers]
            if other is not None:
                marks |= other.marks.reshape(-1, _PART)[numbers]
            place = _nonzero(marks.reshape(-1))
            found = place + ((numbers - np.arange(len(numbers))) * _PART)[place // _PART]
        if self.groups == 1:
            return found, np.array([0, len(found)])
        firsts = np.arange(self.groups + 1) * (self.stride // self.unit)
        starts = found.searchsorted(firsts)
        return found - firsts[:-1].repeat(np.diff(starts)), starts


def _nonzero(marks: Bytes) -> Integers:
    """Returns where bytes are not zero; eight at a time first, as most are."""
    groups = marks.view(np.uint64).nonzero()[0]
    row, column = marks.reshape(-1, 8)[groups].view(bool).nonzero()
    return groups[row] * 8 + column


def sizes(touched: tuple[Integers, Integers], unit: int, blocks: Sequence[int], low: int, high: int) -> Integers:
    """Returns, by group, bytes touched between two offsets, and blocks of each size that they are in.

    Args:
        touched: units, and where those of each group start, see `Footprint.touched`.
        blocks: powers of two, as the unit.
    """
    number, starts = touched
    first, last = -(-low // unit), -(-high // unit)
    if len(starts) == 2:  # of one group, which are in order
        number = number[slice(*number.searchsorted((first, last)))]
        return np.array([[len(number) * unit, *(_changes(number // max(block // unit, 1)) for block in blocks)]])
    if len(number) and (number.min() < first or number.max() >= last):
        inside = (number >= first) & (number < last)
        starts = np.concatenate([[0], inside.cumsum()])[starts]
        number = number[inside]
    found = [np.diff(starts) * unit]
    for block in blocks:
        within = number // max(block // unit, 1)
        # They are in order, so that the blocks of a group are too.
        new = np.ones(len(within) + 1, bool)
        np.not_equal(within[1:], within[:-1], out=new[1:-1])
        new[starts] = True
        new[-1] = False
        found.append(np.diff(new.nonzero()[0].searchsorted(starts)))
    return np.stack(found, axis=1).astype(np.int64)


def _changes(ordered: Integers) -> int:
    """Returns how many numbers there are among some in order."""
    return int(np.count_nonzero(ordered[1:] != ordered[:-1])) + bool(len(ordered))


_ONES = {1: 1, 2: 0x0101, 4: 0x01010101, 8: 0x0101010101010101}
