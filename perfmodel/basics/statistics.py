"""Summarizes errors of many predictions: geometric mean, mean, maximum, and the share within a band."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

import numpy as np

SMALLEST_ERROR = 1e-6
"""Smaller errors count as this in a geometric mean, which a single exact prediction would make zero."""

BAND = 0.3
"""A prediction that is off by no more than this is one to rely on."""


@dataclass(frozen=True)
class Errors:
    """Holds several figures of the relative errors of predictions, as a geometric mean alone flatters.

    Attributes:
        within_10_percent: the share of them that is no larger.
        count: how many there are.
    """

    geometric_mean: float
    mean: float
    maximum: float
    within_10_percent: float
    within_30_percent: float
    count: int

    @classmethod
    def of(cls, every: Iterable[float]) -> Errors | None:
        """Returns the figures of all errors that are finite; None where none is."""
        errors = np.array([error for error in every if np.isfinite(error)])
        if not errors.size:
            return None
        within_10, within_30 = (float(np.mean(errors <= part)) for part in (0.1, BAND))
        return cls(
            geometric_mean=geometric_mean(errors.tolist()),
            mean=float(errors.mean()),
            maximum=float(errors.max()),
            within_10_percent=within_10,
            within_30_percent=within_30,
            count=int(errors.size),
        )

    @classmethod
    def figures(cls, every: Iterable[float]) -> dict[str, float] | None:
        """Returns the figures that results files hold, by their names."""
        found = cls.of(every)
        return {name: value for name, value in asdict(found).items() if name != "within_10_percent"} if found else None


def geometric_mean(errors: Sequence[float]) -> float:
    """Returns the geometric mean of at least one error; see `SMALLEST_ERROR`."""
    return float(np.exp(np.mean(np.log(np.maximum(errors, SMALLEST_ERROR)))))
