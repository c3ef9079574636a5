"""Counts of a batch are kept by mask and pattern while it runs, and added up by group when somebody asks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from perfmodel.counting.banks import share_places
from perfmodel.counting.counts import PAGE_BYTES
from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c.emulation.access_handlers import Handler
from perfmodel.opencl_c.emulation.access_patterns import (
    Pattern,
    atomic_passes,
    blocks_touched,
    local_cycles,
    private_blocks_touched,
)
from perfmodel.opencl_c.emulation.address_space import Regions
from perfmodel.opencl_c.emulation.footprints import sizes
from perfmodel.opencl_c.emulation.lanes import Integers, Layout, Mask, work_out
from perfmodel.opencl_c.emulation.machine import Machine
from perfmodel.opencl_c.meeting import updates

ACCESS_NAMES = ("executions", "subgroups", "bytes", "transactions", "bank_cycles", "bank_conflicts", "lines", "passes")
ACCESS_FIELDS = np.dtype([(name, np.int64) for name in ACCESS_NAMES])
FOOTPRINT_FIELDS = np.dtype(
    [(f"{what}_{kind}", np.int64) for what in ("load", "store", "any") for kind in ("bytes", "blocks", "pages")]
)
_AT_ONCE = 1 << 21
"""So many addresses are sorted at a time."""
_REMEMBERED = 1 << 21
"""Costs are remembered for patterns of so many addresses together."""

Counts: TypeAlias = dict[Any, int]


@dataclass
class Totals:
    """Totals are numbers of a batch, all by group first; see `Emulation`."""

    blocks: Integers
    branches: Integers
    sides: Integers
    barriers: Integers
    accesses: Integers

    @property
    def arrays(self) -> tuple[Integers, ...]:
        return self.blocks, self.branches, self.sides, self.barriers, self.accesses

    def copy(self) -> Totals:
        return Totals(*(array.copy() for array in self.arrays))

    def minus(self, other: Totals) -> Totals:
        return Totals(*(mine - others for mine, others in zip(self.arrays, other.arrays, strict=True)))

    def add(self, other: Totals, times: int = 1) -> None:
        for mine, others in zip(self.arrays, other.arrays, strict=True):
            mine += others * times

    @property
    def text(self) -> bytes:
        """The numbers as bytes, by which totals of one batch are compared."""
        return b"".join(array.tobytes() for array in self.arrays)


class Recorder:
    """Records one batch after another, all of one size.

    Attributes:
        blocks: of each block, how often it was executed under which mask. barriers: the same of barriers.
        known: what patterns at some place count once, by group and `ACCESS_NAMES`.
        went: of each branch, how often which lanes went one way while which went the other; None for none.
    """

    def __init__(self, kernel: low.LoweredKernel, layout: Layout, machine: Machine) -> None:
        self.layout, self.machine = layout, machine
        self.blocks: list[Counts] = [defaultdict(int) for _ in range(kernel.blocks)]
        self.barriers: list[Counts] = [defaultdict(int) for _ in range(kernel.barriers)]
        self.went: list[Counts] = [defaultdict(int) for _ in range(kernel.branches)]
        self.handlers: list[Handler] = []
        self.updates = updates(kernel)
        self.known: dict[tuple[Pattern, int], NDArray[np.int64]] = {}
        self._accesses = len(kernel.accesses)
        self._is_fresh = True

    @cached_property
    def _totals(self) -> Totals:
        groups = self.layout.groups
        return Totals(
            blocks=np.zeros((groups, len(self.blocks), 3), np.int64),
            branches=np.zeros((groups, len(self.went), 2), np.int64),
            sides=np.zeros((groups, len(self.went), 3, 3), np.int64),
            barriers=np.zeros((groups, len(self.barriers)), np.int64),
            accesses=np.zeros((groups, self._accesses, len(ACCESS_NAMES)), np.int64),
        )

    def end(self) -> None:
        """Forgets what was counted; handlers forget it for themselves."""
        for counts in (*self.blocks, *self.barriers, *self.went):
            counts.clear()
        self.__dict__.pop("_totals", None)
        self._is_fresh = True

    def counted(self) -> tuple[Any, ...] | None:
        """Returns all that was counted, from which the totals follow; None if some is in the totals already."""
        if not self._is_fresh:
            return None
        counted: list[tuple[Any, ...]] = [
            tuple(counts.items()) for counts in (*self.blocks, *self.barriers, *self.went)
        ]
        for handler in self.handlers:
            counted.append(tuple([(pattern, phase, pattern.counts[phase]) for pattern, phase in handler.met]))
        return tuple(counted)

    def totals(self) -> Totals:
        """Returns all that was counted until now."""
        self._is_fresh = False
        totals = self._totals
        work_out(mask for counted in (*self.blocks, *self.barriers) for mask in counted)
        work_out(mask for counted in self.went for masks in counted for mask in masks if mask is not None)
        for number, masks, times in _taken(self.blocks):
            totals.blocks[:, number] += _sum([mask.totals for mask in masks], times)
        for number, masks, times in _taken(self.barriers):
            totals.barriers[:, number] += _sum([mask.totals[:, 2] for mask in masks], times)
        for number, sides, times in _taken(self.went):
            branches, ways = _sides(sides, times)
            totals.branches[:, number] += branches
            totals.sides[:, number] += ways
        self.fold(*self.handlers)
        return totals

    def fold(self, *handlers: Handler) -> None:
        """Adds the counts of handlers' patterns to the totals."""
        self._is_fresh = False
        for handler in handlers:
            if handler.met:
                costs = self._costs(handler, handler.met)
                times = [pattern.counts.pop(phase) for pattern, phase in handler.met]
                self._totals.accesses[:, handler.access.number] += _sum(costs, times)
                handler.met.clear()

    def _costs(self, handler: Handler, met: Sequence[tuple[Pattern, int]]) -> list[NDArray[np.int64]]:
        """Returns what each pattern at some place counts once, by group and `ACCESS_NAMES`."""
        new = [each for each in met if each not in self.known]
        work_out(pattern.mask for pattern, _ in met)
        step = max(1, _AT_ONCE // max(self.layout.slots, 1))
        if len(self.known) > _REMEMBERED // max(self.layout.lanes, 1):
            self.known.clear()
            new = list(met)
        for start in range(0, len(new), step):
            part = new[start : start + step]
            cost = np.zeros((len(part), self.layout.groups, len(ACCESS_NAMES)), np.int64)
            for row, (pattern, _) in zip(cost, part, strict=True):
                row[:, :2] = pattern.mask.totals[:, :2]
                row[:, 2] = pattern.mask.items_of_groups * handler.bytes
            if handler.access.space == "local":
                are_shared = share_places(handler.access.direction, handler.access.space)
                cycles = local_cycles(part, handler.bytes, self.machine, self.layout, are_shared=are_shared)
                cost[..., 4], cost[..., 5] = cycles
            else:
                touched = private_blocks_touched if handler.access.space == "private" else blocks_touched
                blocks = [each for each in (self.machine.transaction_bytes, self.machine.line_bytes) if each]
                cost[..., [3, 6][: len(blocks)]] = touched(part, handler.bytes, blocks, self.layout)
            if handler.access.direction == "atomic":
                cost[..., 7] = self._passes(handler, part)
            self.known.update(zip(part, cost, strict=True))
        return [self.known[each] for each in met]

    def _passes(self, handler: Handler, met: Sequence[tuple[Pattern, int]]) -> NDArray[np.int64]:
        """Returns how many passes an atomic takes, by pattern and group; one a sub-group where these are combined."""
        update = self.updates[handler.access.number]
        if update.is_combined:
            return np.stack([pattern.mask.totals[:, 1] for pattern, _ in met])
        is_local = handler.access.space == "local"
        found = atomic_passes(met, handler.bytes, update, is_local, self.machine, self.layout)
        return np.rint(found).astype(np.int64)


def _taken(counted: Sequence[Counts]) -> Iterator[tuple[int, list[Any], list[int]]]:
    """Yields what was counted at each place and how often, and leaves nothing."""
    for number, counts in enumerate(counted):
        if counts:
            yield number, list(counts), list(counts.values())
            counts.clear()


def _sum(each: Sequence[Integers], times: Sequence[int]) -> Integers:
    """Returns the sum of arrays, each so many times."""
    if len(each) == 1:
        return each[0] * times[0]
    step = max(1, _AT_ONCE // max(each[0].size, 1))
    total = np.zeros_like(each[0])
    for start in range(0, len(each), step):
        total += np.tensordot(times[start : start + step], np.stack(each[start : start + step]), 1)
    return total


def _sides(met: Sequence[tuple[Mask | None, Mask | None]], times: Sequence[int]) -> tuple[Integers, Integers]:
    """Returns, by group, ``branches`` and ``sides`` of a branch at which masks parted so often, see `Emulation`."""
    nobody = np.zeros_like(next(mask for mask in met[0] if mask is not None).totals)
    branches, sides = np.zeros((len(nobody), 2), np.int64), np.zeros((len(nobody), 3, 3), np.int64)
    step = max(1, _AT_ONCE // sides.size)
    for start in range(0, len(met), step):
        part = met[start : start + step]
        then, otherwise = (
            np.stack([nobody if mask is None else mask.totals for mask in masks]) for masks in zip(*part, strict=True)
        )
        parted = np.zeros(then.shape[:2], np.int64)
        for place, (one, other) in enumerate(part):
            if one is not None and other is not None:
                parted[place] = ((one.items_of_subgroups > 0) & (other.items_of_subgroups > 0)).sum(axis=1)
        both = then + otherwise
        both[..., 1] -= parted
        both[..., 2] = np.maximum(then[..., 2], otherwise[..., 2])
        counts = times[start : start + step]
        branches += np.tensordot(counts, np.stack([both[..., 1], parted], axis=2), 1)
        sides += np.tensordot(counts, np.stack([both, then, otherwise], axis=2), 1)
    return branches, sides


def touched(regions: Regions, machine: Machine) -> tuple[Any, ...] | None:
    """Returns what was met where, from which footprints follow; None if some of it was marked already.

    Places in global memory count from the page that the first of them is in: whole pages further all is alike.
    """
    found: list[Any] = []
    block = max(PAGE_BYTES, machine.transaction_bytes)
    for region in regions.touched():
        both = [each for each in (region.loads, region.stores) if each is not None]
        if not both:
            continue
        if any(each.is_marked for each in both):
            return None
        page = 0
        if region.lane_offsets is None and region is not regions.constants:
            first = min((start * met.marked_bytes for each in both for met, start in each.pending), default=0)
            page = first // block * block
        found += [tuple((met, start - page // met.marked_bytes) for met, start in each.pending) for each in both]
    return tuple(found)


def footprints(regions: Regions, names: Sequence[tuple[str, str]], machine: Machine) -> NDArray[Any]:
    """Returns, by group and (space, variable), bytes, transactions' blocks and pages of loads, stores and both."""
    groups = regions.layout.groups
    blocks = machine.transaction_bytes, PAGE_BYTES
    result = np.zeros((groups, len(names), 3, 3), np.int64)
    # Several variables may lie in one region, which is gone through once.
    touched: dict[tuple[int, int], tuple[Integers, Integers]] = {}
    for column, (space, name) in enumerate(names):
        part = regions.parts.get((space, name))
        if space == "local":
            region, unit = regions.local, regions.local_unit
        else:
            region, unit = (regions.constants if part else regions.buffers[name]), regions.unit
        first, last = (part[0] - region.origin, part[1] - region.origin) if part else (0, region.size)
        known: dict[tuple[int, int], Integers] = {}
        loads, stores = region.loads, region.stores
        for what, (one, other) in enumerate(((loads, None), (stores, None), (loads or stores, stores))):
            if one is None:
                continue
            other = None if other is one else other
            key = id(one), id(other)
            if key not in touched:
                touched[key] = one.touched(other)
            if key not in known:
                known[key] = sizes(touched[key], unit, blocks, first, last)
            result[:, column, what] = known[key]
    return result.reshape(groups, len(names), 9).view(FOOTPRINT_FIELDS)[..., 0]
