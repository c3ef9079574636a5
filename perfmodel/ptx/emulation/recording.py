"""Records what emulated blocks execute: how often, by how many lanes, and where accesses go."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.ptx.emulation.lanes import Lanes, Mask

MOST_PENDING = 256
PARTS = 4
"""Iterations that stand for others are those of so many parts of a loop, or of a multiple of it."""
DECIDED = PARTS
"""The number of a part for what only some lanes execute in such iterations, as data decide: others know other data."""
MOST_ROWS = 50_000
"""So many executions at regular addresses are kept of one access."""
MOST_ADDRESSES = 2_000_000
"""So many addresses are kept of one access whose addresses are not regular; of more, how often it was executed."""
NOWHERE = np.iinfo(np.int64).min
"""Stands for the place of a block that takes no part."""


class Tally:
    """Counts executions of something by lanes, sub-groups and blocks.

    Attributes:
        parts: of the executions that others stand for, those by lanes, sub-groups and blocks, by the number of their
            part; empty without such.
    """

    def __init__(self, lanes: Lanes, width: int) -> None:
        self._width = width
        self._pending: dict[int, tuple[Mask, int]] = {}
        self._items = np.zeros(lanes.count, np.int64)
        self._warps = np.zeros((lanes.count, -(-lanes.per_block // width)), np.int64)
        self._variance = np.zeros(self._warps.shape)
        self.parts: dict[int, NDArray[np.int64]] = {}

    def add(self, mask: Mask, times: int = 1, part: int | None = None) -> None:
        """Counts executions; with the number of a part, those that others stand for."""
        if part is not None:
            counts = np.stack([mask.by_block, mask.warps(self._width).sum(axis=1), mask.by_block > 0])
            self.parts[part] = self.parts.get(part, 0) + times * counts
            if part == DECIDED:  # other iterations may have other lanes: each such execution is as many by chance
                self._variance += float(times) ** 2 * mask.warps(self._width)
        key = id(mask)
        before = self._pending.get(key)
        self._pending[key] = (mask, times if before is None else before[1] + times)
        if len(self._pending) > MOST_PENDING:
            self._add_up()

    def _add_up(self) -> None:
        for mask, times in self._pending.values():
            self._items += times * mask.by_block
            self._warps += times * mask.warps(self._width)
        self._pending.clear()

    def by_block(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Returns the executions of each block by lanes, by sub-groups, and by the one of these that has most."""
        self._add_up()
        return self._items, self._warps.sum(axis=1), self._warps.max(axis=1)

    def by_subgroup(self) -> NDArray[np.int64]:
        """Returns the executions by each sub-group of the blocks, in which any of its lanes takes part.

        Where some of them stand for many others, as data decide, sub-groups differ by chance; what they differ by is
        taken to be as much less as chance has a part in it (W. James, C. Stein, Estimation with quadratic loss, 1961).
        """
        self._add_up()
        warps = self._warps.reshape(-1)
        chance = float(self._variance.mean())
        if not chance:
            return warps
        mean, variance = float(warps.mean()), float(warps.var())
        return np.rint(mean + max(0.0, 1 - chance / variance) * (warps - mean) if variance else warps).astype(np.int64)


