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
        """Returns groups and unit numbers (within the group's part) that are touched here or in another footprint."""
        if self._parts is None or (other is not None and other._parts is None):
            found = _nonzero(self.marks if other is None else self.marks | other.marks)
        else:
            parts = self._parts if other is None else self._parts | other._parts
            numbers = parts.nonzero()[0]
            marks = self.marks.reshape(-1, _PART)[numbers]
            if other is not None:
                marks |= other.marks.reshape(-1, _PART)[numbers]
            place = _nonzero(marks.reshape(-1))
            found = numbers[place // _PART] * _PART + place % _PART
        if self.groups == 1:
            return np.zeros_like(found), found
        units = self.stride // self.unit
        return found // units, found % units


def _nonzero(marks: Bytes) -> Integers:
    """Returns where bytes are not zero; eight at a time first, as most are."""
    groups = marks.view(np.uint64).nonzero()[0]
    row, column = marks.reshape(-1, 8)[groups].view(bool).nonzero()
    return groups[row] * 8 + column


def sizes(
    touched: tuple[Integers, Integers], groups: int, unit: int, blocks: Sequence[int], low: int, high: int
) -> Integers:
    """Returns, by group, bytes touched between two offsets, and blocks of each size that they are in."""
    group, number = touched
    if groups == 1:  # which are in order
        first, last = number.searchsorted((-(-low // unit), -(-high // unit)))
        return np.array([[(last - first) * unit, *(_changes(number[first:last] * unit // size) for size in blocks)]])
    inside = (number * unit >= low) & (number * unit < high)
    group, number = group[inside], number[inside]
    found = [np.bincount(group, minlength=groups) * unit]
    for block in blocks:
        within = number * unit // block
        # They are in order, so that the blocks of a group are too.
        new = np.ones(len(within), bool)
        new[1:] = (within[1:] != within[:-1]) | (group[1:] != group[:-1])
        found.append(np.bincount(group[new], minlength=groups))
    return np.stack(found, axis=1).astype(np.int64)


def _changes(ordered: Integers) -> int:
    """Returns how many numbers there are among some in order."""
    return int(np.count_nonzero(ordered[1:] != ordered[:-1])) + bool(len(ordered))


_ONES = {1: 1, 2: 0x0101, 4: 0x01010101, 8: 0x0101010101010101}
