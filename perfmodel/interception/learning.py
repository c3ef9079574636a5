"""Learns from the times of a program's launches: a calibration after them, and what they changed of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from perfmodel.basics.errors import PerfmodelError
from perfmodel.basics.statistics import geometric_mean
from perfmodel.basics.tables import grid, percent, wrapped
from perfmodel.device.facts import facts_called
from perfmodel.interception.launches import Launches
from perfmodel.kernels.kernel import Kernel
from perfmodel.measuring.campaign.result import grouped
from perfmodel.modelling.calibration import Calibration

CHANGED = 0.01
"""Parameters that change by less, in parts of their value, are not listed."""
SHOWN = 12
POSSIBLE = 0.999
"""Times outside of the intervals of this probability are taken to be disturbed, or those of a first launch."""


@dataclass(frozen=True)
class Learned:
    """Holds a calibration before and after it learned from the launches of a program.

    Attributes:
        kernels: how many it learned from, each at its sizes.
        errors: geometric mean of the relative errors of predictions of these, before and after; NaN without kernels.
        left_out: why it did not learn from a kernel, by its name and launch.
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
                f"learned from {self.kernels} kernels: errors of {percent(self.errors[0])} become those of "
                f"{percent(self.errors[1])} (geometric mean)"
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


def learned(groups: Sequence[Launches], calibration: Calibration) -> Learned:
    """Returns what the measured times of launches say of a calibration: of each kernel at its sizes, the shortest.

    Left out are launches without a time or on another device, kernels that cannot be predicted, and times that the
    calibration holds impossible: as a fit by least squares, it would believe each of them.
    """
    kernels: list[Kernel] = []
    times: list[float] = []
    left_out: dict[str, str] = {}
    for group in groups:
        try:
            seconds = _time(group, calibration)
            kernel = group.first.kernel
            _check_possible(seconds, kernel, calibration)
        except PerfmodelError as error:
            left_out[f"{group.first.name} {group.first.global_size}"] = str(error).split("\n")[0]
            continue
        kernels.append(kernel)
        times.append(seconds)
    if not kernels:
        return Learned(before=calibration, after=calibration, kernels=0, errors=(math.nan, math.nan), left_out=left_out)
    after = calibration.update(kernels, times)
    errors = [
        geometric_mean(np.abs([float(each.predict(kernel)) for kernel in kernels] / np.array(times) - 1).tolist())
        for each in (calibration, after)
    ]
    return Learned(
        before=calibration, after=after, kernels=len(kernels), errors=(errors[0], errors[1]), left_out=left_out
    )


def _time(group: Launches, calibration: Calibration) -> float:
    """Returns the seconds of one launch.

    Raises:
        PerfmodelError: there is no time, or it is that of another device.
    """
    here, there = group.first.device, str(calibration.device.get("name"))
    if here != there:
        facts = facts_called(here)
        if facts is None or facts != facts_called(there):
            raise PerfmodelError(f"it ran on {here}, and the calibration is of {there}")
    times = [record.seconds for record in group.records if record.seconds]
    if not times:
        raise PerfmodelError("its queue tells no times")
    return min(times)


def _check_possible(seconds: float, kernel: Kernel, calibration: Calibration) -> None:
    predicted = float(calibration.predict(kernel))
    if not 0 < predicted < math.inf:
        raise PerfmodelError("the model predicts no time for it")
    low, high = (float(end) for end in calibration.interval(kernel, POSSIBLE))
    if not low <= seconds <= high:
        raise PerfmodelError(
            f"it took {seconds / predicted:.2g} times as long as predicted, beyond the interval of {POSSIBLE:.1%}: it "
            "was disturbed, launched for the first time, or is of a kind that the model does not know"
        )
