"""A predictor is what calibrated models and baselines have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from perfmodel.kernels.kernel import Kernel
from perfmodel.modelling.calibration import Calibration
from perfmodel.modelling.prediction import predict
from perfmodel.modelling.rows import Interval


class PredictedTime(NamedTuple):
    """A predicted time, its standard deviation, and the 68 and 90 % intervals; None where there is none."""

    seconds: float | None
    std: float | None = None
    interval_68: Interval | None = None
    interval_90: Interval | None = None


class Predictor(Protocol):
    """Anything that was fitted to a measurement set and predicts other kernels."""

    @property
    def name(self) -> str: ...

    def predict(self, kernels: Sequence[Kernel]) -> list[PredictedTime]:
        """Returns an estimate for each kernel, in their order; without seconds for one that it can't predict."""

    def parameter_lines(self) -> list[str]:
        """Returns what was fitted, as text, a line each."""


@dataclass(frozen=True)
class CalibratedModel:
    """A recipe's model with its calibration."""

    name: str
    calibration: Calibration

    def predict(self, kernels: Sequence[Kernel]) -> list[PredictedTime]:
        return [self._estimate(kernel) for kernel in kernels]

    def parameter_lines(self) -> list[str]:
        return self.calibration.parameter_lines()

    def _estimate(self, kernel: Kernel) -> PredictedTime:
        found = predict(self.calibration, kernel, {})
        std = float(found.std) if np.isfinite(found.std) else None
        return PredictedTime(float(found.seconds), std, _ends(found.interval(0.68)), _ends(found.interval(0.9)))


def _ends(interval: tuple[NDArray[np.float64], NDArray[np.float64]]) -> Interval | None:
    low, high = (float(end) for end in interval)
    if not np.isfinite(high) and low == 0:
        return None
    return low, high if np.isfinite(high) else None
