"""Branches: how often they are decided, and how often sub-groups go both ways: ``f_branch``, ``f_branch_divergent``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.errors import FeatureError
from perfmodel.counting.counts import SUBGROUP_SIZE, BranchCount, KernelCounts
from perfmodel.vocabulary.feature_name import FeatureName, Word
from perfmodel.vocabulary.granularity import WORKITEM, Granularity, parse_granularity
from perfmodel.vocabulary.named_features import CountedFeature, FeatureFamily, by_role, unknown_word

KINDS = ("if", "choice", "loop")
MASKED = "masked"
"""Asks for branches of which work-items side by side may go both ways, as far as a compiler sees."""


class BranchFeature(CountedFeature):
    """The number of decisions of branches, by work-items unless the name asks for another granularity."""

    unit = "branch"

    def __init__(self, name: FeatureName, kind: str | None, granularity: Granularity, is_masked: bool) -> None:
        super().__init__(name)
        self.kind, self.granularity, self.is_masked = kind, granularity, is_masked
        self.subgroup_size = granularity.subgroup_size

    def values(self, counts: KernelCounts, sizes: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
        chosen = [branch for branch in counts.branches if self.kind in (None, branch.kind)]
        if self.is_masked:
            chosen = [branch for branch in chosen if branch.is_masked]
        return self.granularity.largest(
            lambda granularity: sum((self.times(branch, sizes, granularity) for branch in chosen), np.asarray(0.0))
        )

    def times(
        self, branch: BranchCount, sizes: Mapping[str, NDArray[Any]], granularity: Granularity
    ) -> NDArray[np.float64]:
        return granularity.executions(branch.met, self.name)(sizes)


class DivergentFeature(BranchFeature):
    """The number of times that sub-groups go both ways at branches (Karan Kumar, "divergence")."""

    unit = "divergent branch"

    def times(
        self, branch: BranchCount, sizes: Mapping[str, NDArray[Any]], granularity: Granularity
    ) -> NDArray[np.float64]:
        if branch.divergent is not None:
            return branch.divergent(sizes)
        if np.any(super().times(branch, sizes, granularity) > 0):
            reason = "depends on data" if branch.divergence == "by data" else "is too hard to count"
            raise FeatureError(
                f"feature {self.name!r} is not defined for the {branch.kind} at {branch.text}, which {reason}; "
                "perfmodel.emulate counts how often its sub-groups diverge"
            )
        return np.asarray(0.0)


class BranchFamily(FeatureFamily):
    prefix: tuple[str, ...] = ("branch",)
    summary = "decisions of branches: of ifs, of choices such as && and ?:, and of loops"
    examples: tuple[str, ...] = ("f_branch", "f_branch_if", "f_branch_loop_granularity:subgroup")
    feature: type[BranchFeature] = BranchFeature
    granularity: Granularity = WORKITEM

    def candidates(self, counts: KernelCounts) -> Iterable[str]:
        if counts.branches:
            yield self.name

    def parse(self, name: FeatureName, words: tuple[Word, ...]) -> BranchFeature:
        found = by_role(name, words, self.role)
        granularity = parse_granularity(found["granularity"]) if "granularity" in found else self.granularity
        kind = found["kind"].key if "kind" in found else None
        return self.feature(name, kind, granularity, MASKED in found)

    def role(self, name: FeatureName, word: Word) -> tuple[str, Word]:
        if word.condition is None and word.key in KINDS:
            return "kind", word
        if word.condition is None and word.key == MASKED:
            return MASKED, word
        if word.condition is not None and word.key == "granularity":
            return "granularity", word
        raise unknown_word(name, word, (*KINDS, MASKED, "granularity"))


class DivergentFamily(BranchFamily):
    prefix = ("branch", "divergent")
    summary = "how often sub-groups go both ways at branches that don't depend on data"
    examples = ("f_branch_divergent", "f_branch_divergent_if", "f_branch_divergent_granularity:subgroup64")
    feature = DivergentFeature
    granularity = Granularity("subgroup", SUBGROUP_SIZE)

    def candidates(self, counts: KernelCounts) -> Iterable[str]:
        if counts.branches and all(branch.divergence != "by data" for branch in counts.branches):
            yield self.name

    def parse(self, name: FeatureName, words: tuple[Word, ...]) -> BranchFeature:
        found = super().parse(name, words)
        if found.granularity.name != "subgroup":
            raise FeatureError(
                f"feature {name.text!r} is of sub-groups; write granularity:subgroup64 for those of 64 work-items, or "
                "leave the granularity out"
            )
        return found
