"""Lanes and masks tell which work-item is at which position of the arrays, and which of them are active.

A lane is one work-item. The lanes of several groups follow each other. Masks are interned: lanes that are active
together are one `Mask` object, so that counts, patterns of addresses and further splits can be kept by the mask's
identity. That is what makes recording cheap: what a mask means for sub-groups and groups is worked out once.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property, lru_cache
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Values: TypeAlias = Any
"""Values are a scalar for all lanes, an array (lanes,), or vectors (width, lanes or 1); never changed in place."""
Bits: TypeAlias = NDArray[np.bool_]
Integers: TypeAlias = NDArray[np.int64]

_AT_ONCE = 1 << 21
"""Masks of so many lanes are worked out together."""
_REMEMBERED = 4096
"""So many masks, and splits of one, are remembered; kernels that need more depend on data and repeat nothing."""


class Layout:
    """A layout tells where work-items of a batch of groups are.

    Attributes:
        groups: how many; lanes: work-items of all of them.
        group_of, local_of: of each lane, the group's position in the batch and the linear local id.
        local_along: of each lane, the local ids along the three axes.
        group_ids: of each group, along the three axes. group_numbers: from 1, over the whole grid.
        subgroups: of each group.
        slot: of each lane, its position when each sub-group is filled up to its full size.
    """

    def __init__(
        self, local_size: tuple[int, int, int], groups: tuple[int, int, int], numbers: Integers, subgroup_size: int
    ) -> None:
        x, y, _ = groups
        self.group_numbers = (numbers + 1).astype(np.int32)
        group_ids = np.array([numbers % x, numbers // x % y, numbers // (x * y)]).T
        self.local_size, self.group_ids, self.subgroup_size = local_size, group_ids, subgroup_size
        self.items = prod(local_size)
        self.groups = len(group_ids)
        self.lanes = self.items * self.groups
        self.subgroups = -(-self.items // subgroup_size)
        self.slots = self.groups * self.subgroups * subgroup_size
        self.group_of, self.local_of, self.slot, self.subgroup_of = _places(self.items, self.groups, subgroup_size)
        self.local_along = _local_along(local_size, self.groups)

    def group_along(self, axis: int) -> int | Integers:
        """Returns of each lane the group's id along an axis, as one number if there is one group."""
        return int(self.group_ids[0, axis]) if self.groups == 1 else self.group_ids[self.group_of, axis]

    def local_ids(self, lane: int) -> tuple[int, int, int]:
        x, y, _ = self.local_size
        linear = int(self.local_of[lane])
        return linear % x, linear // x % y, linear // (x * y)

    def group_ids_of(self, lane: int) -> tuple[int, int, int]:
        x, y, z = (int(number) for number in self.group_ids[self.group_of[lane]])
        return x, y, z


