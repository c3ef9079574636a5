"""A granularity says by whom executions are counted: work-items, sub-groups or work-groups that take part, the longest
work-item, or vectors that come by."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.errors import FeatureError
from perfmodel.counting.counts import SUBGROUP_SIZE, Executions
from perfmodel.counting.quasipolynomial import QuasiPolynomial
from perfmodel.vocabulary.feature_name import Word

_CONDITION = re.compile(r"(workitem|workgroup|longest|(subgroup|vector)([1-9][0-9]{0,3})?)$")

Count = Callable[[Mapping[str, NDArray[Any]]], NDArray[np.float64]]


@dataclass(frozen=True)
class Granularity:
    """One of ``workitem``, ``subgroup`` and ``vector`` (of `subgroup_size` work-items), ``workgroup`` and ``longest``:
    see `Executions`, whose ``issued`` are those of vectors.

    Attributes:
        end: for ``longest``, which of the work-items that take part is looked at, the first (0) or the last (-1).
    """

    name: str
    subgroup_size: int | None = None
    end: int = 0

    def largest(self, values: Callable[[Granularity], NDArray[np.float64]]) -> NDArray[np.float64]:
        """Returns what a function gives for this granularity: for ``longest``, the larger of what it gives for the
        first and for the last work-item, as the one that does most of one loop may do least of the next."""
        if self.name != "longest":
            return values(self)
        return np.maximum(values(self), values(replace(self, end=-1)))

    def executions(self, executions: Executions, feature: str) -> Count:
        """Returns the count of this granularity, as a function of arrays of sizes.

        Raises:
            FeatureError: for sub-groups, where the size of a work-group is not known before the launch.
        """
        if self.name == "longest":
            return executions.longest[self.end]
        found: QuasiPolynomial | None
        if self.name == "vector":
            found = executions.subgroup if executions.issued is None else executions.issued
        else:
            found = getattr(executions, self.name)
        if found is None:
            raise FeatureError(
                f"feature {feature!r} is not defined for a kernel whose work-groups have no fixed size; "
                "fix it in the kernel, or use granularity:workgroup"
            )
        return found


WORKITEM = Granularity("workitem")


def once_a_body(executed: Iterable[tuple[tuple[str, ...], NDArray[np.float64]]]) -> NDArray[np.float64]:
    """Sums, over loop bodies, each known by the loops around it, the largest count in it: what stands in one body does
    not wait for each other."""
    bodies: dict[tuple[str, ...], dict[int, NDArray[np.float64]]] = {}
    for loops, count in executed:
        bodies.setdefault(loops, {})[id(count)] = count  # many share one
    return sum((reduce(np.maximum, counts.values(), np.asarray(0.0)) for counts in bodies.values()), np.asarray(0.0))


def parse_granularity(word: Word) -> Granularity:
    """Reads ``granularity:workitem``, ``:workgroup``, ``:longest``, ``:subgroup``, ``:subgroup64`` (of 64 work-items),
    or ``:vector16``.

    Raises:
        FeatureError: for anything else.
    """
    match = _CONDITION.match(word.condition or "")
    if match is None:
        raise FeatureError(
            f"granularity:{word.condition} is not understood; write granularity:workitem, granularity:subgroup, "
            "granularity:subgroup64, granularity:vector16, granularity:workgroup or granularity:longest",
            word.offset,
        )
    if match[2]:
        return Granularity(match[2], int(match[3] or SUBGROUP_SIZE))
    return Granularity(match[1])
