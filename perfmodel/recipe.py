"""Recipes: models, the kernels that calibrate them, and other kernels that judge them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from perfmodel import registry
from perfmodel.errors import PerfmodelError, nearest

if TYPE_CHECKING:
    from perfmodel.calibration import Calibration
    from perfmodel.device import Device
    from perfmodel.kernel import Kernel
    from perfmodel.store import Store

CALIBRATION, EVALUATION = "calibration", "evaluation"
TagFilter = Sequence[str]


class Recipe(ABC):
    """A catalogue entry: model strings, a measurement set, an evaluation set, and what is compared."""

    name: str
    summary: str
    output = "f_cl_wall_time"
    protocol = "unified"
    # Model strings by name; the last one is the one that the verdict is about.
    models: ClassVar[dict[str, str]]

    @abstractmethod
    def measurement_tags(self, seconds_of: Callable[[TagFilter], float]) -> Sequence[TagFilter]:
        """Filters of the kernels to calibrate with; `seconds_of` times one kernel, to choose sizes for the device."""

    @abstractmethod
    def evaluation_tags(self, seconds_of: Callable[[TagFilter], float]) -> Sequence[TagFilter]:
        """Filters of the kernels to predict, none of which may be in the measurement set."""


@dataclass(frozen=True)
class Row:
    """One kernel under one model: what was measured and what was predicted."""

    model: str
    kernel: str
    variant: str
    sizes: dict[str, int]
    role: str
    measured_s: float | None
    predicted_s: float | None
    predicted_std_s: float | None
    flags: tuple[str, ...] = ()

    @property
    def error(self) -> float:
        """|predicted - measured| / measured; NaN where either is missing."""
        if not self.measured_s or self.predicted_s is None:
            return float("nan")
        return abs(self.predicted_s - self.measured_s) / self.measured_s


@dataclass(frozen=True)
class Outcome:
    """All that running a recipe on one device gave; `report` prints, plots and stores it."""

    recipe: Recipe
    command: str
    device: dict[str, Any]
    protocol: dict[str, Any]
    calibrations: dict[str, Calibration]
    rows: tuple[Row, ...]
    summary: dict[str, Any] = field(default_factory=dict)

    def evaluation(self, model: str) -> list[Row]:
        return [row for row in self.rows if row.model == model and row.role == EVALUATION]


def recipes() -> dict[str, Recipe]:
    """Every recipe found, perfmodel's own and those of installed packages, by name."""
    return {entry.name: entry for entry in registry.entries("models", Recipe)}


def recipe(name: str) -> Recipe:
    """The recipe of this name. Raises PerfmodelError with the nearest names."""
    found = recipes()
    if name not in found:
        raise PerfmodelError(f"no recipe {name!r}{nearest(name, found)} (known: {', '.join(found)})")
    return found[name]


def run(
    chosen: Recipe,
    *,
    device: Device | str | None = None,
    store: Store,
    protocol: str | None = None,
    command: str = "",
    tell: Callable[[str], None] = lambda message: None,
) -> Outcome:
    """Measures, calibrates and predicts.

    Both sets are measured in one campaign, so that the same state of the device stands behind both; the fit is given
    the calibration set alone.

    Args:
        store: keeps every time; what it has is not measured again.
        tell: is given a line before each step.

    Raises:
        PerfmodelError: if the evaluation set overlaps the measurement set, and as `measure` and `Model.fit` do.
    """
    from perfmodel.campaign import measure
    from perfmodel.collection import ALL_GENERATORS, KernelCollection
    from perfmodel.model import Model

    collection = KernelCollection(ALL_GENERATORS)
    models = {name: Model(chosen.output, expression) for name, expression in chosen.models.items()}
    conditions: dict[str, Any] = {"device": device, "store": store, "protocol": protocol or chosen.protocol}

    def seconds_of(tags: TagFilter) -> float:
        return float(measure(collection.generate_kernels(tags), models.values(), **conditions)[chosen.output].iloc[0])

    def generated(filters: Sequence[TagFilter]) -> list[Kernel]:
        return [kernel for tags in filters for kernel in collection.generate_kernels(tags)]

    tell("choosing sizes for this device")
    calibration_kernels = generated(chosen.measurement_tags(seconds_of))
    evaluation_kernels = generated(chosen.evaluation_tags(seconds_of))
    _check_disjoint(chosen, calibration_kernels, evaluation_kernels)
    tell(
        f"measuring {len(calibration_kernels)} kernels to calibrate with, and {len(evaluation_kernels)} others, kept "
        "from the fit, to check predictions"
    )
    everything = measure([*calibration_kernels, *evaluation_kernels], models.values(), **conditions)
    table, checks = everything.iloc[: len(calibration_kernels)], everything.iloc[len(calibration_kernels) :]
    tell(f"fitting {len(models)} models")
    calibrations = {name: model.fit(table) for name, model in models.items()}
    rows = [
        row
        for name, calibration in calibrations.items()
        for row in (
            *_rows(name, calibration, calibration_kernels, table, CALIBRATION),
            *_rows(name, calibration, evaluation_kernels, checks, EVALUATION),
        )
    ]
    attrs = everything.attrs
    return Outcome(
        chosen, command, attrs["device"], attrs["protocol"], calibrations, tuple(rows), summarize(rows, list(models))
    )