@lru_cache(32)
def _places(items: int, groups: int, subgroup_size: int) -> tuple[Integers, Integers, Integers, Integers]:
    """Returns of each lane its group, local id, slot and sub-group."""
    group_of, local_of = np.repeat(np.arange(groups), items), np.tile(np.arange(items), groups)
    slot = group_of * (-(-items // subgroup_size) * subgroup_size) + local_of
    return group_of, local_of, slot, slot // subgroup_size


@lru_cache(32)
def _local_along(local_size: tuple[int, int, int], groups: int) -> tuple[Integers, Integers, Integers]:
    x, y, _ = local_size
    local = np.tile(np.arange(prod(local_size)), groups)
    return local % x, local // x % y, local // (x * y)


class Mask:
    """A mask has lanes that are active together; it is equal only to itself.

    Attributes:
        bits: by lane. lanes: the positions of the active ones. is_full: all are.
        splits: of conditions met under this mask, by their bytes, the two masks that they lead to.
    """

    __slots__ = ("__dict__", "__weakref__", "bits", "is_full", "lanes", "layout", "splits", "unions")

    def __init__(self, bits: Bits, layout: Layout) -> None:
        self.bits, self.layout = bits, layout
        self.lanes = bits.nonzero()[0]
        self.is_full = len(self.lanes) == layout.lanes
        self.splits: dict[bytes, tuple[Mask | None, Mask | None]] = {}
        self.unions: dict[Mask, Mask] = {}

    @cached_property
    def items_of_groups(self) -> Integers:
        """Holds how many work-items of each group are active."""
        return np.bincount(self.layout.group_of[self.lanes], minlength=self.layout.groups).astype(np.int64)

    @cached_property
    def items_of_subgroups(self) -> Integers:
        """Holds how many work-items are active, by group and sub-group."""
        counts = np.bincount(self.layout.subgroup_of[self.lanes], minlength=self.layout.groups * self.layout.subgroups)
        return counts.reshape(self.layout.groups, -1).astype(np.int64)

    @cached_property
    def totals(self) -> Integers:
        """Holds, by group, active work-items, sub-groups with any, and 1 if the group has any."""
        subgroups = (self.items_of_subgroups > 0).sum(axis=1)
        return np.stack([self.items_of_groups, subgroups, subgroups > 0], axis=1).astype(np.int64)

    @cached_property
    def broken_groups(self) -> Integers:
        """Holds the groups of which some work-items are active and some are not."""
        items = self.items_of_groups
        return ((items > 0) & (items < self.layout.items)).nonzero()[0]


def work_out(masks: Iterable[Mask]) -> None:
    """Finds what masks are for sub-groups and groups, of many together: each by itself takes longer."""
    new = list({id(mask): mask for mask in masks if "totals" not in mask.__dict__}.values())
    if not new:
        return
    layout = new[0].layout
    whole = layout.subgroups * layout.subgroup_size
    step = max(1, _AT_ONCE // max(layout.slots, 1))
    for start in range(0, len(new), step):
        part = new[start : start + step]
        bits = np.zeros((len(part), layout.groups, whole), bool)
        bits[:, :, : layout.items] = np.stack([mask.bits for mask in part]).reshape(len(part), layout.groups, -1)
        by_subgroup = bits.reshape(len(part), layout.groups, layout.subgroups, -1).sum(axis=3, dtype=np.int64)
        subgroups, items = (by_subgroup > 0).sum(axis=2), by_subgroup.sum(axis=2)
        totals = np.stack([items, subgroups, subgroups > 0], axis=2).astype(np.int64)
        for mask, *found in zip(part, by_subgroup, items, totals, strict=True):
            mask.items_of_subgroups, mask.items_of_groups, mask.totals = found


class Masks:
    """Holds all masks of a batch."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.full = Mask(np.ones(layout.lanes, bool), layout)
        self._known: dict[bytes, Mask] = {}

    def __len__(self) -> int:
        return len(self._known)

    def of(self, bits: Bits) -> Mask | None:
        count = np.count_nonzero(bits)
        if count == 0:
            return None
        if count == self.layout.lanes:
            return self.full
        key = bits.tobytes()
        mask = self._known.get(key)
        if mask is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
                self.full.splits.clear()
            mask = self._known[key] = Mask(bits, self.layout)
        return mask

    def split(self, mask: Mask, condition: Bits) -> tuple[Mask | None, Mask | None]:
        """Returns the active lanes for which the condition holds, and the others."""
        key = condition.tobytes()
        found = mask.splits.get(key)
        if found is None:
            then = self.of(condition & mask.bits)
            otherwise = self.of(mask.bits & ~condition)
            found = (None, mask) if then is None else (mask, None) if otherwise is None else (then, otherwise)
            if len(mask.splits) >= _REMEMBERED:
                mask.splits.clear()
            mask.splits[key] = found
        return found

    def union(self, first: Mask | None, second: Mask | None) -> Mask | None:
        if first is None or first is second:
            return second
        if second is None:
            return first
        found = first.unions.get(second)
        if found is None:
            found = self.of(first.bits | second.bits)
            assert found is not None
            if len(first.unions) >= _REMEMBERED:
                first.unions.clear()
            first.unions[second] = found
        return found
