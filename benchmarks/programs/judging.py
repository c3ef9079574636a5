"""Predictions of programs are judged by measured times, one half of the programs at a time.

While a model is made, only the validation half is looked at; the other is for the end.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from perfmodel.basics.statistics import Errors
from perfmodel.basics.tables import grid, percent, seconds

HALVES = ("validation", "final")
SHORTEST_S = 20e-6
"""Shorter launches are mostly the driver's, and are left out."""


@dataclass(frozen=True)
class Judged:
    """Holds what is predicted and measured of one program, in seconds.

    Attributes:
        low, high: of the 90 % interval.
    """

    name: str
    group: str
    predicted: float
    measured: float
    low: float
    high: float

    @property
    def ratio(self) -> float:
        return self.predicted / self.measured

    @property
    def error(self) -> float:
        return abs(self.ratio - 1)

    @property
    def is_within_a_factor_of_two(self) -> bool:
        return 0.5 <= self.ratio <= 2

    @property
    def is_in_its_interval(self) -> bool:
        return self.low <= self.measured <= self.high


def half_of(name: str) -> str:
    """Returns the half that a program belongs to, which follows from its name alone."""
    return HALVES[hashlib.sha256(name.encode()).digest()[0] % 2]


def judged(files: Iterable[Path], half: str) -> tuple[list[Judged], int]:
    """Returns what files of `perfmodel survey --out` predict and measure, together, and how many were measured.

    Args:
        half: one of `HALVES`.
    """
    stages: dict[str, dict[str, dict[str, float | None]]] = {}
    groups: dict[str, str] = {}
    for file in files:
        for line in file.read_text(encoding="utf-8").splitlines():
            case = json.loads(line)
            groups[case["name"]] = case["group"]
            done = {name: stage["values"] for name, stage in case["stages"].items() if not stage["failure"]}
            stages.setdefault(case["name"], {}).update(done)
    measured = {
        name: float(found["measured"]["measured_s"] or 0)
        for name, found in stages.items()
        if "measured" in found and half_of(name) == half
    }
    measured = {name: time for name, time in measured.items() if time >= SHORTEST_S}
    rows = []
    for name, time in measured.items():
        if values := stages[name].get("predicted"):
            low, high = (np.inf if values[key] is None else float(values[key] or 0) for key in ("low_s", "high_s"))
            rows.append(
                Judged(
                    name=name,
                    group=groups[name],
                    predicted=float(values["predicted_s"] or 0),
                    measured=time,
                    low=low,
                    high=high,
                )
            )
    return rows, len(measured)


def as_text(rows: Sequence[Judged], measured: int, worst: int) -> str:
    """Returns a table by group, and the programs that are predicted worst."""
    groups = sorted({row.group for row in rows})
    lines = [_line(group, [row for row in rows if row.group == group]) for group in groups]
    lines.append(_line(f"all ({len(rows)} of {measured})", rows))
    head = ["group", "programs", "geo. mean", "mean", "maximum", "within 30 %", "within ×2", "in 90 % interval"]
    furthest = sorted(rows, key=lambda row: -abs(np.log(max(row.ratio, 1e-12))))[:worst]
    listed = [[r.name, r.group, seconds(r.predicted), seconds(r.measured), f"{r.ratio:.2f}"] for r in furthest]
    return f"{grid(head, lines)}\n\n{grid(['program', 'group', 'predicted', 'measured', 'ratio'], listed)}"


def _line(title: str, rows: Sequence[Judged]) -> list[str]:
    errors = Errors.of(row.error for row in rows)
    if errors is None:
        return [title, "0", *[""] * 6]
    twice, covered = (
        float(np.mean([getattr(row, name) for row in rows]))
        for name in ("is_within_a_factor_of_two", "is_in_its_interval")
    )
    shown = map(percent, (errors.geometric_mean, errors.mean, errors.maximum, errors.within_30_percent, twice, covered))
    return [title, str(len(rows)), *shown]
