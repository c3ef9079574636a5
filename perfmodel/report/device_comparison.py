"""Compares calibrations of one model: parameters with their ratios, and the times of kernels that all have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perfmodel.basics.tables import sizes_text
from perfmodel.report.reported import ReportedModel

Times = tuple[float, ...]


@dataclass(frozen=True)
class DeviceComparison:
    """Calibrations of one model string, to be compared.

    Attributes:
        kernels: of every kernel that was measured for all of them its name, variant and sizes, and its measured
            times in seconds, in the models' order.
    """

    models: tuple[ReportedModel, ...]
    kernels: tuple[tuple[str, str, str, Times], ...]


def comparisons(models: Sequence[ReportedModel]) -> list[DeviceComparison]:
    """Returns a comparison for each model string that more than one calibration has."""
    groups: list[list[ReportedModel]] = []
    for model in models:
        if model.calibration is None:
            continue
        for group in groups:
            first = group[0].calibration
            if first is not None and first.model == model.calibration.model:
                group.append(model)
                break
        else:
            groups.append([model])
    return [DeviceComparison(tuple(group), _common(group)) for group in groups if len(group) > 1]


def _common(models: Sequence[ReportedModel]) -> tuple[tuple[str, str, str, Times], ...]:
    measured = [
        {(row.kernel, row.variant, sizes_text(row.sizes)): row.measured_s for row in model.rows if row.measured_s}
        for model in models
    ]
    first, *others = measured
    shared = (key for key in first if all(key in other for other in others))
    return tuple((*key, tuple(times[key] for times in measured)) for key in shared)
