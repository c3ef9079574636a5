"""How often a work-item has to wait for memory: ``f_mem_rounds_global``."""

from __future__ import annotations

from collections.abc import Iterable

from perfmodel.counting.counts import KernelCounts
from perfmodel.errors import FeatureError
from perfmodel.feature_name import FeatureName, Word
from perfmodel.features.memory_access import Floats, Sizes
from perfmodel.granularity import WORKITEM, Granularity, once_a_body, parse_granularity
from perfmodel.vocabulary import CountedFeature, FeatureFamily, unknown_word

SPACES = ("global", "local")


class RoundsFeature(CountedFeature):
    """Executions of loads, those in one loop body counted once: they don't wait for each other."""

    unit = "round"

    def __init__(self, name: FeatureName, space: str, granularity: Granularity) -> None:
        super().__init__(name)
        self.space = space
        self.granularity = granularity
        self.subgroup_size = granularity.subgroup_size

    def values(self, counts: KernelCounts, sizes: Sizes) -> Floats:
        loads = [a for a in counts.accesses if a.space == self.space and a.direction == "load"]
        executions = (self.granularity.executions(load.executions, self.name)(sizes) for load in loads)
        return once_a_body(zip((tuple(load.loop_strides) for load in loads), executions, strict=True))


class RoundsFamily(FeatureFamily):
    prefix = ("mem", "rounds")
    summary = "loads from global or local memory, those of one loop body together"
    examples = ("f_mem_rounds_global", "f_mem_rounds_local")

    def candidates(self, counts: KernelCounts) -> Iterable[str]:
        return self.examples

    def parse(self, name: FeatureName, words: tuple[Word, ...]) -> RoundsFeature:
        spaces = [word.key for word in words if word.key in SPACES and word.condition is None]
        granularities = [word for word in words if word.key == "granularity" and word.condition is not None]
        for word in words:
            if word.key not in spaces and word not in granularities:
                raise unknown_word(name, word, (*SPACES, "granularity"))
        if len(spaces) != 1:
            raise FeatureError(f"feature {name.text!r} is of global or of local memory; write which, once")
        if len(granularities) > 1:
            raise FeatureError(
                f"feature {name.text!r} gives its granularity twice; leave one out", granularities[1].offset
            )
        return RoundsFeature(name, spaces[0], parse_granularity(granularities[0]) if granularities else WORKITEM)
