"""Rows of measured and predicted times: one kernel under one model."""

from __future__ import annotations

from dataclasses import dataclass

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
