"""Describes iteration domains on a grid of work-groups, and counts who executes what in them."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from numbers import Real
from typing import Any

import islpy as isl

from perfmodel.basics.errors import CountingError
from perfmodel.counting.boxes import Box
from perfmodel.counting.budget import TooHardError, done_once
from perfmodel.counting.counts import BranchCount, Executions
from perfmodel.counting.frequency import ALWAYS, Frequency
from perfmodel.counting.points import DIVERGENT, EXECUTIONS, Effort, Points, has_barvinok

_KNOWN: dict[str, tuple[Executions, int]] = {}
MOST_FLOORS = 4
"""Quotients in all parts of the set where a branch is met; with more, counting who takes it may take minutes."""


@dataclass(frozen=True)
class Region:
    """A region is the set of points at which an instruction runs.

    Attributes:
        points: isl set of its loop variables, without those whose bounds depend on data.
        inames: names of these loop variables.
        factor: how often it runs at each point on average, where data decide.
        moving: loop variables whose start depends on data, so that nothing is known of where work-items are.
        issued: where vectors of a processor go past it, whose lanes are masked by conditions that they decide
            differently; None where that is where some lane takes part.
    """

    points: Any
    inames: frozenset[str]
    factor: Frequency = ALWAYS
    moving: frozenset[str] = frozenset()
    issued: Region | None = None

    def without(self, names: Collection[str]) -> Region:
        """Returns the region in which all values of some loop variables are one."""
        kept = self.inames - set(names)
        if kept == self.inames:
            return self
        issued = None if self.issued is None else self.issued.without(names)
        return replace(self, points=projected_on(self.points, kept), inames=kept, issued=issued)


class Domains(Points):
    """The domains of one kernel; everything that isl has to do with counting goes through here.

    Args:
        sizes: names of the parameters.
        assumptions: isl set of what is known of them.
        group_counts, local_sizes: of the grid along each axis, as isl functions of the sizes or whole numbers.
        axes: of the loop variables that are coordinates of the grid, ``("group", axis)`` or ``("local", axis)``.
        starts: of local coordinates that don't start at 0, the value for work-item 0.
        subgroup_size: work-items of a sub-group; None counts no sub-groups, which can be costly.
    """

    def __init__(
        self,
        sizes: Iterable[str],
        assumptions: Any,
        group_counts: Sequence[Any],
        local_sizes: Sequence[Any],
        axes: Mapping[str, tuple[str, int]],
        starts: Mapping[str, int],
        subgroup_size: int | None,
    ) -> None:
        super().__init__(sizes, assumptions)
        self.subgroup_size = subgroup_size
        self.group_counts, self.local_sizes = group_counts, local_sizes
        self.axes, self.starts = axes, starts
        self._executions: dict[Any, Executions] = {}
        self._bounds: dict[str, dict[str, tuple[int, int | None]]] = {}

    # --- executions

    def executions(self, region: Region) -> Executions:
        """Returns executions by work-items, sub-groups and work-groups.

        Grid axes that a region does not use multiply: there every work-item, or group, repeats the work.
        """
        key = _key(region)
        if key not in self._executions:
            box, count = self.box(region.points), partial(self._counted, region)
            if box is None and has_barvinok():  # which a kernel's other counts ask for again
                self._executions[key] = done_once(count, _KNOWN, f"{self._grid} {key}")
            else:
                self._executions[key] = count()
        return self._executions[key]

    @cached_property
    def _grid(self) -> str:
        """Everything but a region that executions depend on, as text."""
        extents = [str(extent) for extent in (*self.group_counts, "groups of", *self.local_sizes)]
        axes, starts = sorted(self.axes.items()), sorted(self.starts.items())
        return f"{extents} {axes} {starts} {self.subgroup_size} {self.assumptions} {self.patience}"

    def _counted(self, region: Region) -> Executions:
        box = self.box(region.points)
        by_item, by_group, longest = self._of_points(region) if box is None else self._of_box(region, box)
        by_subgroup, often = self._subgroups(region, by_group), region.factor
        issued, share = None, Fraction(1)
        if region.issued is not None:
            issued, all_items = self.executions(region.issued).subgroup, region.issued.factor.item
            share = often.item / all_items if all_items else share
        return Executions(
            workitem=self.function(_scaled(by_item, often.item)),
            subgroup=None if by_subgroup is None else self.function(_scaled(by_subgroup, often.subgroup)),
            workgroup=self.function(_scaled(by_group, often.group)),
            longest=tuple(self.function(_scaled(count, often.most)) for count in longest),
            spread=often.spread,
            issued=issued,
            share=min(float(share), 1.0),
        )

    def _of_points(self, region: Region) -> tuple[Any, Any, list[Any]]:
        """Returns the executions by work-items and by work-groups, and those `_of_the_longest`."""
        return self._items(region), self._groups(region), self._of_the_longest(region)

    def _of_box(self, region: Region, box: Box) -> tuple[Any, Any, list[Any]]:
        """Returns the same of a region that is a box."""
        of_groups, of_items = self.unused("group", region.inames), self.unused("local", region.inames)
        in_group, on_grid = self.along("local", region.inames), region.inames & self.axes.keys()
        extents = box.extents.items()
        by_item = self.product((*box.extents.values(), *of_groups, *of_items))
        by_group = self.product((*(extent for name, extent in extents if name not in in_group), *of_groups))
        iterations = (extent for name, extent in extents if name not in on_grid)
        longest = self.product((*self.group_counts, *self.local_sizes, *iterations))
        return self.within(by_item, box.sizes), self.within(by_group, box.sizes), [self.within(longest, box.sizes)]

    def _of_the_longest(self, region: Region) -> list[Any]:
        """Returns the executions by the first and by the last work-item in the region, each times all work-items of the
        launch.

        One count, if the region is as long for all of them.
        """
        items = self.product((*self.group_counts, *self.local_sizes))
        axes = region.inames & self.axes.keys()
        places, iterations = projected_on(region.points, axes), projected_on(region.points, region.inames - axes)
        if (_lifted(places, region.points) & _lifted(iterations, region.points)).is_subset(region.points):
            return [self.gist(items * self.cardinality(iterations))]
        ends = [
            self.cardinality(region.points & _lifted(end, region.points)) for end in (places.lexmin(), places.lexmax())
        ]
        return [self.gist(items * end) for end in ends]

    def _items(self, region: Region) -> Any:
        unused = (*self.unused("group", region.inames), *self.unused("local", region.inames))
        return self._times(self.cardinality(region.points), unused)

    def _groups(self, region: Region) -> Any:
        """Returns the number of work-groups with at least one work-item in the region."""
        kept = region.inames - self.along("local", region.inames).keys()
        unused = self.unused("group", region.inames)
        return self._times(self.cardinality(projected_on(region.points, kept)), unused)

    def _times(self, count: Any, extents: Sequence[Any]) -> Any:
        return self.gist(count * self.product(extents)) if extents else count

    def _subgroups(self, region: Region, by_group: Any) -> Any:
        """Returns the number of sub-groups with at least one work-item in the region; None if work-groups have no fixed
        size."""
        total, width = self._group_size(), self.subgroup_size
        if total is None or width is None:
            return None
        if total <= width:
            return by_group
        if self._is_of_whole_groups(region):
            return by_group * math.ceil(total / width)
        return self._times(self._shared([region], width), self.unused("group", region.inames))

    def _is_of_whole_groups(self, region: Region) -> bool:
        """Returns whether all work-items of a work-group take part, or none, where its size is known."""
        axes, sizes = self.along("local", region.inames), self.extents("local")
        box = self.box(region.points)
        if box is not None and all(isinstance(box.extents[name], int) for name in axes):
            return all(
                box.starts[name] == self.starts.get(name, 0) and box.extents[name] == (sizes[axis] or 1)
                for name, axis in axes.items()
            )
        whole = _lifted(projected_on(region.points, region.inames - axes.keys()), region.points)
        for name, axis in axes.items():
            start, size = self.starts.get(name, 0), sizes[axis] or 1
            whole = whole.add_constraint(_inequality(whole, {name: 1, 1: -start}))
            whole = whole.add_constraint(_inequality(whole, {name: -1, 1: start + size - 1}))
        return bool(whole.is_subset(region.points))

    def branch(self, kind: str, text: str, met: Region, taken: Region) -> BranchCount:
        """Returns the count of a branch that is met in one region, and taken in a part of it."""
        if _floors(met.points) > MOST_FLOORS:
            return BranchCount(
                kind=kind, text=text, met=self.executions(met), taken=None, divergence="by work-item", divergent=None
            )
        return self._branch(kind, text, met, taken)

    def branch_of_data(self, kind: str, text: str, met: Region, taken: Frequency | None) -> BranchCount:
        """Returns the count of a branch of which only statistics say how often it is taken."""
        executed = None
        if taken is not None and _floors(met.points) <= MOST_FLOORS:
            executed = self.executions(replace(met, factor=met.factor * taken))
        return BranchCount(
            kind=kind, text=text, met=self.executions(met), taken=executed, divergence="by data", divergent=None
        )

    def _branch(self, kind: str, text: str, met: Region, taken: Region) -> BranchCount:
        otherwise = replace(met, points=(met.points - taken.points).coalesce())
        kept = met.inames - self.along("local", met.inames).keys()
        both = projected_on(taken.points, kept) & projected_on(otherwise.points, kept)
        divergent = None
        if self._group_size() is not None and self.subgroup_size is not None:
            with suppress(TooHardError):
                shared = (
                    self.zero() if both.is_empty() else self._shared([taken, otherwise], self.subgroup_size, DIVERGENT)
                )
                divergent = self._times(shared, self.unused("group", met.inames))
        parts = not (both.is_empty() or (divergent is not None and divergent.is_zero()))
        if met.factor != ALWAYS:  # statistics say how often, and nothing of who
            divergent = None
        return BranchCount(
            kind=kind,
            text=text,
            met=self.executions(met),
            taken=self.executions(taken),
            divergence="by work-item" if parts else "none",
            divergent=None if divergent is None else self.finished(divergent),
        )

    def bounds(self, region: Region) -> dict[str, tuple[int, int | None]]:
        """Returns the smallest and the largest value of loop variables, where they have numbers for them, and of the
        sizes."""
        key = str(region.points)
        if key not in self._bounds:
            self._bounds[key] = self._bounds_of(region)
        return self._bounds[key]

    def _bounds_of(self, region: Region) -> dict[str, tuple[int, int | None]]:
        found: dict[str, tuple[int, int | None]] = dict.fromkeys(self.sizes, (0, None))
        for axis in range(region.points.dim(isl.dim_type.set)):
            low, high = region.points.dim_min_val(axis), region.points.dim_max_val(axis)
            if low.is_int():
                found[region.points.get_dim_name(isl.dim_type.set, axis)] = (
                    int(str(low)),
                    int(str(high)) if high.is_int() else None,
                )
        return found

    def _shared(self, regions: Sequence[Region], width: int, effort: Effort = EXECUTIONS) -> Any:
        """Returns the number of points of loops and sub-groups at which each of these regions has an active
        work-item."""
        chunk = _chunk([extent or 1 for extent in self.extents("local")], width)
        if chunk is not None:
            return self.cardinality(_common([self._numbered_subgroups(region, *chunk) for region in regions]), effort)
        count = self.zero()
        for active in zip(*(self._active_subgroups(region, width) for region in regions), strict=True):
            count = count + self.cardinality(_common(active), effort)
        return count

    def _numbered_subgroups(self, region: Region, axis: int, length: int) -> Any:
        """Returns the points of a region's loops, groups and sub-groups, which are its chunks along an axis.

        It can be counted at once, while sums of many sub-groups cost isl minutes.
        """
        points, names, _ = self._with_all_lanes(region)
        points = _with_dimension(points, "_subgroup")
        start = self.starts.get(names[axis], 0)
        points = points.add_constraint(_inequality(points, {names[axis]: 1, "_subgroup": -length, 1: -start}))
        points = points.add_constraint(
            _inequality(points, {names[axis]: -1, "_subgroup": length, 1: length - 1 + start})
        )
        inner = names[: axis + 1]
        dimensions = [points.get_dim_name(isl.dim_type.set, place) for place in range(points.dim(isl.dim_type.set))]
        return projected_on(points, [dimension for dimension in dimensions if dimension not in inner])

    def extents(self, kind: str) -> list[int | None]:
        """Returns the extents of the ``group`` or ``local`` grid by axis; None along an axis that the launch decides
        on."""
        return [_constant(extent) for extent in (self.group_counts if kind == "group" else self.local_sizes)]

    def _group_size(self) -> int | None:
        """Returns the work-items of a work-group, if that number is known before the launch."""
        sizes = self.extents("local")
        known = [size for size in sizes if size is not None]
        return math.prod(known) if len(known) == len(sizes) else None

    def _active_subgroups(self, region: Region, width: int) -> Iterator[Any]:
        """Yields, for each sub-group of a work-group, the points of loops and groups at which it has an active
        work-item.

        The work-items of one sub-group lie in a few rows of the group, each of them a box; to let isl find them from a
        linear index costs it minutes for some shapes of groups.
        """
        kept = region.inames - self.along("local", region.inames).keys()
        points, names, sizes = self._with_all_lanes(region)
        starts = [self.starts.get(name, 0) for name in names]
        for first in range(0, math.prod(sizes), width):
            lanes = isl.Set.empty(points.space)
            for row, begin, end in _rows(first, min(first + width, math.prod(sizes)), sizes):
                box = isl.Set.universe(points.space)
                places = [(begin, end - 1), *((place, place) for place in row)]
                for name, start, (low, high) in zip(names, starts, places, strict=True):
                    box = box.add_constraint(_inequality(box, {name: 1, 1: -low - start}))
                    box = box.add_constraint(_inequality(box, {name: -1, 1: high + start}))
                lanes = lanes | box
            yield projected_on(points & lanes.coalesce(), kept)

    def _with_all_lanes(self, region: Region) -> tuple[Any, list[str], list[int]]:
        """Returns a region's points with a dimension for every local axis; the names of these, and the extents."""
        points, names, sizes = region.points, list[str](), [extent or 1 for extent in self.extents("local")]
        for axis, size in enumerate(sizes):
            name = next((i for i, at in self.along("local", region.inames).items() if at == axis), None)
            if name is None:
                name = f"_lane{axis}"
                points = _with_dimension(points, name)
                points = points.add_constraint(_inequality(points, {name: 1}))
                points = points.add_constraint(_inequality(points, {name: -1, 1: size - 1}))
            names.append(name)
        return points, names, sizes

    def met(self, region: Region) -> tuple[Any, Any, Any]:
        """Returns how often work-items, sub-groups and work-groups meet a barrier at a region's points, as isl
        polynomials.

        The region is of loops and groups: all work-items of a group meet the barrier, or none.
        """
        by_group = _scaled(
            self.cardinality(region.points) * self.product(self.unused("group", region.inames)), region.factor.group
        )
        total, width = self._group_size(), self.subgroup_size
        subgroups = None if total is None or width is None else by_group * math.ceil(total / width)
        return by_group * self.product(self.local_sizes), subgroups, by_group

    def along(self, kind: str, inames: Iterable[str]) -> dict[str, int]:
        """Returns those of the loop variables that are coordinates of the ``group`` or ``local`` grid, with their
        axes."""
        return {i: self.axes[i][1] for i in sorted(inames) if self.axes.get(i, ("",))[0] == kind}

    def unused(self, kind: str, inames: Iterable[str]) -> list[Any]:
        """Returns the extents of the grid along the axes that these loop variables leave out."""
        used = set(self.along(kind, inames).values())
        extents = self.group_counts if kind == "group" else self.local_sizes
        return [extent for axis, extent in enumerate(extents) if axis not in used]


