"""The memory of an emulated launch: arrays and variables at addresses of their own, shared and local memory by lane.

Addresses are one flat space, as generic addresses of PTX are: global and constant memory lie where they lie, shared
and local memory in windows of their own.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.distinct import distinct
from perfmodel.basics.errors import EmulationError
from perfmodel.basics.lazy_bytes import lazy_bytes
from perfmodel.ptx.emulation.lanes import Lanes
from perfmodel.ptx.emulation.launch import Image

SHARED, LOCAL, STACK, GLOBAL = 1 << 56, 1 << 57, 3 << 56, 1 << 40
"""The windows of shared and local memory begin here, that of parameters of calls, and global memory."""
GAP = 1 << 20
PAGE_BITS = 14
NOWHERE = "where nothing lies"
PAGE = 1 << PAGE_BITS
"""Contents are made or copied in pages of so many bytes, as they are touched."""
SMALL = 1 << 18
"""Arrays that are given are always copied at once if they have no more bytes."""
MOST_BYTES = 1 << 36


class Allocation:
    """An array or variable in global or constant memory.

    Args:
        name: whose contents these are.
        contents: an array, which is copied; or None for zeros, or what `fill` makes.
        fill: writes what a page holds at first: it is given the page's bytes and number.
        is_lazy: whether pages of an array are copied as they are touched. is_kept: whether it is taken as it is.

    Attributes:
        pages_made, pages_copied: how many pages got their contents so.
        image: what is known of an image.
    """

    def __init__(
        self,
        name: str,
        base: int,
        n_bytes: int,
        contents: NDArray[Any] | None = None,
        fill: Any = None,
        is_lazy: bool = False,
        is_kept: bool = False,
    ):
        if n_bytes > MOST_BYTES:
            raise EmulationError(f"array {name!r} has {n_bytes} bytes, more than are emulated; choose smaller sizes")
        self.name, self.base, self.n_bytes = name, base, n_bytes
        padded = -(-max(n_bytes, 1) // 16) * 16
        try:
            self.bytes = lazy_bytes(padded)
        except (MemoryError, OSError) as error:
            raise EmulationError(f"array {name!r} of {n_bytes} bytes finds no memory; choose smaller sizes") from error
        self.pages_made = self.pages_copied = 0
        self.image: Image | None = None
        self._given: NDArray[np.uint8] | None = None
        if contents is not None:
            raw = np.ascontiguousarray(contents).reshape(-1).view(np.uint8)
            if is_kept and len(raw) == padded:
                self.bytes = raw.view()
                self.bytes.flags.writeable = False
            elif is_lazy and len(raw) > SMALL:
                self._given = raw
            else:
                self.bytes[: len(raw)] = raw
            fill = None if self._given is None else self._copy
        self.fill = fill
        self.filled = np.zeros(-(-padded // PAGE), bool) if self.fill else None

    def touch(self, offsets: NDArray[np.int64]) -> None:
        """Makes sure that what is accessed has its contents."""
        if self.filled is None or self.fill is None:
            return
        pages = offsets >> PAGE_BITS
        filled = self.filled[pages]
        if filled.all():
            return
        for page in distinct(pages[~filled]).tolist():
            self.fill(self.bytes[page * PAGE : (page + 1) * PAGE], page)
            self.filled[page] = True
            self.pages_made += self._given is None
            self.pages_copied += self._given is not None
        if self.filled.all():
            self.fill = self.filled = None

    def _copy(self, page: NDArray[np.uint8], number: int) -> None:
        assert self._given is not None
        raw = self._given[number * PAGE : (number + 1) * PAGE]
        page[: len(raw)] = raw

    def contents(self) -> NDArray[np.uint8]:
        """Returns all bytes."""
        if self.filled is not None:
            self.touch(np.flatnonzero(~self.filled) * PAGE)
        return self.bytes[: self.n_bytes]


class Memory:
    """The memory of some emulated blocks.

    Attributes:
        is_filled: whether what arrays hold at first matters.
        is_lazy: whether arrays that are given are copied page by page, as they are touched: then nobody changes them
            meanwhile, or asks for what they hold in the end.

    Args:
        shared, local, stack: the bytes of a block's shared memory, and of a thread's local memory and parameters of
            calls.
    """

    def __init__(self, lanes: Lanes, shared: int, local: int, stack: int) -> None:
        self.lanes = lanes
        self.sizes = {"shared": _padded(shared), "local": _padded(local), "stack": _padded(stack)}
        if self.sizes["local"] * lanes.total > MOST_BYTES // 16:
            raise EmulationError(f"threads have {local} bytes of local memory each, more than is emulated")
        self.shared = np.zeros(self.sizes["shared"] * lanes.count, np.uint8)
        self.local = np.zeros(self.sizes["local"] * lanes.total, np.uint8)
        self.stack = np.zeros(self.sizes["stack"] * lanes.total, np.uint8)
        self.is_filled, self.is_lazy = True, False
        self.allocations: list[Allocation] = []
        self._starts: list[int] = []
        self._next = GLOBAL
        self._shared_base = lanes.block_of * self.sizes["shared"]
        self._lane = np.arange(lanes.total)

    def allocate(
        self, name: str, n_bytes: int, contents: NDArray[Any] | None = None, fill: Any = None, is_kept: bool = False
    ) -> Allocation:
        """Lays out an array behind the others; one that is kept is not copied, as nothing is written to it."""
        found = Allocation(name, self._next, n_bytes, contents, fill, self.is_lazy, is_kept)
        self._next += -(-(n_bytes + GAP) // GAP) * GAP
        self.allocations.append(found)
        self._starts.append(found.base)
        return found

    @property
    def pages(self) -> tuple[int, int]:
        """The pages of random contents that were made, and those that were copied from arrays that are given."""
        made = sum(each.pages_made for each in self.allocations)
        return made, sum(each.pages_copied for each in self.allocations)

    def allocation(self, address: int) -> Allocation | None:
        """Returns what lies at an address; nothing beyond its end."""
        place = bisect_right(self._starts, address) - 1
        if place < 0:
            return None
        found = self.allocations[place]
        return found if address < found.base + max(found.n_bytes, 1) else None

    def located(
        self, space: str, addresses: NDArray[np.uint64], index: NDArray[np.intp], n_bytes: int, line: int
    ) -> list[tuple[str, Allocation | None, NDArray[np.uint8], NDArray[np.int64], Any]]:
        """Finds where accesses go to: for each part of memory its space, allocation and bytes, the offsets there, and
        which of the accesses they are (None for all).

        Args:
            addresses: one for each lane of `index`.
            n_bytes: of each access.

        Raises:
            EmulationError: for an address that nothing lies at.
        """
        if not len(index):
            return []
        place = addresses.view(np.int64)
        if space in ("shared", "local", "stack"):
            return [(space, None, *self._window(space, place, index, n_bytes, line), None)]
        first = int(place[0])
        own = self.allocation(first)
        if own is not None:
            offsets = place - own.base
            if np.minimum.reduce(offsets) >= 0 and int(np.maximum.reduce(offsets)) + n_bytes <= own.n_bytes:
                _check_aligned(offsets, n_bytes, line)
                if self.is_filled:
                    own.touch(offsets)
                return [("global", own, own.bytes, offsets, None)]
        return self._mixed(place, index, n_bytes, line)

    def _window(
        self, space: str, place: NDArray[np.int64], index: NDArray[np.intp], n_bytes: int, line: int
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        self.check_window(space, int(np.minimum.reduce(place)), int(np.maximum.reduce(place)), n_bytes, line)
        _check_aligned(place, n_bytes, line)
        if space == "shared":
            return self.shared, place + self._shared_base[index]
        return getattr(self, space), place + index * self.sizes[space]

    def check_window(self, space: str, least: int, most: int, n_bytes: int, line: int) -> None:
        """Refuses accesses beyond a space that every block or lane has of its own, by the ends of where they go."""
        size = self.sizes[space]
        if least < 0 or most + n_bytes > size:
            worst = most if most + n_bytes > size else least
            raise EmulationError(
                f"line {line} of the PTX accesses byte {worst} of {size} bytes of {space} memory; give a kernel that "
                "stays within, or the size of its dynamic shared memory"
            )

    def _mixed(
        self, place: NDArray[np.int64], index: NDArray[np.intp], n_bytes: int, line: int
    ) -> list[tuple[str, Allocation | None, NDArray[np.uint8], NDArray[np.int64], Any]]:
        """Finds the parts of memory of generic addresses, which may differ from lane to lane."""
        found: list[tuple[str, Allocation | None, NDArray[np.uint8], NDArray[np.int64], Any]] = []
        left = np.ones(len(place), bool)
        while left.any():
            first = int(place[np.argmax(left)])
            for space, window in (("shared", SHARED), ("local", LOCAL), ("stack", STACK)):
                if window <= first < window + (1 << 32):
                    which = left & (place >= window) & (place < window + (1 << 32))
                    bytes_, offsets = self._window(space, place[which] - window, index[which], n_bytes, line)
                    found.append((space, None, bytes_, offsets, which))
                    break
            else:
                own = self.allocation(first)
                if own is None:
                    raise EmulationError(self._nowhere(first, line))
                which = left & (place >= own.base) & (place < own.base + max(own.n_bytes, 1))
                offsets = place[which] - own.base
                if int(offsets.max()) + n_bytes > own.n_bytes:
                    raise EmulationError(self._nowhere(own.base + own.n_bytes, line))
                _check_aligned(offsets, n_bytes, line)
                if self.is_filled:
                    own.touch(offsets)
                found.append(("global", own, own.bytes, offsets, which))
            left = left & ~which
        return found

    def _nowhere(self, address: int, line: int) -> str:
        near = min(self.allocations, key=lambda each: _distance(each, address), default=None)
        if near is None or _distance(near, address) > GAP:
            return f"line {line} of the PTX accesses address {address:#x}, {NOWHERE}; give its arrays"
        return (
            f"line {line} of the PTX accesses byte {address - near.base} of {near.name!r}, which has {near.n_bytes}; "
            "give it more elements, or the sizes that it is for"
        )


def variables_at(variables: Mapping[str, Any], space: str) -> tuple[dict[str, int], int]:
    """Returns where the variables of a space lie one after the other, those of no size at the end, and their bytes."""
    found: dict[str, int] = {}
    end = 0
    own = [each for each in variables.values() if each.space == space]
    for variable in sorted(own, key=lambda each: each.n_bytes == 0):
        end = -(-end // variable.align) * variable.align
        found[variable.name] = end
        end += variable.n_bytes
    return found, end


def _check_aligned(offsets: NDArray[np.int64], n_bytes: int, line: int) -> None:
    if n_bytes > 1 and np.bitwise_or.reduce(offsets) & (n_bytes - 1):
        raise EmulationError(f"line {line} of the PTX accesses {n_bytes} bytes at an address that is no multiple of it")


def _distance(allocation: Allocation, address: int) -> int:
    return max(allocation.base - address, address - allocation.base - allocation.n_bytes, 0)


def _padded(n_bytes: int) -> int:
    return -(-n_bytes // 16) * 16
