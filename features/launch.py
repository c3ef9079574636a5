"""Synchronization and launch: barriers, kernel launches, work-groups, work-items."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.counting.counts import KernelCounts
from perfmodel.counting.quasipolynomial import QuasiPolynomial
from perfmodel.feature_name import FeatureName, Word
from perfmodel.vocabulary import CountedFeature, FeatureFamily, unknown_word


class WholeCount(CountedFeature):
    """One of a kernel's overall counts."""

    def __init__(self, name: FeatureName, unit: str, select: Callable[[KernelCounts], QuasiPolynomial]) -> None:
        super().__init__(name)
        self.unit = unit
        self.select = select

    def values(self, counts: KernelCounts, sizes: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
        return self.select(counts)(sizes)


class _WholeCountFamily(FeatureFamily):
    unit: str
    select: Callable[[KernelCounts], QuasiPolynomial]

    @property
    def examples(self) -> tuple[str, ...]:  # type: ignore[override]
        return (self.name,)

    def parse(self, name: FeatureName, words: tuple[Word, ...]) -> WholeCount:
        if words:
            raise unknown_word(name, words[0], ("nothing more",))
        return WholeCount(name, self.unit, type(self).select)


class BarrierFamily(_WholeCountFamily):
    prefix = ("sync", "barrier", "local")
    summary = "local barriers, times the work-items that meet them (2016, section 2.3)"
    unit = "barrier"
    select = staticmethod(lambda counts: counts.barriers)


class KernelLaunchFamily(_WholeCountFamily):
    prefix = ("sync", "kernel", "launch")
    summary = "launches of a device kernel"
    unit = "launch"
    select = staticmethod(lambda counts: counts.launches)


class WorkGroupFamily(_WholeCountFamily):
    prefix = ("thread", "groups")
    summary = "work-groups launched"
    unit = "work-group"
    select = staticmethod(lambda counts: counts.work_groups)


class WorkItemFamily(_WholeCountFamily):
    prefix = ("work", "items")
    summary = "work-items launched"
    unit = "work-item"
    select = staticmethod(lambda counts: counts.work_items)