def _key(region: Region) -> tuple[Any, ...]:
    issued = None if region.issued is None else _key(region.issued)
    return str(region.points), region.factor, region.factor.replicas, region.inames, issued


def _chunk(sizes: Sequence[int], width: int) -> tuple[int, int] | None:
    """Returns the axis along which sub-groups are chunks of whole rows, and their length; None where rows are torn."""
    for axis, size in enumerate(sizes):
        inner = math.prod(sizes[:axis])
        if inner * size >= width or axis == len(sizes) - 1:
            length, rest = divmod(width, inner)
            is_last = math.prod(sizes[axis + 1 :]) == 1
            return None if rest or (size % length and not is_last) else (axis, length)
    return None


def _rows(first: int, end: int, sizes: list[int]) -> Iterator[tuple[tuple[int, ...], int, int]]:
    """Yields the parts of rows along axis 0 that hold work-items `first` to `end` - 1: the row, and its range."""
    length = sizes[0]
    for row in range(first // length, -(-end // length)):
        place, rest = [], row
        for size in sizes[1:]:
            place.append(rest % size)
            rest //= size
        yield tuple(place), max(first - row * length, 0), min(end - row * length, length)


def _common(sets: Iterable[Any]) -> Any:
    first, *others = sets
    for other in others:
        first = first & other
    return first.coalesce()


def _floors(points: Any) -> int:
    """Returns how many quotients of coordinates the parts of a set need, in all."""
    return sum(int(part.dim(isl.dim_type.div)) for part in points.get_basic_sets())


def projected_on(points: Any, names: Iterable[str]) -> Any:
    return points.project_out_except(names, [isl.dim_type.set])


def _lifted(points: Any, to: Any) -> Any:
    """Returns a set over some of the loop variables as one over all those of another set, in their order."""
    names = [to.get_dim_name(isl.dim_type.set, axis) for axis in range(to.dim(isl.dim_type.set))]
    own = {points.get_dim_name(isl.dim_type.set, axis) for axis in range(points.dim(isl.dim_type.set))}
    for axis, name in enumerate(names):
        if name not in own:
            points = points.insert_dims(isl.dim_type.set, axis, 1)
            points = points.set_dim_name(isl.dim_type.set, axis, name)
    return points


def _with_dimension(points: Any, name: str) -> Any:
    points = points.add_dims(isl.dim_type.set, 1)
    return points.set_dim_name(isl.dim_type.set, points.dim(isl.dim_type.set) - 1, name)


def _inequality(points: Any, coefficients: Mapping[Any, int]) -> Any:
    return isl.Constraint.ineq_from_names(points.space, dict(coefficients))


def _constant(extent: Any) -> int | None:
    """Returns a work-group's extent as a number; None if it is not one."""
    if isinstance(extent, int):
        return extent
    pieces = extent.get_pieces()
    if len(pieces) != 1 or not pieces[0][1].is_cst():
        return None
    return int(str(pieces[0][1].get_constant_val()))


def _scaled(count: Any, factor: Fraction) -> Any:
    return count if factor == 1 else count.scale_val(isl.Val(f"{factor.numerator}/{factor.denominator}"))


def statistic(value: float, name: str) -> Fraction:
    """Returns what the user says of data as a number that counts can be multiplied by.

    Raises:
        CountingError: if it is no number, or negative.
    """
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value) or value < 0:
        raise CountingError(f"the statistic of {name!r} is {value!r}; give a number that is not negative")
    return Fraction(float(value)).limit_denominator(10**6)
