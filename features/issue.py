"""Says what a kernel's machine code takes of a GPU's schedulers and their pipes: ``f_issue_slots``, ``f_issue_alu``."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

from perfmodel.counting.counts import Issue, KernelCounts
from perfmodel.features.memory_access import Floats, Sizes
from perfmodel.sass.pipes import CYCLES
from perfmodel.vocabulary.feature_name import FeatureName, Word
from perfmodel.vocabulary.named_features import CountedFeature, FeatureFamily, only_word

QUANTITIES: dict[str, tuple[str, Callable[[Issue], float]]] = {
    **{pipe: ("cycle", lambda issue, pipe=pipe: issue.cycles[pipe]) for pipe in CYCLES},  # type: ignore[misc]
    "alone": ("operation", lambda issue: issue.operations),
    "longest": ("", lambda issue: issue.longest),
    "uneven": ("", lambda issue: issue.uneven),
    "known": ("", lambda issue: 1.0),
}
"""The words of names: each with its unit, and how machine code says it."""


class CodeFeature(CountedFeature):
    """A number that machine code says, 0 where it is not known.

    Attributes:
        quantities: the words of names, each with its unit, and how what is known of the code says it.
    """

    of_compiled = True
    quantities: ClassVar[Mapping[str, tuple[str, Callable[[Any], float]]]]

    def __init__(self, name: FeatureName, word: str) -> None:
        super().__init__(name)
        self.word = word
        self.unit, _ = self.quantities[word]

    @abstractmethod
    def told(self, counts: KernelCounts) -> Any:
        """Returns what is known of the code; None for nothing."""

    def values(self, counts: KernelCounts, sizes: Sizes) -> Floats:
        told = self.told(counts)
        _, said = self.quantities[self.word]
        found: Floats = 0.0 * counts.work_items(sizes) + (0.0 if told is None else said(told))
        return found


class IssueFeature(CodeFeature):
    """A number that says what is issued, 0 where machine code is not known: that of kernels in CUDA C++ and PTX is,
    as compiled, where NVIDIA's assembler and disassembler are installed.

    ``slots`` are the cycles of a scheduler that the instructions of all sub-groups take but accesses, and ``fma``,
    ``alu``, ``fp64`` and ``special`` those of its pipes, all of a Hopper; ``single`` those that single precision takes
    of the first and ``convert`` those that conversions take of the second, as other GPUs have other lanes for these;
    ``query`` those of a compute unit until its texture units have said how large images are; ``alone`` the operations,
    one after the other, that take as long as the longest work-item does alone with every load from the nearest memory,
    times all work-items;
    ``longest`` is how many times as many instructions the busiest sub-group executes as that of another work-group, on
    average; ``uneven`` is the standard deviation of the instructions of work-groups, over their mean, by what those
    that follow each other differ; ``known`` is 1 where all of this is known.
    """

    quantities = QUANTITIES

    def told(self, counts: KernelCounts) -> Issue | None:
        return counts.issue


class IssueFamily(FeatureFamily):
    prefix = ("issue",)
    summary = "what machine code of CUDA and PTX takes of schedulers and their pipes"
    examples = tuple(f"f_issue_{word}" for word in QUANTITIES)

    def candidates(self, counts: KernelCounts) -> Iterable[str]:
        return () if counts.issue is None else (f"f_issue_{pipe}" for pipe in CYCLES)

    def parse(self, name: FeatureName, words: tuple[Word, ...]) -> IssueFeature:
        return IssueFeature(name, only_word(name, words, QUANTITIES, self.examples))
