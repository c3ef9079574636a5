"""Measures how far numbers lie apart, without regard for the few that lie far out."""

from __future__ import annotations

import statistics
from collections.abc import Sequence


def deviation(values: Sequence[float]) -> float:
    """Returns the distance from their median that nine of ten values do not exceed."""
    median = statistics.median(values)
    return quantile([abs(value - median) for value in values], 0.9)


def quantile(values: Sequence[float], part: float) -> float:
    """Returns the value that a part of the values do not exceed, between two of them if need be."""
    ordered = sorted(values)
    place = part * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])
