"""Counts accesses that contend for few places in memory: ``f_mem_contended_global_atomic_block:512``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from perfmodel.basics.errors import FeatureError
from perfmodel.counting.atomics import SECTOR
from perfmodel.counting.counts import SUBGROUP_SIZE, AccessCount, Footprint, KernelCounts
from perfmodel.features.footprint import FootprintFeature
from perfmodel.features.memory_access import AccessPattern, Floats, Sizes
from perfmodel.features.transactions import TransactionFeature, between_sizes
from perfmodel.vocabulary.feature_name import FeatureName, Word
from perfmodel.vocabulary.named_features import CountedFeature, FeatureFamily, by_role, unknown_word

STORE, JOINED = 1.2, 0.45
"""A store takes a place for so much of the time of an update, less this part of it where every sub-group makes one:
those that come at once in a compute unit are joined there, and not what a loop stores again and again; measured by
`benchmarks.updates`."""


def touched_bytes(name: FeatureName, footprint: Footprint | None, counts: KernelCounts, sizes: Sizes) -> Floats:
    """Returns the bytes that all accesses of a footprint touch, in sectors; 0 where there is none."""
    if footprint is None:
        return np.asarray(0.0)
    feature = FootprintFeature(name, None, footprint.direction, footprint.variable, block=SECTOR)
    return feature.bytes_of(footprint, counts, sizes, False)


def share_of(access: AccessCount, size: int, touched: Floats) -> Floats:
    """Returns the part of an access that goes to one of the blocks of so many bytes, of which so many are touched."""
    if access.contention is not None:
        return np.asarray(between_sizes(access.contention.shares, size))
    strides = (access.local_strides, access.group_strides, access.loop_strides)
    if all(step is not None and step.is_zero for steps in strides for step in steps.values()):  # at one place
        return np.asarray(1.0)
    return 1.0 / np.maximum(touched / size, 1.0)


def walked_part(access: AccessCount, counts: KernelCounts, sizes: Sizes) -> Floats:
    """Returns 1 where work-groups walk through an array in their order: where the last axis of the grid that has more
    than one of them moves on in it; else 0."""
    if access.contention is not None or None in access.group_strides.values():
        return np.asarray(0.0)
    found, is_open = np.asarray(0.0), np.asarray(1.0)
    for axis in reversed(range(len(counts.grid))):
        has_several = np.minimum(counts.grid[axis](sizes) - 1, 1)
        found = found + is_open * has_several * (axis in access.group_strides)
        is_open = is_open * (1 - has_several)
    return found


def store_time(access: AccessCount, counts: KernelCounts, sizes: Sizes) -> Floats:
    """Returns how long a store takes the place that it goes to, an update being 1."""
    by_subgroups = access.executions.subgroup
    assert by_subgroups is not None
    each = np.maximum(by_subgroups(sizes) * SUBGROUP_SIZE / np.maximum(counts.work_items(sizes), 1), 1e-9)
    return np.asarray(STORE * (1 - JOINED * np.minimum(each, 1 / each)))


def met(counted: Sequence[tuple[AccessCount, Floats]]) -> Floats:
    """Returns how many accesses to the busiest blocks of an array meet, of those of each that go to its own; all where
    it is not known of one which these are."""
    known = [(access.contention, count) for access, count in counted if access.contention and access.contention.blocks]
    most: Floats = np.asarray(0.0)
    if len(known) < len(counted):
        return sum((count for _, count in counted), most)
    for one, _ in known:
        most = np.maximum(most, sum((one.overlap(other) * count for other, count in known), np.asarray(0.0)))
    return most


class ContendedFeature(CountedFeature):
    """Accesses that go to the same bytes, so that they are done one after the other, for the array with most of them.

    They are sectors of 32 bytes that sub-groups access, of atomics each as often as most work-items meet at one of its
    places; divided by the blocks of the array that they lie in, as if these were accessed alike, or by as many as
    observed groups shared: updates of one counter count once for each sub-group, those of a megabyte hardly anything.
    Sums of floats take a sector for longer than others, in which others have their turn, and stores for longer or
    shorter than updates.

    With ``walked``, only those count that work-groups walk through an array with, in the order in which they begin:
    those that run at a time have as small a part of its blocks as they are of all work-groups.
    """

    unit = "transaction"

    def __init__(self, name: FeatureName, direction: str, block: int, is_walked: bool = False) -> None:
        super().__init__(name)
        self.parsed, self.direction, self.block, self.is_walked = name, direction, block, is_walked
        self.subgroup_size = SUBGROUP_SIZE

    def values(self, counts: KernelCounts, sizes: Sizes) -> Floats:
        most: Floats = np.asarray(0.0)
        for footprint in counts.footprints:
            if footprint.direction == self.direction:
                pattern = AccessPattern(space="global", direction=self.direction, variable=footprint.variable)
                kind = "sector_passes" if self.direction == "atomic" else "block"
                sectors = TransactionFeature(self.parsed, pattern, kind, SECTOR)
                touched = touched_bytes(self.parsed, footprint, counts, sizes)
                each = sectors.each(sectors.pattern, counts, sizes)
                shares = [(a, count * self.share(a, touched)) for a, count in each]
                if self.direction == "store":
                    shares = [(a, count * store_time(a, counts, sizes)) for a, count in shares]
                if self.is_walked:
                    shares = [(a, count * walked_part(a, counts, sizes)) for a, count in shares]
                most = np.maximum(most, met(shares))
        return most

    def share(self, access: AccessCount, touched: Floats) -> Floats:
        """Returns the part of an access's sectors that its busiest block has, or its busiest sector as much longer."""
        of_block = share_of(access, self.block, touched)
        slower = 1.0 if access.update is None else access.update.at_sector
        if slower == 1.0:
            return np.minimum(of_block, 1.0)
        return np.maximum(of_block, slower * share_of(access, SECTOR, touched))


class ContendedFamily(FeatureFamily):
    prefix = ("mem", "contended")
    summary = "atomics or stores that go to the same bytes of global memory, and so are done one after the other"
    examples = (
        "f_mem_contended_global_atomic_block:512",
        "f_mem_contended_global_atomic_block:512_walked",
        "f_mem_contended_global_store_block:512",
    )

    def candidates(self, counts: KernelCounts) -> Iterable[str]:
        if any(access.direction == "atomic" for access in counts.accesses):
            yield self.examples[0]

    def parse(self, name: FeatureName, words: tuple[Word, ...]) -> ContendedFeature:
        found = by_role(name, words, self.role)
        is_walked = found.pop("order", None) is not None
        if found.keys() != {"space", "direction", "block"}:
            raise FeatureError(
                f"feature {name.text!r} is of atomics or stores in global memory; write {self.examples[0]}"
            )
        return ContendedFeature(name, found["direction"], int(found["block"]), is_walked)

    def role(self, name: FeatureName, word: Word) -> tuple[str, str]:
        condition = word.condition or ""
        if word.key == "block" and condition.isdecimal() and 0 < int(condition) < 10000:
            return "block", condition
        if word.condition is None and word.key == "global":
            return "space", word.key
        if word.condition is None and word.key in ("atomic", "store"):
            return "direction", word.key
        if word.condition is None and word.key == "walked":
            return "order", word.key
        raise unknown_word(name, word, ("global", "atomic", "store", "block:512", "walked"))
