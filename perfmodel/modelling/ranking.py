"""Tells whether a model names the fastest of several variants, and what its choice costs."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from perfmodel.modelling.rows import Row

Competitors = list[Row]


def contests(rows: Sequence[Row]) -> list[Competitors]:
    """Returns the variants of one kernel at the same sizes, measured and predicted, where there are at least two."""
    found: dict[tuple[str, tuple[tuple[str, int], ...]], Competitors] = {}
    for row in rows:
        if row.measured_s is not None and row.predicted_s is not None:
            found.setdefault((row.kernel, tuple(row.sizes.items())), []).append(row)
    return [competitors for competitors in found.values() if len(competitors) > 1]


def fastest(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Returns, for each contest, which variant is the fastest, predicted and measured.

    A model that predicts the shortest time for several variants names none of them; what its choice costs is then the
    slowest of these over the best. It is right where whatever it may choose is the best.
    """
    return [_decided(competitors) for competitors in contests(rows)]


def _decided(competitors: Competitors) -> dict[str, Any]:
    shortest = min(_predicted(row) for row in competitors)
    chosen = [row for row in competitors if _predicted(row) == shortest]
    best = min(competitors, key=_measured)
    cost = max(map(_measured, chosen)) / _measured(best)
    return {
        "kernel": best.kernel,
        "sizes": dict(best.sizes),
        "variants": len(competitors),
        "tied": len(chosen),
        "predicted": chosen[0].variant if len(chosen) == 1 else None,
        "measured": best.variant,
        "right": cost == 1,
        "cost_of_choice": cost,
    }


def over_all(rows: Sequence[Row]) -> dict[str, Any] | None:
    """Summarizes all contests together; None if there is none.

    Returns:
        ``contests``, ``right`` (the fraction of them in which the fastest variant is named), ``worst_cost`` (chosen
        over best) and ``rank_correlation``: Spearman's, of the variants at each size by itself, its ``median`` and
        ``mean`` over ``sizes`` such contests. Over all sizes together it would only say that larger ones take longer.
        Contests of two variants, and those in which all predicted or all measured times are equal, have none; None
        where no contest has one.
    """
    choices = fastest(rows)
    if not choices:
        return None
    correlations = [found for competitors in contests(rows) if (found := _spearman(competitors)) is not None]
    return {
        "contests": len(choices),
        "right": sum(choice["right"] for choice in choices) / len(choices),
        "worst_cost": max(choice["cost_of_choice"] for choice in choices),
        "rank_correlation": {
            "median": statistics.median(correlations),
            "mean": statistics.fmean(correlations),
            "sizes": len(correlations),
        }
        if correlations
        else None,
    }


def _spearman(competitors: Competitors) -> float | None:
    from scipy.stats import spearmanr  # slow to import

    predicted, measured = list(map(_predicted, competitors)), list(map(_measured, competitors))
    if len(competitors) < 3 or len(set(predicted)) == 1 or len(set(measured)) == 1:
        return None
    return float(spearmanr(predicted, measured).statistic)


def _predicted(row: Row) -> float:
    assert row.predicted_s is not None
    return row.predicted_s


def _measured(row: Row) -> float:
    assert row.measured_s is not None
    return row.measured_s
