"""Says whether a sample of work-groups is too small to tell what data decide in all of a launch.

Where groups differ much, as those of a fractal's inside and outside do, few of them say little of their mean; more are
emulated then, as far as that is done in a moment.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from perfmodel.counting.resampling import SAMPLES

MORE = 4
"""A sample that is too small is followed by one of so many times the parts."""
ENOUGH = 0.05
"""A relative standard error of the mean work of a group that is small enough."""
MOST_SECONDS = 0.3
"""A sample that takes longer is not followed by a larger one, with the usual budget; at the nominal speed of emulation,
so that a kernel has the same counts however busy the machine is."""

Made = TypeVar("Made")


def large_enough(
    groups: Any,
    emulated: Callable[[int], Made],
    work_of: Callable[[Made], Any],
    nominal_s: Callable[[Made], float],
    budget: float,
) -> Made:
    """Returns an emulation of as many groups as it takes; of those that are asked for, where these are no sample.

    Args:
        groups: as for `perfmodel.emulate`.
        emulated: emulates them, a sample with one group of each of so many parts of the grid.
        work_of: the work of each emulated group.
        nominal_s: the seconds that an emulation takes at a nominal speed.
    """
    parts, found, is_sample = SAMPLES, emulated(SAMPLES), isinstance(groups, str) and groups == "sample"
    while is_sample and nominal_s(found) < budget * MOST_SECONDS and relative_error(work_of(found)) > ENOUGH:
        parts, before = MORE * parts, len(work_of(found))
        found = emulated(parts)
        if len(work_of(found)) <= before:  # these are all groups
            break
    return found


def relative_error(work: ArrayLike | Sequence[float]) -> float:
    """Returns the relative standard error of the mean of a sample."""
    each = np.asarray(work, np.float64)
    mean = float(each.mean()) if each.size else 0.0
    return float(each.std(ddof=1)) / mean / float(np.sqrt(each.size)) if each.size > 1 and mean > 0 else 0.0
