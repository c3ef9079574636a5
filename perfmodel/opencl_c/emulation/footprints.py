"""A footprint has the bytes of memory that the groups of a batch touch."""

from __future__ import annotations

import mmap
import sys
from collections.abc import Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from perfmodel.opencl_c.emulation.lanes import Integers

Bytes = NDArray[np.uint8]

_SMALL = 1 << 17
"""Memory up to this size is taken at once."""
_PART = 512
_PARTED = 1 << 16
"""More marks than this are gone through only where there are any."""


def lazy_bytes(size: int) -> Bytes:
    """Returns zeros, of which only what is touched takes memory, however large `size` is."""
    if size <= _SMALL or not sys.platform.startswith("linux"):
        return np.zeros(size, np.uint8)
    no_reserve = getattr(mmap, "MAP_NORESERVE", 0x4000)
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | no_reserve)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        # Huge pages would commit two megabytes for each byte that is touched.
        with suppress(OSError):
            memory.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(memory, np.uint8)


class Footprint:
    """A footprint has one byte (zero or one) for each `unit` bytes of one memory, by group: whether it is touched.

    Attributes:
        stride: bytes of the memory that belong to one group's part.
    """

    def __init__(self, groups: int, size: int, unit: int, stride: int | None = None) -> None:
        self.groups, self.size, self.unit = groups, size, unit
        self.stride = stride or -(-size // (128 * unit)) * 128 * unit
        marks = groups * self.stride // unit
        self.marks = lazy_bytes(-(-marks // _PART) * _PART)
        self._parts = np.zeros(len(self.marks) // _PART, bool) if marks > _PARTED else None
        self._views: dict[int, NDArray[np.unsignedinteger]] = {}

    def view(self, element: int) -> NDArray[np.unsignedinteger]:
        """Returns the marks, one number for each element of so many bytes."""
        found = self._views.get(element)
        if found is None:
            found = self._views[element] = self.marks.view(f"u{element // self.unit}")
        return found

    def mark(self, elements: Integers, element: int) -> None:
        """Marks elements of so many bytes, counted from the first group's start, as touched."""
        self.view(element)[elements] = _ONES[element // self.unit]
        if self._parts is not None:
            self._parts[elements // (_PART * self.unit // element)] = True

    def mark_bytes(self, addresses: Integers) -> None:
        units = addresses // self.unit
        self.marks[units] = 1
        if self._parts is not None:
            self._parts[units // _PART] = True

    def touched(self, other: Footprint | None = None) -> tuple[Integers, Integers]:
        """Returns the units that are touched here or in another footprint, by their numbers within the group's part,
        one group's after the other's; and at which place those of each group start."""
        if self._parts is None or (other is not None and other._parts is None):
            found = _nonzero(self.marks if other is None else self.marks | other.marks)
        else:
            parts = self._parts if other is None else self._parts | other._parts
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