def _check_disjoint(chosen: Recipe, calibration: Sequence[Kernel], evaluation: Sequence[Kernel]) -> None:
    if both := set(calibration) & set(evaluation):
        raise PerfmodelError(
            f"recipe {chosen.name!r} would judge itself on {min(map(repr, both))}, which it is calibrated with; "
            "take it out of one of the two sets"
        )


def _rows(name: str, calibration: Calibration, kernels: Sequence[Kernel], table: Any, role: str) -> list[Row]:
    rows = []
    for kernel, (_, measured) in zip(kernels, table.iterrows(), strict=True):
        seconds, std = calibration.predict(kernel, return_std=True)
        time = float(measured[calibration.model.output_name])
        rows.append(
            Row(
                name,
                kernel.name,
                kernel.variant,
                kernel.sizes,
                role,
                time if np.isfinite(time) else None,
                float(seconds),
                float(std) if np.isfinite(std) else None,
                tuple(measured["flags"]),
            )
        )
    return rows


def summarize(rows: Sequence[Row], models: Sequence[str]) -> dict[str, Any]:
    """Errors and choices of each model on its evaluation rows, computed from the rows alone."""
    return {
        model: {
            "errors": _errors_by_variant([r for r in rows if r.model == model and r.role == EVALUATION]),
            "fastest": _fastest([r for r in rows if r.model == model and r.role == EVALUATION]),
        }
        for model in models
    }


def _errors_by_variant(rows: Sequence[Row]) -> dict[str, dict[str, float]]:
    result = {}
    for variant in dict.fromkeys(f"{row.kernel} {row.variant}" for row in rows):
        errors = np.array([r.error for r in rows if f"{r.kernel} {r.variant}" == variant and np.isfinite(r.error)])
        if errors.size:
            result[variant] = {
                "geometric_mean": float(np.exp(np.mean(np.log(np.maximum(errors, 1e-12))))),
                "mean": float(errors.mean()),
                "maximum": float(errors.max()),
                "count": int(errors.size),
            }
    return result


def _fastest(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """For each size that several variants have: which is the fastest, predicted and measured."""
    by_size: dict[tuple[tuple[str, int], ...], list[Row]] = {}
    for row in rows:
        if row.measured_s is not None:
            by_size.setdefault(tuple(row.sizes.items()), []).append(row)
    result = []
    for sizes, group in by_size.items():
        if len(group) < 2:
            continue
        predicted = min(group, key=lambda r: r.predicted_s or 0.0)
        measured = min(group, key=lambda r: r.measured_s or 0.0)
        tie = len({r.predicted_s for r in group}) == 1
        result.append(
            {
                "sizes": dict(sizes),
                "predicted": None if tie else predicted.variant,
                "measured": measured.variant,
                "right": not tie and predicted.variant == measured.variant,
                "cost_of_choice": (predicted.measured_s or 0.0) / (measured.measured_s or 1.0),
            }
        )
    return result
