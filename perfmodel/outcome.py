"""Holds what running a recipe on one device gave, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from perfmodel.calibration import Calibration
    from perfmodel.predictor import Predictor
    from perfmodel.recipe import Recipe

Interval = tuple[float | None, float | None]
CALIBRATION, EVALUATION = "calibration", "evaluation"


@dataclass(frozen=True)
class Row:
    """One kernel under one model: what was measured and what was predicted.

    Attributes:
        model: name of a recipe's model or of a baseline.
        label: the line of the recipe's table that the kernel belongs to; of a calibration kernel, its name.
        predicted_s: None where the model can't predict this kernel.
        interval_68_s, interval_90_s: seconds between which the measured time was expected with these probabilities;
            None where the model gives none, and for an open end.
    """

    model: str
    kernel: str
    variant: str
    sizes: dict[str, int]
    role: str
    measured_s: float | None
    predicted_s: float | None
    predicted_std_s: float | None
    flags: tuple[str, ...] = ()
    label: str = ""
    interval_68_s: Interval | None = None
    interval_90_s: Interval | None = None

    @property
    def error(self) -> float:
        """The relative error, |predicted - measured| / measured; NaN where either is missing."""
        if not self.measured_s or self.predicted_s is None:
            return float("nan")
        return abs(self.predicted_s - self.measured_s) / self.measured_s


@dataclass(frozen=True)
class Cost:
    """Seconds that predicting the evaluation kernels took, against those that measuring them took.

    Attributes:
        measuring: the sum of all trials of all evaluation kernels, whenever they ran.
        counting: all models' features of all these kernels; counts that are on disk from before are not made anew.
        predicting: by model or baseline, with the features known.
    """

    measuring: float
    counting: float
    predicting: Mapping[str, float]


@dataclass(frozen=True)
class Outcome:
    """All that running a recipe on one device gave; `report` prints, plots and stores it.

    Attributes:
        baselines: by name, other predictors that were fitted to the same calibration kernels.
        notes: what whoever reads the tables must know, as sentences: kernels left out, a baseline that is missing.
        cost: None where nothing was measured on a device.
        steps: seconds that each step of this run took, by what it did.
    """

    recipe: Recipe
    command: str
    device: dict[str, Any]
    protocol: dict[str, Any]
    calibrations: dict[str, Calibration]
    rows: tuple[Row, ...]
    summary: dict[str, Any] = field(default_factory=dict)
    baselines: Mapping[str, Predictor] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    cost: Cost | None = None
    steps: Mapping[str, float] = field(default_factory=dict)

    @property
    def models(self) -> list[str]:
        """The recipe's models, and then the baselines."""
        return [*self.calibrations, *self.baselines]

    def evaluation(self, model: str) -> list[Row]:
        return [row for row in self.rows if row.model == model and row.role == EVALUATION]
