"""Says how many work-groups show what data decide in all of a launch.

Where groups differ much, as those of a fractal's inside and outside do, few of them say little of their mean; more are
emulated then, as far as that is done in a moment. Where loops go on as long as data say, so that none of their
iterations can stand for others, few groups may take long already; these have to do then.
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
IN_DOUBT = 0.15
MOST_IN_DOUBT = 0.8
"""The same of a sample whose relative standard error is larger than `IN_DOUBT`."""
FEW = 4
"""So many parts are looked at first where not all loops can be cut short."""

Made = TypeVar("Made")


def large_enough(
    groups: Any,
    emulated: Callable[[int], Made],
    work_of: Callable[[Made], Any],
    nominal_s: Callable[[Made], float],
    budget: float,
    can_be_cut: bool,
) -> Made:
    """Returns an emulation of as many groups as it takes; of those that are asked for, where these are no sample.

    Args:
        groups: as for `perfmodel.emulate`.
        emulated: emulates them, a sample with one group of each of so many parts of the grid.
        work_of: the work of each emulated group.
        nominal_s: the seconds that an emulation takes at a nominal speed.
        budget: how many times the usual work counting may take.
        can_be_cut: whether iterations of all loops may stand for others, where all of them take too long.
    """
    is_sample = isinstance(groups, str) and groups == "sample"
    parts = FEW if is_sample and not can_be_cut else SAMPLES
    found = emulated(parts)
    while is_sample and ((error := relative_error(work_of(found))) > ENOUGH or parts < SAMPLES):
        if nominal_s(found) >= budget * (MOST_IN_DOUBT if error > IN_DOUBT else MOST_SECONDS):
            break
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
