"""Predicts the kernels in both languages, and compares that with their times."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.cuda_kernels.cases import Case
from benchmarks.cuda_kernels.measuring import RUNTIMES, done
from perfmodel import Calibration
from perfmodel.basics.errors import PerfmodelError
from perfmodel.basics.statistics import Errors
from perfmodel.basics.tables import grid, percent, seconds
from perfmodel.device import CUDA, OPENCL

PREDICTED = "predicted.jsonl"
SHORTEST_S, LONGEST_S = 20e-6, 20e-3
"""Other launches are left out: shorter ones are mostly the driver's."""


@dataclass(frozen=True)
class Row:
    """Holds what is measured and predicted of a kernel, in seconds, by runtime."""

    name: str
    origin: str
    measured: dict[str, float]
    predicted: dict[str, float]

    def ratio(self, runtime: str) -> float:
        return self.predicted[runtime] / self.measured[runtime]


def predicted_row(case: Case, calibration: Calibration) -> dict[str, Any]:
    """Returns what is predicted of a kernel in each language, and why the others can't be."""
    found: dict[str, float] = {}
    why: dict[str, str] = {}
    for runtime in RUNTIMES:
        try:
            found[runtime] = _predicted(case, runtime, calibration)
        except PerfmodelError as error:
            why[runtime] = str(error).split("\n")[0]
    return {"seconds": found, "why": why}


def _predicted(case: Case, runtime: str, calibration: Calibration) -> float:
    kernel = case.kernel(runtime)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        contents = case.contents(kernel)
        return float(calibration.predict(kernel.as_countable(contents) if contents else kernel))


def predicted(folder: Path) -> dict[str, Any]:
    """Returns what was predicted, by the names of kernels."""
    path = folder / PREDICTED
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {row["name"]: row for row in map(json.loads, lines)}


def rows(folder: Path) -> tuple[list[Row], list[str]]:
    """Returns the kernels that have both times and both predictions, and a line for each of the others."""
    found, left = [], []
    known = predicted(folder)
    for name, row in done(folder).items():
        given = {runtime: (row["times"].get(runtime) or {}).get("seconds") for runtime in RUNTIMES}
        times = {runtime: float(time) for runtime, time in given.items() if time is not None}
        told = known.get(name, {"seconds": {}, "why": {}})
        if row["why"] or len(times) < len(RUNTIMES):
            flags = [flag for each in row["times"].values() for flag in each["flags"] if "failed" in flag]
            left.append(f"{name}: {row['why'] or '; '.join(flags)}"[:200])
        elif not all(SHORTEST_S <= time <= LONGEST_S for time in times.values()):
            left.append(f"{name}: takes {seconds(times[CUDA])}, {seconds(times[OPENCL])} by way of OpenCL")
        elif set(told["seconds"]) != set(RUNTIMES):
            left.append(f"{name}: {told['why'] or 'was not predicted'}")
        else:
            found.append(Row(name, row["origin"], times, told["seconds"]))
    return found, left


def as_text(found: Sequence[Row], left: Sequence[str]) -> str:
    """Returns a table of all kernels, errors of both runtimes, and what was left out."""
    head = ["kernel", "CUDA", "predicted", "ratio", "OpenCL", "predicted", "ratio", "CUDA/OpenCL", "predicted"]
    lines = [
        [
            row.name,
            *_cells(row, CUDA),
            *_cells(row, OPENCL),
            *(f"{_both(each):.2f}" for each in (row.measured, row.predicted)),
        ]
        for row in sorted(found, key=lambda row: (row.origin, row.name))
    ]
    errors = [
        _errors(f"{origin}, {runtime}", [row for row in found if origin in (row.origin, "all")], runtime)
        for origin in ("twin", "generator", "program", "all")
        for runtime in RUNTIMES
    ]
    apart = [abs(math.log(_both(row.measured))) for row in found]
    same = sum(each < math.log(1.05) for each in apart)
    parts = [
        grid(head, lines),
        grid(
            ["errors of", "kernels", "geo. mean", "mean", "maximum", "within 30 %"], [each for each in errors if each]
        ),
        f"{len(found)} kernels; {same} take the same time by way of both runtimes within 5 %",
    ]
    return "\n\n".join([*parts, *(["left out:\n" + "\n".join(left)] if left else [])])


def _both(values: dict[str, float]) -> float:
    return values[CUDA] / values[OPENCL]


def _cells(row: Row, runtime: str) -> list[str]:
    return [seconds(row.measured[runtime]), seconds(row.predicted[runtime]), f"{row.ratio(runtime):.2f}"]


def _errors(title: str, found: Sequence[Row], runtime: str) -> list[str]:
    errors = Errors.of(abs(row.ratio(runtime) - 1) for row in found)
    if errors is None:
        return []
    shown = map(percent, (errors.geometric_mean, errors.mean, errors.maximum, errors.within_30_percent))
    return [title, str(len(found)), *shown]
