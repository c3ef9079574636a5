"""How often a work-item has to wait for memory: ``f_mem_rounds_global``."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from perfmodel.counting.counts import KernelCounts
from perfmodel.errors import FeatureError
from perfmodel.feature_name import FeatureName, Word
from perfmodel.features.memory_access import Floats, Sizes
from perfmodel.vocabulary import CountedFeature, FeatureFamily, unknown_word

SPACES = ("global", "local")


class RoundsFeature(CountedFeature):
    """Executions of loads, those in one loop body counted once: they don't wait for each other."""

    unit = "round"

    def __init__(self, name: FeatureName, space: str) -> None:
        super().__init__(name)
        self.space = space

    def values(self, counts: KernelCounts, sizes: Sizes) -> Floats:
        bodies: dict[tuple[str, ...], Floats] = {}
        for access in counts.accesses:
            if access.space == self.space and access.direction == "load":
                body = tuple(access.loop_strides)
                bodies[body] = np.maximum(bodies.get(body, np.asarray(0.0)), access.executions.workitem(sizes))
        return np.asarray(sum(bodies.values(), np.asarray(0.0)))


class RoundsFamily(FeatureFamily):
    prefix = ("mem", "rounds")
    summary = "loads from global or local memory, those of one loop body together"
    examples = ("f_mem_rounds_global", "f_mem_rounds_local")

    def candidates(self, counts: KernelCounts) -> Iterable[str]:
        return self.examples

    def parse(self, name: FeatureName, words: tuple[Word, ...]) -> RoundsFeature:
        for word in words:
            if word.condition is not None or word.key not in SPACES:
                raise unknown_word(name, word, SPACES)
        if len(words) != 1:
            raise FeatureError(f"feature {name.text!r} is of global or of local memory; write which, once")
        return RoundsFeature(name, words[0].key)
