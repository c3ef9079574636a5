"""Says of a model in a few sentences what its report shows: how good it is, whether it chooses well, what limits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from perfmodel.basics.statistics import Errors
from perfmodel.basics.tables import kernel_text, percent
from perfmodel.modelling.ranking import over_all
from perfmodel.modelling.rows import CALIBRATION, Row
from perfmodel.report import chart_data
from perfmodel.report.chart_data import Charts

MOST_OUTLIERS = 3
OUTLIER = 0.3
"""A prediction that is further off is named."""


def judged_rows(rows: Sequence[Row]) -> list[Row]:
    """Returns the rows that say how good a model is: those that no fit has seen, if there are any."""
    found = chart_data.complete(rows)
    return [row for row in found if row.role != CALIBRATION] or found


def sentences(charts: Charts) -> list[str]:
    """Returns the verdict on a model, the most important first; nothing where no times are known."""
    rows = judged_rows(charts.model.rows)
    return [*_errors(rows), *_choices(rows), *_limits(charts)]


def _errors(rows: Sequence[Row]) -> list[str]:
    errors = Errors.of(row.error for row in rows)
    if errors is None:
        return []
    of = "times of the fit itself" if rows[0].role == CALIBRATION else "times that no fit has seen"
    said = (
        f"Predictions are off by {percent(errors.geometric_mean)} (geometric mean; mean {percent(errors.mean)}), over "
        f"{errors.count} {of}; {percent(errors.within_30_percent)} of them lie within ±30 %."
    )
    far = sorted((row for row in rows if row.error > OUTLIER), key=lambda row: -row.error)
    if not far:
        return [said]
    labels = [kernel_text(row.kernel, row.variant, row.sizes) for row in far]
    off = [percent((row.predicted_s or 0) / (row.measured_s or 1) - 1) for row in far]
    named = [f"{label} ({error})" for label, error in zip(labels, off, strict=True)]
    others = f" and {len(far) - MOST_OUTLIERS} more" if len(far) > MOST_OUTLIERS else ""
    return [said, f"Furthest off: {', '.join(named[:MOST_OUTLIERS])}{others}."]


def _choices(rows: Sequence[Row]) -> list[str]:
    found = over_all(rows)
    if found is None:
        return []
    right = round(found["right"] * found["contests"])
    cost = found["worst_cost"]
    worst = f"; the worst choice takes {cost:.3g} times as long as the best" if cost > 1 else ""
    return [f"It names the fastest variant in {right} of {found['contests']} comparisons{worst}."]


def _limits(charts: Charts) -> list[str]:
    limits = Counter(each.parts[0][0] for each in charts.breakdowns if each.parts)
    if not limits:
        return []
    (name, count), *others = limits.most_common()
    total = sum(limits.values())
    if total == 1:
        return [f"The kernel that was explained is limited by {name}."]
    also = f"; others by {', '.join(other for other, _ in others[:3])}" if others else ""
    return [f"Of {total} kernels that were explained, {count} {'is' if count == 1 else 'are'} limited by {name}{also}."]
