"""What predicts: the one shape that calibrated models and baselines have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

if TYPE_CHECKING:
    from perfmodel.calibration import Calibration
    from perfmodel.kernel import Kernel


class Estimate(NamedTuple):
    """A predicted time and its standard deviation; None where there is none."""

    seconds: float | None
    std: float | None = None


class Predictor(Protocol):
    """Anything that was fitted to a measurement set and predicts other kernels."""

    @property
    def name(self) -> str: ...

    def predict(self, kernels: Sequence[Kernel]) -> list[Estimate]:
        """An estimate for each kernel, in their order; without seconds for one that it can't predict."""

    def parameter_lines(self) -> list[str]:
        """What was fitted, as text, a line each."""


@dataclass(frozen=True)
class CalibratedModel:
    """A recipe's model with its calibration."""

    name: str
    calibration: Calibration

    def predict(self, kernels: Sequence[Kernel]) -> list[Estimate]:
        return [self._estimate(kernel) for kernel in kernels]

    def parameter_lines(self) -> list[str]:
        return self.calibration.parameter_lines()

    def _estimate(self, kernel: Kernel) -> Estimate:
        seconds, std = self.calibration.predict(kernel, return_std=True)
        return Estimate(float(seconds), float(std) if np.isfinite(std) else None)
