"""Predicts Triton's kernels, and compares that with their times."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.cuda_kernels.judging import LONGEST_S, SHORTEST_S, predicted
from benchmarks.cuda_kernels.measuring import done
from benchmarks.triton_kernels.cases import ORIGINS, SPACE, Case
from perfmodel import Calibration
from perfmodel.basics.errors import PerfmodelError
from perfmodel.basics.statistics import Errors
from perfmodel.basics.tables import grid, percent, seconds
from perfmodel.device import CUDA

NATIVE = "native.jsonl"
"""Times of kernels that Triton compiled and launched on the machine itself."""
FIRST = 5
"""So many configurations a tuner measures."""


@dataclass(frozen=True)
class Row:
    """Holds what is measured and predicted of a kernel, in seconds."""

    name: str
    origin: str
    measured: float
    predicted: float

    @property
    def ratio(self) -> float:
        return self.predicted / self.measured


def predicted_row(case: Case, calibration: Calibration) -> dict[str, Any]:
    """Returns what is predicted of a kernel, or why it can't be."""
    try:
        return {"seconds": _predicted(case, calibration), "why": ""}
    except PerfmodelError as error:
        return {"seconds": None, "why": str(error).split("\n")[0]}


def _predicted(case: Case, calibration: Calibration) -> float:
    kernel = case.kernel(CUDA)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(calibration.predict(kernel.as_countable(case.arrays()) if case.arrays else kernel))


def rows(folder: Path) -> tuple[list[Row], list[str]]:
    """Returns the kernels that have a time and a prediction, and a line for each of the others."""
    found, left = [], []
    known = predicted(folder)
    for name, row in done(folder).items():
        time = (row["times"].get(CUDA) or {}).get("seconds")
        told = known.get(name, {"seconds": None, "why": "was not predicted"})
        if row["why"] or time is None:
            flags = [flag for each in row["times"].values() for flag in each["flags"] if "failed" in flag]
            left.append(f"{name}: {row['why'] or '; '.join(flags)}"[:200])
        elif not SHORTEST_S <= time <= LONGEST_S:
            left.append(f"{name}: takes {seconds(time)}")
        elif told["seconds"] is None:
            left.append(f"{name}: {told['why']}")
        else:
            found.append(Row(name, row["origin"], time, told["seconds"]))
    return found, left


def as_text(folder: Path) -> str:
    """Returns a table of all kernels, errors of each origin, how the space is ranked, and what was left out."""
    found, left = rows(folder)
    path = folder / NATIVE
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    native = {row["name"]: float(row["seconds"]) for row in map(json.loads, lines) if row["seconds"]}
    cells = [
        [
            row.name,
            seconds(row.measured),
            _beside(native.get(row.name), row),
            seconds(row.predicted),
            f"{row.ratio:.2f}",
        ]
        for origin in ORIGINS
        for row in sorted((row for row in found if row.origin == origin), key=lambda row: row.name)
    ]
    errors = [_errors(origin, [row for row in found if row.origin == origin]) for origin in ORIGINS]
    parts = [
        grid(["kernel", "measured", "by Triton", "predicted", "ratio"], cells),
        grid(
            ["errors of", "kernels", "geo. mean", "mean", "maximum", "within 30 %"], [each for each in errors if each]
        ),
        *_ranked([row for row in found if row.origin == SPACE]),
    ]
    return "\n\n".join([*parts, *(["left out:\n" + "\n".join(left)] if left else [])])


def _beside(native: float | None, row: Row) -> str:
    """Returns the time as Triton launches it, as a multiple of that by way of PTX."""
    return f"{native / row.measured:.2f}" if native else ""


def _errors(title: str, found: Sequence[Row]) -> list[str]:
    errors = Errors.of(abs(row.ratio - 1) for row in found)
    if errors is None:
        return []
    shown = map(percent, (errors.geometric_mean, errors.mean, errors.maximum, errors.within_30_percent))
    return [title, str(len(found)), *shown]


def _ranked(space: Sequence[Row]) -> list[str]:
    """Returns how far the best of the configurations predicted best is from the best of all."""
    if not space:
        return []
    best = min(row.measured for row in space)
    order = sorted(space, key=lambda row: row.predicted)
    lost = [min(row.measured for row in order[:count]) / best - 1 for count in (1, FIRST)]
    return [
        f"{len(space)} configurations: the one predicted best is {percent(lost[0])} slower than the best, the best of "
        f"the first {FIRST} {percent(lost[1])}"
    ]
