"""Classes of memory accesses by what neighbouring work-items touch at one time (Pöppl & Herz, "memory accesses").

Compared are the work-items of one row: those that differ only in their id along the first axis of the work-group
that has more than one, the axis that sub-groups are filled along. All loop counters and coordinates along other axes
stand still, so that the class says nothing of how an access moves on from iteration to iteration. Distances are in what
is accessed at once: a vector is one element. Work-items between two that take part are taken to take part too.

- ``constant``: all of a row have one address, or only one of it takes part. Rows, groups and iterations may differ.
- ``interval``: a window that is re-read. In global memory, a row's addresses move, but are the same in every
  work-group; or they are a remainder (``x & 127``, ``x % n``) of something that moves, in a window whose start does not
  depend on the work-group. A remainder counts unless it is seen to leave its value as it is. Without one, the row has
  to be continuous too, and the launch to have several work-groups. In local memory, only a remainder counts, in a
  window whose start does not depend on the work-item.
- ``continuous``: neighbours are one element apart, in either direction.
- ``identical``: two neighbours share an element, and the next two the one beside it (``a[i / 2]``), either way.
- ``complex``: all else, and what is not known, as it depends on data.

An index by cases (``min``, ``max``, ``?:``) is what all its cases are, each between neighbours for which it holds, and
complex if they differ.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import islpy as isl

from perfmodel.counting.domains import Domains, Region
from perfmodel.counting.isl_names import isl_list
from perfmodel.counting.points import made_once
from perfmodel.counting.symbolic import Floor, Monomial, Pieces, Polynomial, name, number, quotient_of


def access_class(index: Pieces | None, unit: int, space: str, domains: Domains, region: Region) -> str:
    """Returns the class of an access.

    Args:
        index: its index into the array by coordinates, counters and sizes; None where that is not known.
        unit: by how much the index grows from one element to the next.
        space: ``global`` or ``local``; private memory has no classes, and gets an empty one.
        region: where it is made.
    """
    if space in ("private", "scratch"):
        return ""
    if index is None:
        return "complex"
    try:
        return _Row(unit, space, domains, region).kind(index)
    except isl.Error:  # a loop whose iterations are a statistic has no coordinate
        return "complex"


class _Row:
    """Compares the neighbours among a region's work-items."""

    def __init__(self, unit: int, space: str, domains: Domains, region: Region) -> None:
        self.unit, self.is_global, self.domains, self.points = unit, space == "global", domains, region.points
        local, group = (domains.along(kind, region.inames) for kind in ("local", "group"))
        first = next((axis for axis, extent in enumerate(domains.extents("local")) if extent != 1), None)
        self.coordinate = next((name for name, axis in local.items() if axis == first), None)
        self.has_groups = any(extent != 1 for extent in domains.extents("group"))
        self.items = local.keys() | group.keys()
        self.held = group.keys() if self.is_global and self.has_groups else local.keys()
        """Names of variables that the start of a window may not depend on."""

    def kind(self, index: Pieces) -> str:
        if self.coordinate is None:
            return "constant"
        between = self.domains.neighbours(self.points, self.coordinate, self.between)
        if between.is_empty():
            return "constant"
        cases = {self.of_case(between, condition, value, self.coordinate) for condition, value in index.pieces}
        cases.discard(None)
        return cases.pop() or "complex" if len(cases) == 1 else "complex"

    def of_case(self, between: Any, condition: str, index: Polynomial, row: str) -> str | None:
        """Returns the class of one case; None where it holds for no neighbours."""
        holds = self.where(condition)
        neighbours = between & holds & self.moved(holds, row, "__0to + 1 = __0from")
        if neighbours.is_empty():
            return None
        step, by_two = (index.replaced({row: name(row) + number(n)}) - index for n in (1, 2))
        if self.are(neighbours, step, 0):
            return "constant"
        is_continuous = any(self.are(neighbours, step, way) for way in (self.unit, -self.unit))
        start = without_remainders(index, self.items)
        if not start.names() & self.held and (start != index or (self.is_global and self.has_groups and is_continuous)):
            return "interval"
        if is_continuous:
            return "continuous"
        way = by_two.constant
        if way in (self.unit, -self.unit) and self.are(neighbours, step, 0, way):
            return "identical"
        return "complex"

    def between(self, row: str) -> Any:
        """Returns the points that have an active work-item at or before them, and one behind them, in their row."""
        return self.moved(self.points, row, "__0to >= __0from") & self.moved(self.points, row, "__0to < __0from")

    def moved(self, points: Any, row: str, relation: str) -> Any:
        """Returns the points that stand in a relation to these, at other positions of their rows."""
        names = [points.get_dim_name(isl.dim_type.set, axis) for axis in range(points.dim(isl.dim_type.set))]
        before, behind = (", ".join(new if n == row else n for n in names) for new in ("__0from", "__0to"))
        sizes = isl_list(sorted(self.domains.sizes))
        text = f"[{sizes}] -> {{ [{before}] -> [{behind}] : {relation} }}"
        found = points.apply(made_once(text, lambda: isl.Map(text)))
        for axis, dimension in enumerate(names):
            found = found.set_dim_name(isl.dim_type.set, axis, dimension)
        return found

    def are(self, points: Any, step: Polynomial, *values: int | None) -> bool:
        """Returns True if a step is one of these numbers at all of the points."""
        if step.constant is not None:
            return step.constant in values
        text = step.isl()
        others = " and ".join(f"{text} != {value}" for value in values)
        return text is not None and bool((points & self.where(others)).is_empty())

    def where(self, condition: str) -> Any:
        """Returns the points at which a condition holds."""
        space = self.points.space
        names = [space.get_dim_name(isl.dim_type.set, axis) for axis in range(space.dim(isl.dim_type.set))]
        sizes = isl_list(sorted(self.domains.sizes))
        text = f"[{sizes}] -> {{ [{', '.join(names)}] : {condition} }}"
        return made_once(text, lambda: isl.Set(text)).align_params(space)


def without_remainders(index: Polynomial, names: Collection[str]) -> Polynomial:
    """Returns an index without its remainders modulo windows: the address at which the window starts.

    A multiple of x % n is there as that of x, less n times that of floor(x / n).
    """
    floors = {atom for monomial in index.terms for atom, power in monomial if isinstance(atom, Floor) and power == 1}
    for floor in sorted(floors, key=lambda floor: floor.key):
        if floor.numerator.names().isdisjoint(names):
            continue
        quotients = {m: c for m, c in index.terms.items() if (floor, 1) in m}
        times = _times({quotient_of(m, ((floor, 1),)) or (): -c for m, c in quotients.items()}, floor.denominator)
        if times is not None:
            whole = Polynomial({m: c for m, c in index.terms.items() if m not in quotients})
            rest = whole - times * floor.numerator
            if len(rest.terms) < len(index.terms):
                index = rest
    return index


def _times(terms: Mapping[Monomial, int], divisor: Polynomial) -> Polynomial | None:
    """Returns the factor by which a polynomial is a multiple of another one; None if it is none."""
    by, c = max(divisor.terms.items(), key=lambda term: (sum(power for _, power in term[0]), str(term[0])))
    found = Polynomial({q: n // c for m, n in terms.items() if (q := quotient_of(m, by)) is not None})
    return found if found * divisor == Polynomial(terms) else None