@dataclass(eq=False)
class Addresses:
    """The addresses that one access of one array goes to.

    Attributes:
        name: of the array; empty for shared and local memory.
        strides: bytes from a thread to the next one along each axis of the block; None where that is not constant, and
            0 for an axis along which no two threads were seen.
        layout: where the threads of a block lie to each other, where that is not by strides but the same in all blocks,
            as of tiles whose rows are shared out over the threads of one axis; None otherwise.
        along: the bytes from the thread at the origin to each lane of a block, by strides or layout; None before the
            first execution.
        rows: for each execution at regular addresses, its lanes and for each block where the thread at the origin would
            access.
        series: likewise for executions that follow each other and were not run: the lanes, the place of the one before,
            by how much each block's place moves from one to the next, and how many there are.
        scattered: for each execution at other addresses, its lanes and their addresses.
        left_out: executions at other addresses of which nothing was kept.
        beyond: executions by lanes at regular addresses, of which nothing was kept as there were too many.
        row_bytes: of an image's rows, which lie in tiles; 0 for arrays.
        is_thinned: whether some executions stand for others, so that lanes may be in different iterations of a loop,
            and regular addresses look as if they were not.
    """

    space: str
    name: str
    n_bytes: int
    lanes: Lanes
    strides: list[int | None] = field(default_factory=lambda: [None, None, None])
    layout: NDArray[np.int64] | None = None
    rows: list[tuple[Mask, NDArray[np.int64]]] = field(default_factory=list)
    series: list[tuple[Mask, NDArray[np.int64], NDArray[np.int64], int]] = field(default_factory=list)
    scattered: list[tuple[Mask, NDArray[np.int64]]] = field(default_factory=list)
    left_out: int = 0
    beyond: int = 0
    row_bytes: int = 0
    is_thinned: bool = False
    _kept: int = 0
    along: Any = None
    _laid: Any = None
    _seen: Any = None
    _looked_through: int = 0

    def add(self, mask: Mask, addresses: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Notes one execution, with the address of each lane that takes part, in bytes from the array's start.

        Returns:
            Where the thread at the origin of each block would access; None where that is not regular.
        """
        base = self._regular(mask, addresses)
        if base is not None:
            self._keep(mask, base)
        elif self.is_thinned and self.rows and self.is_regular:
            self.beyond += mask.count
        elif self._kept < MOST_ADDRESSES:
            self._kept += len(addresses)
            self.scattered.append((mask, addresses))
        else:
            self.left_out += 1
        return base

    def add_one(self, mask: Mask, address: int) -> NDArray[np.int64] | None:
        """Notes one execution at one address for all lanes, as `add` does."""
        if self.along is None or self.along.any():
            return self.add(mask, np.full(mask.count, address))
        base = np.where(mask.by_block > 0, np.int64(address), NOWHERE)
        self._keep(mask, base)
        return base

    def _keep(self, mask: Mask, base: NDArray[np.int64]) -> None:
        if len(self.rows) < MOST_ROWS:
            self.rows.append((mask, base))
        else:
            self.beyond += mask.count

    def add_series(self, mask: Mask, row: NDArray[np.int64], step: NDArray[np.int64], count: int) -> None:
        """Notes executions behind one at these addresses, each a step further."""
        self.series.append((mask, row, step, count))

    @property
    def executions(self) -> int:
        """The number of executions by lanes, of those whose addresses are kept."""
        known = [*self.rows, *self.scattered]
        return (
            self.beyond
            + sum(mask.count for mask, _ in known)
            + sum(mask.count * count for mask, _, _, count in self.series)
        )

    @property
    def is_regular(self) -> bool:
        return not self.scattered and not self.left_out

    def _regular(self, mask: Mask, addresses: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Returns where each block's thread at the origin would access; None where blocks differ in more than that."""
        if self.along is None:
            self._find_strides(mask, addresses)
        found = self._rest(mask, addresses)
        if found is None and None in self.strides and self._find_strides(mask, addresses):
            found = self._rest(mask, addresses)
        if found is None and self.lanes.count > 1 and self.is_regular:
            before = self.layout, self._laid, self.along
            found = self._rest(mask, addresses) if self._find_layout(mask, addresses) else None
            if found is None:
                self.layout, self._laid, self.along = before
        return found

    def _find_layout(self, mask: Mask, addresses: NDArray[np.int64]) -> bool:
        """Finds where threads lie to each other that have not been seen yet; returns whether there were any."""
        lanes = self.lanes
        active = mask.active.reshape(lanes.count, lanes.per_block)
        full = np.zeros(active.shape, np.int64)
        full[active] = addresses
        addresses = full
        layout, laid = self.layout, self._laid
        if layout is None:
            layout, laid = self.along.copy(), self._seen_lanes()
        is_new = False
        if not laid.any():
            widest = int(active.sum(axis=1).argmax())
            own = active[widest]
            layout[own] = addresses[widest, own] - addresses[widest, np.argmax(own)]
            laid, is_new = laid | own, True
        for block in np.flatnonzero((active & ~laid).any(axis=1) & (active & laid).any(axis=1)).tolist():
            known, new = active[block] & laid, active[block] & ~laid
            one = int(np.argmax(known))
            layout[new] = addresses[block, new] - (addresses[block, one] - layout[one])
            laid, is_new = laid | new, True
        self.layout, self._laid, self.along = layout, laid, layout
        return is_new

    def _seen_lanes(self) -> NDArray[np.bool_]:
        """Returns which lanes of any block took part in executions at regular addresses."""
        if self._seen is None:
            self._seen = np.zeros(self.lanes.per_block, bool)
        for mask, _ in self.rows[self._looked_through :]:
            self._seen |= mask.active.reshape(self.lanes.count, -1).any(axis=0)
        self._looked_through = len(self.rows)
        return np.array(self._seen)

    def _rest(self, mask: Mask, addresses: NDArray[np.int64]) -> NDArray[np.int64] | None:
        if mask.columns is not None:  # as mostly: lanes and blocks are the axes of a table
            table, along = addresses.reshape(self.lanes.count, -1), self.along[mask.columns]
            if table[-1, -1] - table[-1, 0] != along[-1] - along[0]:
                return None
            moved = table - along
            row = moved[:, 0].copy()
            return row if bool((moved == row[:, None]).all()) else None
        taking, first, blocks = mask.firsts
        if len(first):  # most addresses that are not regular are seen to be by the last block's first and last lane
            one, other = mask.within[first[-1]], mask.within[-1]
            if addresses[-1] - addresses[first[-1]] != self.along[other] - self.along[one]:
                return None
        rest = addresses - self.along[mask.within]
        row = np.full(self.lanes.count, NOWHERE, np.int64)
        row[taking] = rest[first]
        return row if bool((rest == row[blocks]).all()) else None

    def _find_strides(self, mask: Mask, addresses: NDArray[np.int64]) -> bool:
        """Finds strides along axes that have none yet from neighbours that take part, but where lanes are laid out in
        another way; returns whether there were any."""
        lanes = self.lanes
        is_open = [s is None and extent > 1 for s, extent in zip(self.strides, lanes.block, strict=True)]
        if self.layout is not None or (self.along is not None and not any(is_open)):
            return False
        active = mask.active.reshape(lanes.count, lanes.per_block)
        full = np.zeros(active.shape, np.int64)
        full[active] = addresses
        found, step = False, 1
        for axis, extent in enumerate(lanes.block):
            if is_open[axis]:
                neighbours = lanes.items[axis][:-step] < extent - 1
                for rows in (active[:1], active):  # mostly the first block has neighbours already
                    both = rows[:, :-step] & rows[:, step:] & neighbours
                    if both.any():
                        block, place = divmod(int(np.argmax(both)), both.shape[1])
                        self.strides[axis] = int(full[block, place + step] - full[block, place])
                        found = True
                        break
            step *= extent
        along = sum(((s or 0) * items for s, items in zip(self.strides, lanes.items, strict=True)), start=np.int64(0))
        self.along = np.broadcast_to(along, (lanes.per_block,))
        return found
