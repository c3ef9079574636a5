"""Counts accesses that contend for few places in memory: ``f_mem_contended_global_atomic_block:512``."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from perfmodel.basics.errors import FeatureError
from perfmodel.counting.atomics import SECTOR
from perfmodel.counting.counts import SUBGROUP_SIZE, AccessCount, KernelCounts
from perfmodel.features.footprint import FootprintFeature
from perfmodel.features.memory_access import AccessPattern, Floats, Sizes
from perfmodel.features.transactions import TransactionFeature
from perfmodel.vocabulary.feature_name import FeatureName, Word
from perfmodel.vocabulary.named_features import CountedFeature, FeatureFamily, by_role, unknown_word


def share_of(name: FeatureName, access: AccessCount, size: int, counts: KernelCounts, sizes: Sizes) -> Floats:
    """Returns the part of all accesses that goes to one of the blocks of so many bytes, of atomics or stores."""
    if access.shares is not None:
        return np.asarray(dict(access.shares)[size])
    whole = counts.footprint_of(access.variable, access.direction)
    if whole is None:
        return np.asarray(1.0)
    touched = FootprintFeature(name, None, access.direction, access.variable, block=SECTOR)
    return 1.0 / np.maximum(touched.bytes_of(whole, counts, sizes, False) / size, 1.0)


class ContendedFeature(CountedFeature):
    """Accesses that go to the same bytes, so that they are done one after the other, for the array with most of them.

    They are sectors of 32 bytes that sub-groups access, of atomics each as often as most work-items meet at one of its
    places; divided by the blocks of the array that they lie in, as if these were accessed alike, or by as many as
    observed groups shared: updates of one counter count once for each sub-group, those of a megabyte hardly anything.
    Sums of floats take a sector for longer than others, in which others have their turn.
    """

    unit = "transaction"

    def __init__(self, name: FeatureName, direction: str, block: int) -> None:
        super().__init__(name)
        self.parsed, self.direction, self.block = name, direction, block
        self.subgroup_size = SUBGROUP_SIZE

    def values(self, counts: KernelCounts, sizes: Sizes) -> Floats:
        most: Floats = np.asarray(0.0)
        for footprint in counts.footprints:
            if footprint.direction == self.direction:
                pattern = AccessPattern(space="global", direction=self.direction, variable=footprint.variable)
                kind = "sector_passes" if self.direction == "atomic" else "block"
                sectors = TransactionFeature(self.parsed, pattern, kind, SECTOR)
                found = [
                    count * self.share(access, counts, sizes)
                    for access, count in sectors.each(sectors.pattern, counts, sizes)
                ]
                most = np.maximum(most, sum(found, np.asarray(0.0)))
        return most

    def share(self, access: AccessCount, counts: KernelCounts, sizes: Sizes) -> Floats:
        """Returns the part of an access's sectors that its busiest block has, or its busiest sector as much longer."""
        of_block, of_sector = (share_of(self.parsed, access, size, counts, sizes) for size in (self.block, SECTOR))
        slower = 1.0 if access.update is None else access.update.at_sector
        return np.minimum(of_block, 1.0) if slower == 1.0 else np.maximum(of_block, slower * of_sector)


class ContendedFamily(FeatureFamily):
    prefix = ("mem", "contended")
    summary = "atomics or stores that go to the same bytes of global memory, and so are done one after the other"
    examples = ("f_mem_contended_global_atomic_block:512", "f_mem_contended_global_store_block:512")

    def candidates(self, counts: KernelCounts) -> Iterable[str]:
        if any(access.direction == "atomic" for access in counts.accesses):
            yield self.examples[0]

    def parse(self, name: FeatureName, words: tuple[Word, ...]) -> ContendedFeature:
        found = by_role(name, words, self.role)
        if found.keys() != {"space", "direction", "block"}:
            raise FeatureError(
                f"feature {name.text!r} is of atomics or stores in global memory; write {self.examples[0]}"
            )
        return ContendedFeature(name, found["direction"], int(found["block"]))

    def role(self, name: FeatureName, word: Word) -> tuple[str, str]:
        condition = word.condition or ""
        if word.key == "block" and condition.isdecimal() and 0 < int(condition) < 10000:
            return "block", condition
        if word.condition is None and word.key == "global":
            return "space", word.key
        if word.condition is None and word.key in ("atomic", "store"):
            return "direction", word.key
        raise unknown_word(name, word, ("global", "atomic", "store", "block:512"))
