"""Synchronization and launch: barriers, kernel launches, work-groups, work-items."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.counting.counts import KernelCounts
from perfmodel.counting.quasipolynomial import QuasiPolynomial
from perfmodel.vocabulary.feature_name import FeatureName, Word
from perfmodel.vocabulary.granularity import WORKITEM, Granularity, parse_granularity
from perfmodel.vocabulary.named_features import CountedFeature, FeatureFamily, unknown_word


class WholeCount(CountedFeature):
    """One of a kernel's overall counts, by the name it has in `KernelCounts`."""

    def __init__(self, name: FeatureName, unit: str, field: str) -> None:
        super().__init__(name)
        self.unit = unit
        self.field = field

    def values(self, counts: KernelCounts, sizes: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
        count: QuasiPolynomial = getattr(counts, self.field)
        return count(sizes)


class BarrierFeature(CountedFeature):
    """Local barriers, times those that meet them."""

    unit = "barrier"

    def __init__(self, name: FeatureName, granularity: Granularity) -> None:
        super().__init__(name)
        self.granularity = granularity
        self.subgroup_size = granularity.subgroup_size

    def values(self, counts: KernelCounts, sizes: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
        return self.granularity.executions(counts.barriers, self.name)(sizes)


class _WholeCountFamily(FeatureFamily):
    unit: str
    field: str

    @property
    def examples(self) -> tuple[str, ...]:  # type: ignore[override]
        return (self.name,)

    def parse(self, name: FeatureName, words: tuple[Word, ...]) -> WholeCount:
        if words:
            raise unknown_word(name, words[0], ("nothing more",))
        return WholeCount(name, self.unit, self.field)


class BarrierFamily(FeatureFamily):
    prefix = ("sync", "barrier", "local")
    summary = "local barriers, times the work-items that meet them (2016, section 2.3)"
    examples = ("f_sync_barrier_local", "f_sync_barrier_local_granularity:workgroup")

    def parse(self, name: FeatureName, words: tuple[Word, ...]) -> BarrierFeature:
        granularity = WORKITEM
        for word in words:
            if word.key != "granularity" or word.condition is None:
                raise unknown_word(name, word, ("granularity",))
            granularity = parse_granularity(word)
        return BarrierFeature(name, granularity)


class KernelLaunchFamily(_WholeCountFamily):
    prefix = ("sync", "kernel", "launch")
    summary = "launches of a device kernel"
    unit = "launch"
    field = "launches"


class WorkGroupFamily(_WholeCountFamily):
    prefix = ("thread", "groups")
    summary = "work-groups launched"
    unit = "work-group"
    field = "work_groups"


class WorkItemFamily(_WholeCountFamily):
    prefix = ("work", "items")
    summary = "work-items launched"
    unit = "work-item"
    field = "work_items"
