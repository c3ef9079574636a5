"""Counts what is tried again because others were faster: ``f_mem_retries_global``."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from perfmodel.basics.errors import FeatureError
from perfmodel.counting.atomics import SECTOR
from perfmodel.counting.counts import LINE_BYTES, SUBGROUP_SIZE, AccessCount, KernelCounts
from perfmodel.counting.evaluation import quotient
from perfmodel.features.contended import share_of, touched_bytes
from perfmodel.features.memory_access import Floats, Sizes
from perfmodel.features.transactions import between_sizes
from perfmodel.vocabulary.feature_name import FeatureName, Word
from perfmodel.vocabulary.granularity import Granularity
from perfmodel.vocabulary.named_features import CountedFeature, FeatureFamily, by_role, unknown_word

FURTHER = 0.1
"""A request takes its block so much longer for each further work-item that asks at once (H100)."""


class RetriesFeature(CountedFeature):
    """Rounds of comparisons and exchanges in global memory that are made until they succeed, at the busiest place.

    In each round all that are under way ask, one of those at a place succeeds, and all others have to ask again; so
    there are as many rounds as updates are wanted of the busiest place, and the fewer others ask, the less their places
    are alike. With ``block:512``, each round counts by the requests of sub-groups that go to the busiest 512 bytes in
    it, which are done one after the other, for one work-item that is under way; with ``all``, by the work-items that
    ask. Work-items of a sub-group that go to one block ask for it together; where a kernel has several updates, a
    work-item tries one of them at a time.
    """

    unit = "access"
    subgroup_size = SUBGROUP_SIZE

    def __init__(self, name: FeatureName, block: int | None, is_all: bool) -> None:
        super().__init__(name)
        self.parsed, self.block, self.is_all = name, block, is_all

    def values(self, counts: KernelCounts, sizes: Sizes) -> Floats:
        total = np.asarray(0.0)
        extents = (counts.work_groups, *counts.local_size)
        items: Floats = math.prod((extent(sizes) for extent in extents), start=np.asarray(1.0))
        tried = [access for access in counts.accesses if access.is_tried_again]
        updates = sum((access.executions.workitem(sizes) for access in tried), np.asarray(0.0))
        for access in tried:
            whole = counts.footprint_of(access.variable, access.direction)
            touched = touched_bytes(self.parsed, whole, counts, sizes)
            share, made = share_of(access, access.bits // 8, touched), access.executions.workitem(sizes)
            at_it = quotient(made, updates, 1.0) if self.is_work else 1.0
            total = total + share * made * at_it * self.asking(access, share, items, touched, sizes)
        return total

    @property
    def is_work(self) -> bool:
        """True where it counts what is asked for in rounds, of which a work-item takes part in one update's at a
        time."""
        return self.is_all or self.block is not None

    def asking(self, access: AccessCount, share: Floats, items: Floats, touched: Floats, sizes: Sizes) -> Floats:
        """Returns how much there is to do in a round for each work-item that is under way, where the busiest place has
        such a share of all updates."""
        if not self.is_work:
            return np.asarray(1.0)
        taking_part = np.minimum(access.executions.workitem(sizes) / items, 1.0)
        if known := access.contention:
            met = known.pairs if self.block is None else known.within
            part = met / np.maximum(share, met)
        else:
            part = np.minimum(share_of(access, self.block, touched), 1.0) if self.block else np.asarray(1.0)
        asking: Floats = taking_part * part
        if self.block is None:
            return asking
        subgroups = Granularity("subgroup", SUBGROUP_SIZE).executions(access.executions, self.name)(sizes)
        together = quotient(access.executions.workitem(sizes), subgroups, 1.0) / self.blocks_at_once(access, self.block)
        requests = np.minimum(asking / np.maximum(together, 1.0), np.minimum(subgroups / items, 1 / SUBGROUP_SIZE))
        found: Floats = requests + FURTHER * (asking - requests)
        return found

    @staticmethod
    def blocks_at_once(access: AccessCount, block: int) -> float:
        """Returns about how many blocks of so many bytes a sub-group goes to at once: lines of 128 bytes that are
        touched as a whole lie beside each other in one, those of which a sector is touched do not; where nobody looked,
        each work-item goes to one of its own."""
        if access.touched is None:
            return float(SUBGROUP_SIZE)
        sectors, lines = (between_sizes(access.touched, size) for size in (SECTOR, LINE_BYTES))
        filled = (sectors / max(lines, 1.0) - 1.0) / (LINE_BYTES / SECTOR - 1.0)
        return max(lines / (1.0 + (block / LINE_BYTES - 1.0) * min(max(filled, 0.0), 1.0)), 1.0)


class RetriesFamily(FeatureFamily):
    prefix = ("mem", "retries")
    summary = "rounds of comparisons and exchanges in global memory that are made until they succeed"
    examples = ("f_mem_retries_global", "f_mem_retries_global_block:512", "f_mem_retries_global_all")

    def candidates(self, counts: KernelCounts) -> Iterable[str]:
        if any(access.is_tried_again for access in counts.accesses):
            yield self.examples[0]

    def parse(self, name: FeatureName, words: tuple[Word, ...]) -> RetriesFeature:
        found = by_role(name, words, self.role)
        if "space" not in found:
            raise FeatureError(f"feature {name.text!r} is of global memory; write {self.examples[0]}")
        return RetriesFeature(name, int(found["block"]) if "block" in found else None, "which" in found)

    def role(self, name: FeatureName, word: Word) -> tuple[str, str]:
        condition = word.condition or ""
        if word.key == "block" and condition.isdecimal() and int(condition) == 512:
            return "block", condition
        if word.condition is None and word.key in ("global", "all"):
            return {"global": "space", "all": "which"}[word.key], word.key
        raise unknown_word(name, word, ("global", "block:512", "all"))
