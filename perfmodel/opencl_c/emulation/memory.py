"""A kernel's memory is its arguments' buffers, and the frames of local, private and constant memory.

A buffer is as large as it is on the device, but only what is touched takes memory here: pages are copied from the
user's array or made up when they are first met. A global address is a buffer's number and the byte offset in it, so
that any address tells what it points into; number 0 is nobody's, so that null pointers are found.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.distinct import distinct
from perfmodel.basics.lazy_bytes import lazy_bytes
from perfmodel.opencl_c.emulation.footprints import Bytes, Footprint
from perfmodel.opencl_c.emulation.lanes import Integers
from perfmodel.opencl_c.emulation.spare_memory import used_again
from perfmodel.opencl_c.types import Scalar, Vector

ADDRESS_BITS = 40
"""The low bits of an address, so many, are the offset in a buffer."""
PAGE = 256
_AHEAD = 63
"""So many pages are filled with one that follows a filled one: who goes through memory will want them next."""
_SPREAD = np.uint32(0x9E3779B9)
_MIXED = 256
"""So many pages of random numbers are made together."""
_AT_ONCE = 1 << 14
"""Whole buffers are filled by so many pages."""
_SMALL = 1 << 15
"""Buffers up to this size are filled at once, which is quicker than asking whether they are."""
_MOST_DRAWN = 1 << 18
"""So many pages of random numbers are kept of one source, and so many sources."""
_MOST_SOURCES = 32


def pages_of(size: int) -> int:
    return -(-max(size, 1) // PAGE)


class Region:
    """A region is a stretch of memory that accesses go to.

    Attributes:
        name: for people. origin: the address of its first byte. size: in bytes.
        data: its contents. lane_offsets: what each lane adds to addresses, in a frame that every lane or group has
            one of.
        loads, stores: what is touched; None where nobody asks (private memory).
        is_logged: accesses to it may be races.
    """

    def __init__(self, name: str, origin: int, size: int, data: Bytes, lane_offsets: Integers | None = None) -> None:
        self.name, self.origin, self.size, self.data = name, origin, size, data
        self.lane_offsets = lane_offsets
        self.loads: Footprint | None = None
        self.stores: Footprint | None = None
        self.is_logged = False
        self._views: dict[np.dtype[Any], NDArray[Any]] = {}

    @property
    def is_lazy(self) -> bool:
        return False

    def view(self, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Returns all of it as numbers of a type."""
        found = self._views.get(dtype)
        if found is None:
            whole = len(self.data) // dtype.itemsize * dtype.itemsize
            found = self._views[dtype] = self.data[:whole].view(dtype)
        return found

    def ensure(self, offsets: Integers) -> None:
        """Makes sure that the pages of these byte offsets are filled."""
        if self.is_lazy:
            self.ensure_pages(distinct(offsets // PAGE))

    def ensure_pages(self, pages: Integers) -> None:
        """Makes sure that these pages, in order, are filled."""


class Source(ABC):
    """A source says what a buffer holds before anybody writes to it."""

    @abstractmethod
    def pages(self, numbers: Integers) -> NDArray[np.uint8]:
        """Returns the contents of pages, one row each."""


class Buffer(Region):
    """A buffer is a region of global memory, filled page by page from a `Source`, or not at all (zeros).

    Attributes:
        element: bytes of a number in it, where that is not the type of what accesses it; None elsewhere.
        pixel: the type of such a number, or of several together.
    """

    element: int | None = None
    pixel: Scalar | Vector | None = None

    def __init__(self, name: str, number: int, size: int, source: Source | None) -> None:
        pages = pages_of(size)
        # What is not filled yet is never read, whatever it holds.
        data = lazy_bytes(pages * PAGE) if source is None else used_again(pages * PAGE)
        super().__init__(name, number << ADDRESS_BITS, size, data)
        self._source = source
        self._filled = np.zeros(pages, bool)
        if source is not None and pages * PAGE <= _SMALL:
            self.fill()

    @property
    def is_lazy(self) -> bool:
        return self._source is not None

    def ensure_pages(self, pages: Integers) -> None:
        if self._source is None:
            return
        filled = self._filled[pages]
        if np.count_nonzero(filled) < len(pages):
            pages = pages[~filled]
            first, last = int(pages[0]), int(pages[-1])
            if first and self._filled[first - 1] and last - first < len(pages):
                ahead = np.arange(first, min(last + _AHEAD, len(self._filled) - 1) + 1)
                pages = ahead[~self._filled[ahead]]
            self._fill(pages)

    def fill(self) -> None:
        """Fills all of it."""
        if self._source is not None:
            missing = (~self._filled).nonzero()[0]
            for start in range(0, len(missing), _AT_ONCE):
                self._fill(missing[start : start + _AT_ONCE])
            self._source = None

    def _fill(self, pages: Integers) -> None:
        assert self._source is not None
        self.data.reshape(-1, PAGE)[pages] = self._source.pages(pages)
        self._filled[pages] = True


@dataclass
class Copied(Source):
    """This source has the bytes of the user's array."""

    data: Bytes

    def pages(self, numbers: Integers) -> NDArray[np.uint8]:
        whole = len(self.data) // PAGE
        if whole and (not len(numbers) or numbers[-1] < whole):
            return self.data[: whole * PAGE].reshape(-1, PAGE)[numbers]
        rows = np.zeros((len(numbers), PAGE), np.uint8)
        for row, number in enumerate(numbers):
            part = self.data[number * PAGE : (number + 1) * PAGE]
            rows[row, : len(part)] = part
        return rows


@dataclass(frozen=True)
class Scattered(Source):
    """This source has random numbers that follow from the seed and their position, in whatever order they come."""

    dtype: np.dtype[Any]
    seed: int
    low: float
    high: float

    def pages(self, numbers: Integers) -> NDArray[np.uint8]:
        count = PAGE // self.dtype.itemsize
        rows = np.empty((len(numbers), PAGE), np.uint8)
        for start in range(0, len(numbers), _MIXED):  # so many that the intermediate results stay in a cache
            part = numbers[start : start + _MIXED]
            positions = (part[:, np.newaxis] * count + np.arange(count)).astype(np.uint64)
            rows[start : start + _MIXED] = self.values(positions).view(np.uint8)
        return rows

    def values(self, positions: NDArray[np.uint64]) -> NDArray[Any]:
        """Returns the numbers at positions, in rows."""
        low_key, high_key = _keys(self.seed)
        low_bits = positions.astype(np.uint32) ^ low_key
        if positions[-1, -1] >> np.uint64(32):
            low_bits ^= _mix((positions >> np.uint64(32)).astype(np.uint32) ^ high_key)
        mixed = _mix(low_bits)
        if self.dtype.kind == "f":
            unit: NDArray[Any]
            if self.dtype.itemsize == 8:
                unit = (mixed.astype(np.float64) + _mix(mixed ^ _SPREAD) * 2.0**-32) * 2.0**-32
            else:
                unit = (mixed >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)
            if (self.low, self.high) != (0, 1):
                unit = unit * unit.dtype.type(self.high - self.low) + unit.dtype.type(self.low)
            return unit.astype(self.dtype, copy=False)
        span = max(int(self.high) - int(self.low), 1)
        whole = mixed.astype(np.uint64)
        if span > 1 << 32:
            whole = whole << np.uint64(32) | _mix(mixed ^ _SPREAD)
        whole %= np.uint64(span)
        return (whole.astype(np.int64) + np.int64(int(self.low))).astype(self.dtype)


@dataclass(frozen=True)
class ScatteredStructs(Source):
    """This source has structs of random numbers: each number as a `Scattered` gives it, at its offset in the struct."""

    item_bytes: int
    numbers: tuple[tuple[int, Scattered], ...]

    def pages(self, numbers: Integers) -> NDArray[np.uint8]:
        begins = np.r_[0, (np.diff(numbers) != 1).nonzero()[0] + 1]
        if len(numbers) < 2 * len(begins) and int(numbers[-1]) * PAGE >> 32 == 0:
            parts = np.split(numbers, range(_MIXED, len(numbers), _MIXED))
            return np.concatenate([self._apart(part) for part in parts])
        return np.concatenate([self._run(int(run[0]), len(run)) for run in np.split(numbers, begins[1:])])

    def _apart(self, numbers: Integers) -> NDArray[np.uint8]:
        """Returns pages that lie anywhere, a row each."""
        starts = numbers * PAGE // self.item_bytes
        each = int((-(-(numbers + 1) * PAGE // self.item_bytes) - starts).max())
        items = np.zeros((len(numbers), each, self.item_bytes), np.uint8)
        places = (starts[:, np.newaxis] + np.arange(each))[:, :, np.newaxis] * len(self.numbers)
        for position, count, offset, source in self._alike:
            values = source.values(
                (places + np.arange(position, position + count)).astype(np.uint64).reshape(-1, count)
            )
            raw = np.ascontiguousarray(values).view(np.uint8).reshape(len(numbers), each, -1)
            items[:, :, offset : offset + raw.shape[2]] = raw
        skipped = numbers * PAGE - starts * self.item_bytes
        columns = skipped[:, np.newaxis] + np.arange(PAGE)
        return np.take_along_axis(items.reshape(len(numbers), -1), columns, axis=1)

    def _run(self, first: int, count: int) -> NDArray[np.uint8]:
        """Returns pages that follow each other, a row each."""
        start, end = first * PAGE // self.item_bytes, -(-(first + count) * PAGE // self.item_bytes)
        items = np.zeros((end - start, self.item_bytes), np.uint8)
        places = np.arange(start, end)[:, np.newaxis] * len(self.numbers)
        for position, count_, offset, source in self._alike:
            values = source.values((places + np.arange(position, position + count_)).astype(np.uint64))
            items[:, offset : offset + count_ * values.itemsize] = values.view(np.uint8)
        skipped = first * PAGE - start * self.item_bytes
        return items.reshape(-1)[skipped : skipped + count * PAGE].reshape(count, PAGE)

    @cached_property
    def _alike(self) -> list[tuple[int, int, int, Scattered]]:
        """The numbers of one source that lie side by side: the first one's position, how many, and its offset."""
        found: list[tuple[int, int, int, Scattered]] = []
        for position, (offset, source) in enumerate(self.numbers):
            if found:
                first, count, start, before = found[-1]
                if source == before and offset == start + count * source.dtype.itemsize:
                    found[-1] = (first, count + 1, start, before)
                    continue
            found.append((position, 1, offset, source))
        return found


class Drawn(Source):
    """This source keeps the numbers of another one that were asked for, for all emulations.

    Attributes:
        data, filled: what was asked for, and which pages that is.
    """

    def __init__(self, source: Source, count: int) -> None:
        self.source, self.data, self.filled = source, lazy_bytes(count * PAGE), np.zeros(count, bool)
        self.count = 0

    def pages(self, numbers: Integers) -> NDArray[np.uint8]:
        rows: NDArray[np.uint8] = self.data.reshape(-1, PAGE)
        missing = numbers[~self.filled[numbers]]
        if len(missing):
            rows[missing] = self.source.pages(missing)
            self.filled[missing] = True
            self.grow(len(missing))
        return rows[numbers]

    def grow(self, count: int) -> None:
        """Counts pages, and is forgotten once they are many."""
        self.count += count
        if self.count > _MOST_DRAWN:
            _drawn.pop((self.source, len(self.filled)), None)


class Unwritten(Buffer):
    """This buffer is never written to, so that all emulations can share what it holds."""

    def __init__(self, name: str, number: int, size: int, drawn: Drawn) -> None:
        Region.__init__(self, name, number << ADDRESS_BITS, size, drawn.data)
        self._source, self._filled, self._drawn = drawn.source, drawn.filled, drawn
        if len(drawn.data) <= _SMALL:
            self.fill()

    def _fill(self, pages: Integers) -> None:
        super()._fill(pages)
        self._drawn.grow(len(pages))


_drawn: dict[tuple[Source, int], Drawn] = {}


def drawn(source: Source, size: int) -> Drawn:
    """Returns a source that keeps its numbers, for a buffer of so many bytes."""
    count = pages_of(size)
    found = _drawn.get((source, count))
    if found is None:
        if len(_drawn) >= _MOST_SOURCES or sum(each.count for each in _drawn.values()) > _MOST_DRAWN:
            _drawn.clear()
        found = _drawn[source, count] = Drawn(source, count)
    return found


@lru_cache(64)
def _keys(seed: int) -> NDArray[np.uint32]:
    """Returns two keys of all bits: seeds next to each other must not give the same numbers in another order."""
    halves = np.array([seed % (1 << 32), (seed >> 32) % (1 << 32) + 1], np.uint64)
    return _mix(halves.astype(np.uint32) * _SPREAD)


def _mix(bits: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Spreads every bit over all others, one to one: multiplications by odd numbers and shifted exclusive ors."""
    bits = bits ^ (bits >> np.uint32(16))
    bits *= np.uint32(0x7FEB352D)
    bits ^= bits >> np.uint32(15)
    bits *= np.uint32(0x846CA68B)
    bits ^= bits >> np.uint32(16)
    return bits
