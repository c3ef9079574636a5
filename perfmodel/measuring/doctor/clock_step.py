"""Finds the step of a clock from times that it gave."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

_NANOSECOND = 1e-9
# Counters run at frequencies such as 19.2 MHz, with steps of 52.083 ns, and drivers round to nanoseconds. Steps that
# are hardly longer than the rounding don't show, and matter to nobody.
_FINEST_BROKEN = 8
_FEWEST_COUNTS = 16
_MOST_PARTS = 32


def clock_step(times: Iterable[float]) -> float:
    """Returns the clock's step in seconds, of which all of these event times are multiples; events count in
    nanoseconds.

    A step that is no whole number of nanoseconds shows in times that are a nanosecond off at most.
    """
    counts = sorted({round(seconds / _NANOSECOND) for seconds in times})
    common = math.gcd(*counts)
    return (common if common > 1 else _broken_step(counts)) * _NANOSECOND


def _broken_step(counts: Sequence[int]) -> float:
    """Returns the step of sorted counts without a common divisor: 1 unless all lie near multiples of something
    longer."""
    gaps = [right - left for left, right in pairwise(counts)]
    wide = [gap for gap in gaps if gap > 2]  # others are one multiple, whose ends are rounded up and down
    if len(counts) < _FEWEST_COUNTS or not wide or min(wide) < _FINEST_BROKEN - 2:
        return 1.0
    nearest = min(wide)
    distances = sorted({*gaps, *(count - counts[0] for count in counts)})
    # Neighbouring multiples need not have been met: the narrowest gap may be of several steps.
    for parts in range(1, min(_MOST_PARTS, nearest // _FINEST_BROKEN) + 1):
        if step := _fitting(distances, (nearest - 2) / parts, (nearest + 2) / parts):
            return step
    return 1.0


def _fitting(distances: Sequence[int], low: float, high: float) -> float | None:
    """Returns the step between two limits of which all distances of counts are multiples but for the rounding of both.

    Sorted, so that each narrows the limits down for those of more steps.

    Returns:
        None if there is no such step.
    """
    for distance in distances:
        steps = round(distance / ((low + high) / 2))
        if steps == 0:
            if distance > 2:
                return None
            continue
        low, high = max(low, (distance - 2) / steps), min(high, (distance + 2) / steps)
        if low > high:
            return None
    return (low + high) / 2
