"""Threads of some blocks lie side by side in arrays, and masks say which of them take part."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

WARP = 32


class Lanes:
    """The lanes of some blocks: their threads, filled up to whole warps.

    Attributes:
        block, grid: threads of a block and blocks of the grid, by axis: always three.
        blocks: the ids of the blocks, a row for each axis.
        per_block: lanes of one block, a multiple of the warp's 32.
        is_thread: which lanes are threads.
    """

    def __init__(self, grid: Sequence[int], block: Sequence[int], chosen: Sequence[int]) -> None:
        self.block = tuple((*block, 1, 1)[:3])
        self.grid = tuple((*grid, 1, 1)[:3])
        self.threads = prod(self.block)
        self.per_block = -(-self.threads // WARP) * WARP
        self.count = len(chosen)
        self.total = self.count * self.per_block
        linear = np.asarray(chosen, np.int64)
        self.blocks = np.stack(_unravelled(linear, self.grid))
        thread = np.arange(self.per_block)
        self.items = np.stack(_unravelled(np.minimum(thread, self.threads - 1), self.block))
        self.is_thread = np.tile(thread < self.threads, self.count)
        self.block_of = np.repeat(np.arange(self.count), self.per_block)

    def item(self, axis: int) -> Any:
        """Returns the threads' ids along an axis."""
        if self.block[axis] == 1:
            return np.uint32(0)
        return np.tile(self.items[axis].astype(np.uint32), self.count)

    def block_id(self, axis: int) -> Any:
        """Returns the blocks' ids along an axis."""
        if self.grid[axis] == 1:
            return np.uint32(0)
        return np.repeat(self.blocks[axis].astype(np.uint32), self.per_block)

    @cached_property
    def in_block(self) -> NDArray[np.int64]:
        """The numbers of lanes within their blocks."""
        return np.tile(np.arange(self.per_block), self.count)


class Mask:
    """The lanes that take part in something; never changed."""

    def __init__(self, lanes: Lanes, active: NDArray[np.bool_]) -> None:
        self.lanes, self.active = lanes, active

    @cached_property
    def count(self) -> int:
        return int(np.count_nonzero(self.active))

    @cached_property
    def columns(self) -> NDArray[np.intp] | None:
        """The numbers within their block of the lanes that take part, if these are the same in all blocks, and some."""
        rows = self.active.reshape(self.lanes.count, -1)
        return np.flatnonzero(rows[0]) if rows[0].any() and bool((rows == rows[0]).all()) else None

    @cached_property
    def index(self) -> NDArray[np.intp]:
        return np.flatnonzero(self.active)

    @cached_property
    def within(self) -> NDArray[np.int64]:
        """The numbers within their blocks of the lanes in `index`."""
        return self.lanes.in_block[self.index]

    @cached_property
    def by_block(self) -> NDArray[np.int64]:
        """The number of lanes of each block that take part."""
        return np.asarray(np.add.reduce(self.active.reshape(self.lanes.count, -1), axis=1, dtype=np.int64))

    @cached_property
    def firsts(self) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.int64]]:
        """The blocks that take part, where in `index` each one's first lane is, and the block of each lane there."""
        counts = self.by_block
        taking = np.flatnonzero(counts)
        own = counts[taking]
        return taking, np.cumsum(own) - own, self.lanes.block_of[self.index]

    def warps(self, width: int) -> NDArray[np.bool_]:
        """Returns which sub-groups have a lane that takes part, for each block."""
        known: dict[int, NDArray[np.bool_]] = self.__dict__.setdefault("_warps", {})
        if width not in known:
            rows = self.active.reshape(self.lanes.count, -1)
            if rows.shape[1] % width:
                rows = np.pad(rows, ((0, 0), (0, width - rows.shape[1] % width)))
            known[width] = np.logical_or.reduce(rows.reshape(self.lanes.count, -1, width), axis=2)
        return known[width]

    def forget(self) -> None:
        """Gives back the memory of what follows from the mask, which is found again where it is needed."""
        for name in ("columns", "index", "within", "by_block", "firsts", "_warps"):
            self.__dict__.pop(name, None)

    def where(self, condition: Any) -> Mask:
        """Returns the lanes of these for which a condition, a bool or an array, holds."""
        return Mask(self.lanes, self.active & condition)

    def without(self, condition: Any) -> Mask:
        return Mask(self.lanes, self.active & ~np.asarray(condition))


def _unravelled(numbers: NDArray[np.int64], extents: Sequence[int]) -> list[NDArray[np.int64]]:
    """Returns coordinates, the first axis fastest."""
    found = []
    for extent in extents:
        found.append(numbers % extent)
        numbers = numbers // extent
    return found
