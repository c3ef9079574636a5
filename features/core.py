"""Says what a kernel's machine code takes of a processor's cores: ``f_core_slots``, ``f_core_waits``."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from perfmodel.counting.counts import CoreWork, KernelCounts
from perfmodel.features.issue import CodeFeature
from perfmodel.vocabulary.feature_name import FeatureName, Word
from perfmodel.vocabulary.named_features import FeatureFamily, only_word
from perfmodel.x86.units import CYCLES, UNITS

QUANTITIES: dict[str, tuple[str, Callable[[CoreWork], float]]] = {
    **{
        unit: ("cycle" if unit in CYCLES else "operation", lambda core, unit=unit: core.units.get(unit, 0.0))  # type: ignore[misc]
        for unit in UNITS
    },
    "waits": ("cycle", lambda core: core.waits),
    "known": ("", lambda core: 1.0),
}
"""The words of names: each with its unit, and how machine code says it."""


class CoreFeature(CodeFeature):
    """A number that says what a unit of a processor's cores has to do, 0 where machine code is not known: that of
    kernels in OpenCL C is, as Intel's driver makes it, where it is here (see `perfmodel.Kernel.as_core_code`).

    The words are those of `perfmodel.x86.units.UNITS`; ``waits`` are the cycles in which results are waited for, where
    nothing else takes time; ``known`` is 1 where all of this is known. All are sums over the launch's work-groups.
    """

    quantities = QUANTITIES

    def told(self, counts: KernelCounts) -> CoreWork | None:
        return counts.core


class CoreFamily(FeatureFamily):
    prefix = ("core",)
    summary = "what the machine code that a processor's driver makes takes of its cores' units"
    examples = tuple(f"f_core_{word}" for word in QUANTITIES)

    def candidates(self, counts: KernelCounts) -> Iterable[str]:
        return () if counts.core is None else (f"f_core_{unit}" for unit in UNITS)

    def parse(self, name: FeatureName, words: tuple[Word, ...]) -> CoreFeature:
        return CoreFeature(name, only_word(name, words, QUANTITIES, self.examples))
