"""Synchronization and launch: barriers, kernel launches, work-groups, work-items."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.counting.counts import Executions, KernelCounts
from perfmodel.vocabulary.feature_name import FeatureName, Word
from perfmodel.vocabulary.granularity import WORKITEM, Granularity, parse_granularity
from perfmodel.vocabulary.named_features import CountedFeature, FeatureFamily, SingleFamily, unknown_word


class Launches(CountedFeature):
    """Launches of a device kernel."""

    unit = "launch"

    def values(self, counts: KernelCounts, sizes: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
        return counts.launches(sizes)


class WorkGroups(CountedFeature):
    """Work-groups launched."""

    unit = "work-group"

    def values(self, counts: KernelCounts, sizes: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
        return counts.work_groups(sizes)


class WorkItems(CountedFeature):
    """Work-items launched."""

    unit = "work-item"

    def values(self, counts: KernelCounts, sizes: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
        return counts.work_items(sizes)


class SynchronizationFeature(CountedFeature):
    """Barriers or fences, times those that meet them, by work-items unless the name asks for another granularity."""

    def __init__(
        self,
        name: FeatureName,
        granularity: Granularity,
        unit: str,
        of: Callable[[KernelCounts], Iterable[Executions]],
    ) -> None:
        super().__init__(name)
        self.granularity, self.unit, self.of = granularity, unit, of
        self.subgroup_size = granularity.subgroup_size

    def values(self, counts: KernelCounts, sizes: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
        chosen = tuple(self.of(counts))

        def total(granularity: Granularity) -> Any:
            return sum((granularity.executions(each, self.name)(sizes) for each in chosen), np.asarray(0.0))

        return self.granularity.largest(total)


class BarrierFamily(FeatureFamily):
    prefix = ("sync", "barrier", "local")
    summary = "local barriers, times the work-items that meet them (2016, section 2.3)"
    examples = ("f_sync_barrier_local", "f_sync_barrier_local_granularity:workgroup")

    def parse(self, name: FeatureName, words: tuple[Word, ...]) -> SynchronizationFeature:
        return SynchronizationFeature(name, only_granularity(name, words), "barrier", _barriers)


class FenceFamily(FeatureFamily):
    prefix = ("sync", "fence")
    summary = "fences beyond work-groups, times those that execute them; accesses that release or acquire are parts"
    examples = ("f_sync_fence", "f_sync_fence_granularity:subgroup")

    def candidates(self, counts: KernelCounts) -> Iterable[str]:
        if counts.fences:
            yield self.name

    def parse(self, name: FeatureName, words: tuple[Word, ...]) -> SynchronizationFeature:
        return SynchronizationFeature(name, only_granularity(name, words), "fence", _fences)


class KernelLaunchFamily(SingleFamily):
    prefix = ("sync", "kernel", "launch")
    summary = "launches of a device kernel"
    kind = Launches


class WorkGroupFamily(SingleFamily):
    prefix = ("thread", "groups")
    summary = "work-groups launched"
    kind = WorkGroups


class WorkItemFamily(SingleFamily):
    prefix = ("work", "items")
    summary = "work-items launched"
    kind = WorkItems


def only_granularity(name: FeatureName, words: tuple[Word, ...]) -> Granularity:
    """Returns the granularity that the words of a feature name ask for, which may say nothing else."""
    granularity = WORKITEM
    for word in words:
        if word.key != "granularity" or word.condition is None:
            raise unknown_word(name, word, ("granularity",))
        granularity = parse_granularity(word)
    return granularity


def _barriers(counts: KernelCounts) -> Iterable[Executions]:
    return (counts.barriers,)


def _fences(counts: KernelCounts) -> Iterable[Executions]:
    return counts.fences
