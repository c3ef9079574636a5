"""Extents of Loopy's grids and arrays, at arrays of sizes."""

from __future__ import annotations

from collections.abc import Mapping, Set
from contextlib import suppress
from functools import reduce
from typing import Any

import numpy as np
from loopy.symbolic import get_dependencies
from numpy.typing import NDArray
from pymbolic.mapper.evaluator import EvaluationMapper

_SAFE = 2**31
"""Below this, a product of two sizes fits into 64 bits."""


def evaluated(extent: Any, sizes: Mapping[str, NDArray[Any]]) -> Any:
    """Returns an extent at some sizes: a whole number, or an array of them, exact beyond 64 bits too."""
    if isinstance(extent, int):
        return extent
    if all(isinstance(size, int) for size in sizes.values()):
        with suppress(ZeroDivisionError):  # numpy says 0
            return _Evaluator(sizes)(extent)
    if any(np.any(np.abs(size) >= _SAFE) for size in sizes.values()):
        sizes = {name: np.asarray(size, dtype=object) for name, size in sizes.items()}
    return _Evaluator(sizes)(extent)


def depends_on(extent: Any) -> Set[str]:
    """Returns the names in an extent."""
    return frozenset(get_dependencies(extent))


class _Evaluator(EvaluationMapper[Any]):  # type: ignore[misc]
    """Evaluates as pymbolic does, also for arrays where that takes numbers only."""

    def map_min(self, expr: Any) -> Any:
        return reduce(np.minimum, map(self.rec, expr.children))

    def map_max(self, expr: Any) -> Any:
        return reduce(np.maximum, map(self.rec, expr.children))

    def map_if(self, expr: Any) -> Any:
        return np.where(self.rec(expr.condition), self.rec(expr.then), self.rec(expr.else_))
