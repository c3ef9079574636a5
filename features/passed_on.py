"""Counts atomics on lines that go from core to core: ``f_mem_passed_on_global_atomic_block:64``."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from perfmodel.basics.errors import FeatureError
from perfmodel.counting.counts import KernelCounts
from perfmodel.features.contended import share_of, touched_bytes
from perfmodel.features.memory_access import Floats, Sizes
from perfmodel.vocabulary.feature_name import FeatureName, Word
from perfmodel.vocabulary.named_features import CountedFeature, FeatureFamily, by_role, unknown_word

FOUGHT_OVER = 64
"""So many lines and fewer are always with another core when a core wants them, as cores ask for lines ahead of their
turn. The more lines there are, the less often each is there: two cores took 64 lines from each other with every
update, and 4,096 hardly ever, on four kinds of processors (the family ``atomic_update``)."""


class PassedOnFeature(CountedFeature):
    """It counts atomics on lines that other work-groups update as well, which another core has changed meanwhile.

    An array counts by how many of its lines the updates go to, as if all of these were updated alike, or by as many as
    observed groups shared. A launch of one work-group passes nothing on. With ``busiest``, those count that go to the
    line with most of them, which cores have one after the other.
    """

    unit = "access"

    def __init__(self, name: FeatureName, block: int, is_busiest: bool) -> None:
        super().__init__(name)
        self.parsed, self.block, self.is_busiest = name, block, is_busiest

    def values(self, counts: KernelCounts, sizes: Sizes) -> Floats:
        found: Floats = np.asarray(0.0)
        for access in counts.accesses:
            if access.space == "global" and access.direction == "atomic":
                whole = counts.footprint_of(access.variable, "atomic")
                share = np.minimum(share_of(access, self.block, touched_bytes(self.parsed, whole, counts, sizes)), 1.0)
                each = access.executions.workitem(sizes)
                if self.is_busiest:
                    found = np.maximum(found, each * share)
                else:
                    found = found + each * np.minimum(FOUGHT_OVER * share, 1.0)
        return found * np.minimum(counts.work_groups(sizes) - 1, 1)


class PassedOnFamily(FeatureFamily):
    prefix = ("mem", "passed", "on")
    summary = "atomics on lines of global memory that other cores have changed"
    examples = ("f_mem_passed_on_global_atomic_block:64", "f_mem_passed_on_global_atomic_block:64_busiest")

    def candidates(self, counts: KernelCounts) -> Iterable[str]:
        if any(access.direction == "atomic" for access in counts.accesses):
            yield self.examples[0]

    def parse(self, name: FeatureName, words: tuple[Word, ...]) -> PassedOnFeature:
        found = by_role(name, words, self.role)
        is_busiest = found.pop("place", None) is not None
        if found.keys() != {"space", "direction", "block"}:
            raise FeatureError(f"feature {name.text!r} is of atomics in global memory; write {self.examples[0]}")
        return PassedOnFeature(name, int(found["block"]), is_busiest)

    def role(self, name: FeatureName, word: Word) -> tuple[str, str]:
        condition = word.condition or ""
        if word.key == "block" and condition.isdecimal() and 0 < int(condition) < 10000:
            return "block", condition
        for key, role in (("global", "space"), ("atomic", "direction"), ("busiest", "place")):
            if word.condition is None and word.key == key:
                return role, key
        raise unknown_word(name, word, ("global", "atomic", "block:64", "busiest"))
