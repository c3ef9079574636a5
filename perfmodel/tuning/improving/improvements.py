"""Holds what would make a kernel faster: changed kernels in order, with what is known of each."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from perfmodel.basics.brief import brief, number_of
from perfmodel.basics.json_values import plain
from perfmodel.basics.notebook import ShownAsText
from perfmodel.basics.tables import grid, seconds, wrapped
from perfmodel.kernels.kernel import Kernel
from perfmodel.modelling.prediction import LEVEL
from perfmodel.tuning.improving.search import Candidate

SHOWN_REJECTED = 3


@dataclass(frozen=True)
class Improvement:
    """A changed kernel.

    Attributes:
        candidate: the kernel with its changes and its prediction.
        saving: the part of the original's predicted time that it saves.
        differs: why it may not stand for the original; empty where it computes the same.
        measured_s: its measured seconds; None where it was not measured.
        remark: what is doubtful of that, or why there is none.
    """

    candidate: Candidate
    saving: float
    differs: str = ""
    measured_s: float | None = None
    remark: str = ""

    @property
    def kernel(self) -> Kernel:
        """The changed kernel, to be launched or written out."""
        return self.candidate.kernel

    @property
    def words(self) -> str:
        """The changes in one line."""
        return self.candidate.words

    @property
    def seconds(self) -> float:
        """The predicted seconds."""
        return self.candidate.seconds

    @property
    def code(self) -> tuple[str, ...]:
        """The lines that make it of the Loopy program ``program``; empty for kernels of another kind."""
        return self.candidate.code


@dataclass(frozen=True)
class Improvements(ShownAsText):
    """Holds changed kernels that compute the same as the original: those that were measured first, by their times, then
    by prediction.

    Attributes:
        original: the kernel as it is.
        found: the verified ones.
        rejected: those that are not the same, or could not be verified.
        tried: how many changed kernels were predicted.
        predicted_on, verified_on: names of devices.
        measured_on: the device that measured; empty where nothing was measured, for the reason in `unmeasured`.
    """

    original: Improvement
    found: tuple[Improvement, ...]
    rejected: tuple[Improvement, ...]
    tried: int
    predicted_on: str
    verified_on: str
    measured_on: str
    unmeasured: str

    @property
    def best(self) -> Kernel:
        """The best kernel: the original where no change is better."""
        return self.found[0].kernel if self.found else self.original.kernel

    def __iter__(self) -> Iterator[Improvement]:
        return iter(self.found)

    def __len__(self) -> int:
        return len(self.found)

    def as_json(self) -> dict[str, Any]:
        """Returns all that is known, as values that JSON can hold."""
        return {
            "original": _data(self.original),
            "improvements": [_data(each) for each in self.found],
            "rejected": [_data(each) for each in self.rejected],
            "tried": self.tried,
            "predicted_on": self.predicted_on,
            "verified_on": self.verified_on,
            "measured_on": self.measured_on or None,
        }

    def __repr__(self) -> str:
        best = f"the best saves {self.found[0].saving:.0%}" if self.found else "none"
        return brief(self, self.original.kernel.label, number_of(len(self.found), "improvement"), best)

    def __str__(self) -> str:
        header = ["", "predicted", "90 % from", "to", "times as fast"]
        if self.measured_on:
            header += ["measured", "remark"]
        table = grid(header, [self._line(place, each) for place, each in enumerate([self.original, *self.found])])
        changes = "\n".join(wrapped(f"{place}: {each.words}") for place, each in enumerate(self.found, 1))
        parts = [f"{self.original.kernel.label} on {self.predicted_on}", table, changes, self._notes()]
        if self.found and self.found[0].code:
            parts.append("\n".join(["# the first, of your program:", "import loopy as lp", "", *self.found[0].code]))
        return "\n\n".join(filter(None, parts))

    def _line(self, place: int, each: Improvement) -> list[str]:
        low, high = map(float, each.candidate.prediction.interval(LEVEL))
        ends = [seconds(low), seconds(high) if math.isfinite(high) else "unknown"]
        faster = self.original.seconds / each.seconds if each.seconds else math.nan
        cells = [str(place) if place else "as it is", seconds(each.seconds), *ends, f"{faster:.3g}"]
        return [*cells, seconds(each.measured_s), each.remark] if self.measured_on else cells

    def _notes(self) -> str:
        several = number_of(self.tried, "changed kernel")
        notes = [f"{several} predicted; those above compute the same as the original on {self.verified_on}"]
        if not self.found:
            notes = [f"{several} predicted, of which none is faster and computes the same"]
        if not self.tried:
            notes = ["no change of such a kernel is known; write variants of it, and let rank compare them"]
        notes += [f"not the same: {each.words}: {each.differs}" for each in self.rejected[:SHOWN_REJECTED]]
        if more := self.rejected[SHOWN_REJECTED:]:
            notes.append(f"not the same, too: {number_of(len(more), 'other')} that would have been faster")
        notes += [self.unmeasured] if self.unmeasured else []
        return "\n".join(wrapped(note) for note in notes)


def _data(each: Improvement) -> dict[str, Any]:
    low, high = map(float, each.candidate.prediction.interval(LEVEL))
    found = {
        "changes": list(each.candidate.changes),
        "code": list(each.code),
        "predicted_s": each.seconds,
        "low_s": low,
        "high_s": high,
        "saving": each.saving,
        "differs": each.differs,
        "measured_s": each.measured_s,
        "remark": each.remark,
    }
    return {name: plain(value) for name, value in found.items()}
