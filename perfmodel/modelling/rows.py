"""Rows of measured and predicted times: one kernel, in a fit or judged by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from perfmodel.basics.brief import brief

Interval = tuple[float | None, float | None]
CALIBRATION, EVALUATION = "calibration", "evaluation"


@dataclass(frozen=True, kw_only=True)
class Row:
    """Holds what was measured of one kernel, and what one model predicts of it or has fitted to it.

    Attributes:
        measured_s: None where there is no time.
        predicted_s: None where the model can't predict this kernel; in a calibration, where it was left out of the fit.
        predicted_std_s: None where it is not known.
        flags: of the measurement: why it may be doubted, or is missing.
        key: of the measurement in a store.
        model: the name of a recipe's model or of a baseline.
        role: `CALIBRATION` or `EVALUATION`.
        label: the line of a recipe's table that the kernel belongs to; of a calibration kernel, its name.
        left_out: the reason why the kernel takes no part in errors; empty if it does.
        interval_68_s, interval_90_s: seconds between which the measured time was expected with these probabilities;
            None where the model gives none, and for an open end.
    """

    kernel: str
    variant: str
    sizes: dict[str, int]
    measured_s: float | None
    predicted_s: float | None
    predicted_std_s: float | None = None
    flags: tuple[str, ...] = ()
    key: str = ""
    model: str = ""
    role: str = ""
    label: str = ""
    left_out: str = ""
    interval_68_s: Interval | None = None
    interval_90_s: Interval | None = None

    @property
    def error(self) -> float:
        """The relative error, |predicted - measured| / measured; NaN where either is missing."""
        if not self.measured_s or self.predicted_s is None:
            return float("nan")
        return abs(self.predicted_s - self.measured_s) / self.measured_s

    def values(self, names: tuple[str, ...]) -> dict[str, Any]:
        """Returns the attributes of these names, as a kind of files holds them."""
        return {name: getattr(self, name) for name in names}

    def __repr__(self) -> str:
        return brief(self, str(self).removesuffix(": "))

    def __str__(self) -> str:
        at = ", ".join(f"{name}={size}" for name, size in self.sizes.items())
        return f"{self.kernel} {self.variant} at {at}: {', '.join(self.flags)}"
