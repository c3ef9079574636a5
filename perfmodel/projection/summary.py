"""Summarizes what choosing devices by projection is worth: beside choices that look at no kernel, and in times
themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perfmodel.basics.statistics import Errors
from perfmodel.projection.case import ProjectionCase


def always(cases: Sequence[ProjectionCase]) -> dict[str, dict[str, Any]]:
    """Returns, by device, what always taking it comes to, over the cases that it has a time of; a choice has to be
    better.

    Returns:
        ``cases``, ``fastest_chosen``, ``largest_penalty`` and ``mean_penalty``, as for the choices by projection.
    """
    found = {}
    for device in dict.fromkeys(name for case in cases for name in case.measured):
        own = [case for case in cases if device in case.measured]
        penalties = [case.measured[device] / case.measured[case.fastest] - 1 for case in own]
        found[device] = {
            "cases": len(own),
            "fastest_chosen": sum(case.fastest == device for case in own),
            "largest_penalty": max(penalties),
            "mean_penalty": float(np.mean(penalties)),
        }
    return found


def time_errors(cases: Sequence[ProjectionCase]) -> dict[str, dict[str, float] | None]:
    """Returns, by device, |projected - measured| / measured, which the paper's relative error, of ratios, does not
    show."""
    return {
        device: Errors.figures(abs(c.predicted[device] / c.measured[device] - 1) for c in cases if device in c.measured)
        for device in dict.fromkeys(name for case in cases for name in case.measured)
    }
