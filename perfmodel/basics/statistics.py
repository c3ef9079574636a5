"""Summarizes errors of many predictions: geometric mean, mean, maximum, and the share within a band."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

SMALLEST_ERROR = 1e-6
"""Smaller errors count as this in a geometric mean, which a single exact prediction would make zero."""

BAND = 0.3
"""A prediction that is off by no more than this is one to rely on."""


def of_errors(every: Sequence[float]) -> dict[str, float] | None:
    """Returns several figures of all errors, as a geometric mean alone flatters; None where none is finite."""
    errors = np.array([error for error in every if np.isfinite(error)])
    if not errors.size:
        return None
    return {
        "geometric_mean": geometric_mean(errors.tolist()),
        "mean": float(errors.mean()),
        "maximum": float(errors.max()),
        "count": int(errors.size),
        "within_30_percent": float(np.mean(errors <= BAND)),
    }


def geometric_mean(errors: Sequence[float]) -> float:
    """Returns the geometric mean of at least one error; see `SMALLEST_ERROR`."""
    return float(np.exp(np.mean(np.log(np.maximum(errors, SMALLEST_ERROR)))))
