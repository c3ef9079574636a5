"""Findings are mistakes of the kernel that its emulation meets."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from perfmodel.opencl_c.syntax import Place


@dataclass
class Finding:
    """A finding is one kind of mistake at one place of the source.

    Attributes:
        kind: ``out of bounds``, ``misaligned``, ``uninitialised``, ``race``, ``barrier divergence`` or
            ``division by zero``.
        message: one sentence on the first time it happened.
        group, work_item: of the first time: the group's ids and the local ids; None where several are involved.
        count: how often work-items (of races: words in memory) met it; a lower bound for what is only checked the first
            time that an access repeats itself.
    """

    kind: str
    place: Place
    message: str
    group: tuple[int, ...] | None
    work_item: tuple[int, ...] | None
    count: int = 1

    def __str__(self) -> str:
        return f"{self.place}: {self.kind}: {self.message}"


class FindingLog:
    """Collects findings: the first one of each kind and place (and `detail`), with a count."""

    def __init__(self) -> None:
        self._found: dict[Hashable, Finding] = {}

    def add(self, finding: Finding, detail: Hashable = None) -> None:
        known = self._found.setdefault((finding.kind, finding.place, detail), finding)
        if known is not finding:
            known.count += finding.count

    def all(self) -> tuple[Finding, ...]:
        return tuple(self._found.values())
