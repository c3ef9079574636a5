"""Computes the figures of a recipe's tables from the rows alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perfmodel.basics.statistics import Errors
from perfmodel.modelling import ranking
from perfmodel.modelling.rows import EVALUATION, Interval, Row


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
    by_line = {label: Errors.figures(row.error for row in group) for label, group in by_label.items()}
    return {
        "errors": {label: errors for label, errors in by_line.items() if errors},
        "over_all": Errors.figures(row.error for row in rows),
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
        "68": sum(is_within(row.measured_s, row.interval_68_s) for row in judged) / len(judged),
        "90": sum(is_within(row.measured_s, row.interval_90_s) for row in judged) / len(judged),
    }


def is_within(measured: float | None, interval: Interval | None) -> bool:
    """Returns whether a measured time lies in an interval, one of whose ends may be open; both have to be there."""
    assert measured is not None
    assert interval is not None
    low, high = interval
    return (low is None or low <= measured) and (high is None or measured <= high)
