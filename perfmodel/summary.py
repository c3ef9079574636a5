"""Computes the figures of a recipe's tables from the rows alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perfmodel import ranking
from perfmodel.outcome import EVALUATION, Interval, Row

SMALLEST_ERROR = 1e-6
"""Smaller errors count as this in a geometric mean, which a single exact prediction would make zero."""

BAND = 0.3
"""A prediction that is off by no more than this is one to rely on."""


def summarize(rows: Sequence[Row], models: Sequence[str], *, ranked: bool = True) -> dict[str, Any]:
    """Summarizes the errors of each model on its evaluation rows, and its choices among variants.

    Args:
        ranked: whether the variants of a kernel compete.
    """
    return {
        model: _of_model([r for r in rows if r.model == model and r.role == EVALUATION], ranked) for model in models
    }


def _of_model(rows: Sequence[Row], ranked: bool) -> dict[str, Any]:
    by_label: dict[str, list[Row]] = {}
    for row in rows:
        by_label.setdefault(row.label, []).append(row)
    errors = {label: found for label, group in by_label.items() if (found := of_errors([r.error for r in group]))}
    return {
        "errors": errors,
        "over_all": of_errors([row.error for row in rows]),
        "covered": covered(rows),
        "fastest": ranking.fastest(rows) if ranked else [],
        "ranking": ranking.over_all(rows) if ranked else None,
    }


def covered(rows: Sequence[Row]) -> dict[str, float] | None:
    """Returns the parts of all measured times that lie in the 68 and 90 % intervals; None where there are none."""
    judged = [row for row in rows if row.measured_s and row.interval_68_s and row.interval_90_s]
    if not judged:
        return None
    return {
        "count": len(judged),
        "68": sum(_within(row.measured_s, row.interval_68_s) for row in judged) / len(judged),
        "90": sum(_within(row.measured_s, row.interval_90_s) for row in judged) / len(judged),
    }


def _within(measured: float | None, interval: Interval | None) -> bool:
    assert measured is not None
    assert interval is not None
    low, high = interval
    return (low is None or low <= measured) and (high is None or measured <= high)


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
