"""Functions by which work-items of a group or sub-group exchange values: ``f_sync_collective``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.counting.counts import KernelCounts
from perfmodel.vocabulary.feature_name import FeatureName, Word
from perfmodel.vocabulary.granularity import WORKITEM, Granularity, parse_granularity
from perfmodel.vocabulary.named_features import CountedFeature, FeatureFamily, by_role, unknown_word

KINDS = ("reduce", "scan", "broadcast", "shuffle", "vote")
SCOPES = ("workgroup", "subgroup")


class CollectiveFeature(CountedFeature):
    """The number of calls of collective functions, by work-items unless the name asks for another granularity."""

    unit = "collective"

    def __init__(self, name: FeatureName, kind: str | None, scope: str | None, granularity: Granularity) -> None:
        super().__init__(name)
        self.kind, self.scope, self.granularity = kind, scope, granularity
        self.subgroup_size = granularity.subgroup_size

    def values(self, counts: KernelCounts, sizes: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
        chosen = [
            one for one in counts.collectives if self.kind in (None, one.kind) and self.scope in (None, one.scope)
        ]
        return self.granularity.largest(
            lambda granularity: sum(
                (granularity.executions(one.executions, self.name)(sizes) for one in chosen), np.asarray(0.0)
            )
        )


class CollectiveFamily(FeatureFamily):
    prefix = ("sync", "collective")
    summary = "functions by which work-items of a work-group or sub-group exchange values"
    examples = ("f_sync_collective", "f_sync_collective_subgroup_shuffle", "f_sync_collective_workgroup_reduce")

    def candidates(self, counts: KernelCounts) -> Iterable[str]:
        if counts.collectives:
            yield self.name

    def parse(self, name: FeatureName, words: tuple[Word, ...]) -> CollectiveFeature:
        found = by_role(name, words, self.role)
        granularity = parse_granularity(found["granularity"]) if "granularity" in found else WORKITEM
        kind, scope = (found[role].key if role in found else None for role in ("kind", "scope"))
        return CollectiveFeature(name, kind, scope, granularity)

    def role(self, name: FeatureName, word: Word) -> tuple[str, Word]:
        for role, words in (("kind", KINDS), ("scope", SCOPES)):
            if word.condition is None and word.key in words:
                return role, word
        if word.condition is not None and word.key == "granularity":
            return "granularity", word
        raise unknown_word(name, word, (*KINDS, *SCOPES, "granularity"))
