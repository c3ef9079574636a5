"""Learns from many measured times at once, and tells what they changed and which of them taught nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from perfmodel.basics.brief import number_of
from perfmodel.basics.errors import PerfmodelError
from perfmodel.basics.statistics import geometric_mean
from perfmodel.basics.tables import grid, percent, wrapped
from perfmodel.kernels.kernel import Kernel
from perfmodel.measuring.campaign.result import grouped
from perfmodel.modelling.by_programs import of_programs
from perfmodel.modelling.calibration import Calibration
from perfmodel.modelling.learning import posterior
from perfmodel.modelling.prediction import predict

CHANGED = 0.01
"""Parameters that change by less, in parts of their value, are not listed."""
SHOWN = 12
POSSIBLE = 0.999
"""Times outside of the intervals of this probability are taken to be disturbed, or those of a first launch."""


@dataclass(frozen=True)
class Learned:
    """Holds a calibration before and after it learned from measured times.

    Attributes:
        kernels: how many it learned from, each at its sizes.
        errors: geometric mean of the relative errors of predictions of these, before and after; NaN without kernels.
        left_out: why it did not learn from a kernel, by its name.
    """

    before: Calibration
    after: Calibration
    kernels: int
    errors: tuple[float, float]
    left_out: Mapping[str, str]

    @property
    def changed(self) -> dict[str, tuple[float, float]]:
        """The parameters that changed, before and after, by name; the one that changed most comes first."""
        pairs = {name: (value, self.after.parameters[name]) for name, value in self.before.parameters.items()}
        moved = {name: abs(math.log(new / old)) for name, (old, new) in pairs.items() if old > 0 and new > 0}
        order = sorted(moved, key=lambda name: -moved[name])
        return {name: pairs[name] for name in order if moved[name] > math.log1p(CHANGED)}

    def as_json(self) -> dict[str, Any]:
        return {
            "kernels": self.kernels,
            "error_before": self.errors[0],
            "error_after": self.errors[1],
            "changed": {name: list(pair) for name, pair in self.changed.items()},
            "left_out": dict(self.left_out),
        }

    def __str__(self) -> str:
        lines = (
            [
                f"learned from {number_of(self.kernels, 'kernel')}: errors of {percent(self.errors[0])} become those "
                f"of {percent(self.errors[1])} (geometric mean)"
            ]
            if self.kernels
            else ["nothing was learned"]
        )
        for reason, names in grouped(self.left_out).items():
            others = f" and {len(names) - 1} more like it" if len(names) > 1 else ""
            lines.append(f"left out {names[0]}{others}: {reason}")
        text = wrapped("\n".join(lines))
        rows = [
            [name, f"{old:.4g}", f"{new:.4g}", f"{new / old - 1:+.0%}"]
            for name, (old, new) in list(self.changed.items())[:SHOWN]
        ]
        if len(self.changed) > SHOWN:
            rows.append([f"and {len(self.changed) - SHOWN} more", "", "", ""])
        return f"{text}\n\n{grid(['parameter', 'before', 'after', 'change'], rows)}" if rows else text


class _Foreseen(NamedTuple):
    """Holds what a calibration says of a kernel before it learns from its time."""

    features: Mapping[str, float]
    seconds: float
    low: float
    high: float


def learned_from(
    calibration: Calibration,
    timed: Sequence[tuple[str, Kernel, float]],
    left_out: Mapping[str, str] | None = None,
    progress: bool | None = False,
) -> Learned:
    """Returns what the times of kernels, each at its own sizes, say of a calibration.

    Left out are kernels that cannot be predicted, and times that the calibration holds impossible.

    Args:
        timed: what each kernel is called, the kernel, and the seconds that it took.
        left_out: what was left out before, and why, by name.
        progress: as for `perfmodel.measure`.
    """

    def foreseen(kernel: Kernel) -> _Foreseen | str:
        try:
            return _foreseen(calibration, kernel)
        except PerfmodelError as error:
            return str(error).split("\n")[0]

    reasons = dict(left_out or {})
    used: list[tuple[Kernel, _Foreseen, float]] = []
    found = of_programs(foreseen, [kernel for _, kernel, _ in timed], "counting", progress)
    for (name, kernel, time), each in zip(timed, found, strict=True):
        if isinstance(each, str):
            reasons[name] = each
        elif reason := _why_impossible(each, time):
            reasons[name] = reason
        else:
            used.append((kernel, each, time))
    if not used:
        return Learned(before=calibration, after=calibration, kernels=0, errors=(math.nan, math.nan), left_out=reasons)
    measured = np.array([time for *_, time in used])
    after = posterior(calibration, [kernel for kernel, *_ in used], [each.features for _, each, _ in used], measured)
    before_s = [each.seconds for _, each, _ in used]
    after_s = [row.predicted_s for row in after.rows[-len(used) :]]
    before_error, after_error = (
        geometric_mean(np.abs(np.array(each, dtype=np.float64) / measured - 1).tolist()) for each in (before_s, after_s)
    )
    return Learned(
        before=calibration, after=after, kernels=len(used), errors=(before_error, after_error), left_out=reasons
    )


def _foreseen(calibration: Calibration, kernel: Kernel) -> _Foreseen:
    found = predict(calibration, kernel, {})
    low, high = found.interval(POSSIBLE)
    features = {name: float(value) for name, value in found.features.items()}
    return _Foreseen(features, float(found.seconds), float(low), float(high))


def _why_impossible(foreseen: _Foreseen, seconds: float) -> str:
    """Returns the reason why a calibration can't learn from a kernel's time; empty where it can."""
    if not 0 < foreseen.seconds < math.inf:
        return "the model predicts no time for it"
    if foreseen.low <= seconds <= foreseen.high:
        return ""
    return (
        f"it took {seconds / foreseen.seconds:.2g} times as long as predicted, beyond the interval of {POSSIBLE:.1%}: "
        "it was disturbed, launched for the first time, or is of a kind that the model does not know"
    )
