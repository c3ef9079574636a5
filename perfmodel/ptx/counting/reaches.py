"""Finds which accesses of a launch jump about, and how far they reach, by what some emulated blocks touch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from perfmodel.basics.distinct import distinct
from perfmodel.counting.atomics import SECTOR
from perfmodel.counting.counts import Blocks
from perfmodel.ptx.counting.blocks_alike import bytes_of_blocks
from perfmodel.ptx.counting.counted_access import CountedAccess
from perfmodel.ptx.counting.launch import EmulatedLaunch
from perfmodel.ptx.counting.records import shares_of_records
from perfmodel.ptx.counting.regions import joined

NEARLY_ALL, CACHED = 0.8, 2**23
"""A block goes everywhere whose ends are so far from each other, of those of all, if these are more bytes apart than
every last-level cache keeps."""
NEAR = 0.1
"""A block stays near a place of its own whose ends are no further from each other, of those of all."""
LEAST_BLOCKS, LEAST_SHARED = 6, 4
"""So many emulated blocks show between which ends all are; if these have room for a fourth of what all touch at most,
blocks are taken to touch the same."""


class Reaches:
    """Says of the accesses of a launch where they go."""

    def __init__(self, launch: EmulatedLaunch, accesses: Sequence[CountedAccess]) -> None:
        self.launch, self.emulation, self.accesses = launch, launch.emulation, accesses
        self._width = launch.width

    @cached_property
    def jumping(self) -> dict[CountedAccess, Blocks | None]:
        """The accesses that `jumps` is true of, with what they share of their blocks with others beside them."""
        found: dict[CountedAccess, Blocks | None] = {}
        by_array: dict[tuple[str, str, int], list[CountedAccess]] = {}
        for access in self.accesses:
            if access.space == "global" and self.jumps(access):
                by_array.setdefault((access.name, access.direction, access.block), []).append(access)
        for several in by_array.values():
            found.update(zip(several, shares_of_records([each.addresses for each in several]), strict=True))
        return found

    def of(self, access: CountedAccess, touched: Blocks | None) -> int | None:
        """Returns about how many bytes an access touches over the launch, as far as the sample shows, and at most those
        of a variable that the text declares; None where the strides, or its array, say it."""
        is_sampled = access in self.jumping or self._is_all_over(access)
        found = self._of_sample(access) if is_sampled else self._of_shared(access, touched)
        variable = self.emulation.code.kernel.variables.get(access.name)
        if variable is None or not variable.n_bytes or None not in access.addresses.local_strides:
            return found
        return variable.n_bytes if found is None else min(found, variable.n_bytes)

    def _is_all_over(self, access: CountedAccess) -> bool:
        """Returns whether lanes look up places all over a table in constant memory: in more sectors than neighbours."""
        if not access.instruction.has("const") or None not in access.addresses.local_strides:
            return False
        of_neighbours = self._width * access.addresses.noted.n_bytes / SECTOR + 1
        return access.addresses.blocks_of_subgroups(self._width, SECTOR) > of_neighbours

    def _of_sample(self, access: CountedAccess) -> int:
        """Returns about how many bytes an access touches over the launch, as far as the sample shows."""
        own = [addresses // SECTOR for _, addresses in access.addresses.executions_at(64)]
        if not own:
            return SECTOR
        looked_at = sum(map(len, own))
        seen = len(distinct(np.concatenate(own)))
        if seen < 0.5 * looked_at:  # the sample goes to all of them
            return SECTOR * seen
        items, _, _ = self.emulation.tally(access.instruction, access.block).by_block()
        made = float(self.launch.weights @ items) * access.share * seen / looked_at
        dtype, size = self.launch.arrays.get(access.name, ("uint8", 2**40))
        among = max(int(each.max()) for each in own) - min(int(each.min()) for each in own) + 1
        there = max(min(size * np.dtype(dtype).itemsize / SECTOR, among), 1.0)
        return round(SECTOR * there * -math.expm1(-made / there))

    def _of_shared(self, access: CountedAccess, touched: Blocks | None) -> int | None:
        """Returns the bytes between the ends of what the emulated blocks touch where all blocks would touch several
        times as many if each had its own, as where an index wraps around; None of others. Accesses of one loop to other
        parts of the array, as of planes of colours, are in the caches beside it, and count with it."""
        if touched is None or access not in self._shared:
            return None
        beside = [ends for each, ends in self._shared.items() if self._place_of(each) == self._place_of(access)]
        starts, ends = np.array(beside).T
        return round(joined(starts, ends).bytes * self._unseen)

    @property
    def _unseen(self) -> float:
        """The ends of all blocks are so many times as far apart as those of the emulated ones, as is to be expected of
        places anywhere."""
        blocks = len(self.launch.weights)
        return (blocks + 1) / (blocks - 1)

    @cached_property
    def _shared(self) -> dict[CountedAccess, tuple[int, int]]:
        """The ends of what all emulated blocks touch, of accesses by which each block touches a good part of that."""
        found = {}
        for access in self.accesses:
            if access.space != "global" or not (ends := self._ends(access)):
                continue
            if 0 < LEAST_SHARED * _apart(ends) * self._unseen < bytes_of_blocks(self.launch, [access]):
                found[access] = _outermost(ends)
        return found

    def _place_of(self, access: CountedAccess) -> tuple[object, ...]:
        """Returns the array, the direction and the loop of an access."""
        return access.name, access.direction, *self.emulation.code.flow.around(access.block)[-1:]

    def jumps(self, access: CountedAccess) -> bool:
        """Returns whether ids alone decide on addresses that are all over an array; of others, what blocks touch is
        known by what the emulated ones do, as where an index is clamped to a border, or is near a work-item's own, or
        where arrays are given. Atomics by given data jump if each block goes to nearly all of what all go to, and that
        is much."""
        if None not in access.addresses.local_strides or access.addresses.is_laid_out:
            return False
        if access.addresses.blocks_of_subgroups(self._width, SECTOR) <= self._width / 2:
            return False
        if self.launch.given:
            return access.direction == "atomic" and self._goes_everywhere(access)
        return not self.launch.arrays_behind(access.instruction) and not self._stays_near(access)

    def _stays_near(self, access: CountedAccess) -> bool:
        """Returns whether most blocks touch only a small part of what lies between the ends of all."""
        ends = self._ends(access)
        return bool(ends) and float(np.median([most - least for least, most in ends])) < NEAR * _apart(ends)

    def _goes_everywhere(self, access: CountedAccess) -> bool:
        ends = self._ends(access)
        if len(ends) < LEAST_BLOCKS or (all_ := _apart(ends)) <= CACHED:
            return False
        return bool(np.median([most - least for least, most in ends]) > NEARLY_ALL * all_)

    def _ends(self, access: CountedAccess) -> list[tuple[int, int]]:
        """Returns the first and last byte that each emulated block touches; none where too few blocks, or a part of
        what they do alone, were looked at."""
        blocks = len(self.launch.weights)
        if blocks < LEAST_BLOCKS or access.addresses.noted.is_thinned:
            return []
        return [found for block in range(blocks) if (found := access.addresses.ends_in(block))]


def _outermost(ends: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Returns the first of some ends and the last."""
    return min(least for least, _ in ends), max(most for _, most in ends)


def _apart(ends: Sequence[tuple[int, int]]) -> int:
    """Returns how many bytes lie between the first of some ends and the last."""
    least, most = _outermost(ends)
    return most - least
