"""How far numbers lie apart, without regard for the few that lie far out."""

from __future__ import annotations

import statistics
from collections.abc import Sequence


def deviation(values: Sequence[float]) -> float:
    """Nine of ten values differ from their median by no more than this."""
    median = statistics.median(values)
    return quantile([abs(value - median) for value in values], 0.9)


def quantile(values: Sequence[float], part: float) -> float:
    """The value that a part of the values do not exceed, between two of them where it falls there."""
    ordered = sorted(values)
    place = part * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])
