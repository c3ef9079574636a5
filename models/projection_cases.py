"""Applications on several devices: measured and projected times, what follows for choices, and what these are worth."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from perfmodel.basics.statistics import Errors


@dataclass(frozen=True)
class ProjectionCase:
    """One application at one size, by device: seconds that were measured, and projected from some work-groups."""

    application: str
    size: int
    is_table: bool
    transfers: bool
    measured: Mapping[str, float]
    predicted: Mapping[str, float]
    limits: Mapping[str, str] = field(default_factory=dict)
    predicted_std: Mapping[str, float] = field(default_factory=dict)
    cost_s: float = 0.0

    @property
    def chosen(self) -> str:
        return min(self.predicted, key=self.predicted.__getitem__)

    @property
    def fastest(self) -> str:
        return min(self.measured, key=self.measured.__getitem__)

    @property
    def penalty(self) -> float:
        """The relative time lost by the choice, (T(B) - T(A)) / T(A), of the chosen device B and the fastest, A
        (section V-B)."""
        best = self.measured[self.fastest]
        return (self.measured[self.chosen] - best) / best

    @cached_property
    def relative_error(self) -> float:
        names = list(self.measured)
        return relative_error([self.measured[n] for n in names], [self.predicted[n] for n in names])


def relative_error(actual: Sequence[float], projected: Sequence[float]) -> float:
    """Returns the distance of the vectors of times on several devices, each of unit length, by the largest possible
    (section V-B).

    0 where all ratios between devices are right; 1 where the vectors are orthogonal.
    """
    one, two = (np.asarray(each, dtype=np.float64) / np.linalg.norm(each) for each in (actual, projected))
    return float(np.linalg.norm(one - two) / math.sqrt(2))


def crossover(cases: Iterable[ProjectionCase], gpu: str, cpu: str, predicted: bool) -> int | None:
    """Returns the smallest size from which on one device is always faster than the other; None if it never is."""
    found: int | None = None
    for case in sorted(cases, key=lambda each: each.size):
        times = case.predicted if predicted else case.measured
        is_first = found is None
        if times[gpu] >= times[cpu]:
            found = None
        elif is_first:
            found = case.size
    return found


def always(cases: Sequence[ProjectionCase]) -> dict[str, dict[str, Any]]:
    """Returns, by device, what always taking it comes to, over the cases that it has a time of; a choice has to be
    better.

    Returns:
        ``cases``, ``fastest_chosen``, ``largest_penalty`` and ``mean_penalty``, as for the choices by projection.
    """
    found = {}
    for device in dict.fromkeys(name for case in cases for name in case.measured):
        own = [case for case in cases if device in case.measured]
        penalties = [case.measured[device] / case.measured[case.fastest] - 1 for case in own]
        found[device] = {
            "cases": len(own),
            "fastest_chosen": sum(case.fastest == device for case in own),
            "largest_penalty": max(penalties),
            "mean_penalty": float(np.mean(penalties)),
        }
    return found


def time_errors(cases: Sequence[ProjectionCase]) -> dict[str, dict[str, float] | None]:
    """Returns, by device, |projected - measured| / measured, which the paper's relative error, of ratios, does not
    show."""
    return {
        device: Errors.figures(abs(c.predicted[device] / c.measured[device] - 1) for c in cases if device in c.measured)
        for device in dict.fromkeys(name for case in cases for name in case.measured)
    }
