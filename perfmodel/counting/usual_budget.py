"""A budget of counting says how many times the usual work a kernel may take, see `perfmodel.counting.budget`."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

from perfmodel.basics.errors import KernelError

USUAL = 1.0
"""The budget of kernels of which nothing else is said."""

MOST_BUDGETS = 15
"""So many times the work of a budget loops go on for that data, or a kernel's own state, end."""

GIVEN_MORE = "(kernel.with_budget(10), --effort 10)"
"""Messages say so how to give a larger budget."""


def checked(budget: Any) -> float:
    """Returns a budget as a number.

    Raises:
        KernelError: for what is no number, or leaves nothing.
    """
    if isinstance(budget, bool) or not isinstance(budget, Real) or not 0 < float(budget) < math.inf:
        raise KernelError(
            f"budget={budget!r} leaves nothing for counting; give a number above 0: 10 for ten times the usual work"
        )
    return float(budget)
