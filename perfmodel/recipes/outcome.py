"""Holds what running a recipe on one device gave, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from perfmodel.basics.brief import brief, number_of
from perfmodel.modelling.calibration import Calibration
from perfmodel.modelling.predictor import Predictor
from perfmodel.modelling.rows import EVALUATION, Row
from perfmodel.recipes.recipe import Recipe


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

    def __repr__(self) -> str:
        on = str(self.device.get("name") or "no device")
        return brief(
            self, f"{self.recipe.name} on {on}", f"models {', '.join(self.models)}", number_of(len(self.rows), "row")
        )
