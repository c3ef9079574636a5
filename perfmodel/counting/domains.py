"""Iteration domains, and how many points they have."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Real
from typing import Any

import islpy as isl

from perfmodel.counting.counts import Executions
from perfmodel.counting.quasipolynomial import QuasiPolynomial, from_isl
from perfmodel.errors import CountingError

# Of isl, for what work-groups touch: about a tenth of a second.
MOST_OPERATIONS = 30_000


@dataclass(frozen=True)
class Region:
    """Where an instruction runs.

    Attributes:
        points: isl set of its loop variables, without those whose bounds depend on data.
        inames: names of these loop variables.
        factor: how often it runs at each point on average, from the user's statistics.
        moving: loop variables whose start depends on data, so that nothing is known of where work-items are.
    """

    points: Any
    inames: frozenset[str]
    factor: Fraction = Fraction(1)
    moving: frozenset[str] = frozenset()


class Domains:
    """The domains of one kernel; everything that isl has to do with counting goes through here.

    Args:
        sizes: names of the parameters.
        assumptions: isl set of what is known of them.
        group_counts, local_sizes: of the grid along each axis, as isl functions of the sizes or whole numbers.
        axes: of the loop variables that are coordinates of the grid, ``("group", axis)`` or ``("local", axis)``.
        starts: of local coordinates that don't start at 0, the value for work-item 0.
        subgroup_size: work-items of a sub-group; None counts no sub-groups, which can be costly.

    Attributes:
        exact: turns False once a count had to be bounded instead.
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
        self.subgroup_size = subgroup_size
        self.exact = True
        self.group_counts, self.local_sizes = group_counts, local_sizes
        self.axes, self.starts = axes, starts
        self.sizes = frozenset(sizes)
        self.space = isl.Space.create_from_names(isl.DEFAULT_CONTEXT, set=[], params=sorted(self.sizes)).params()
        self.assumptions = assumptions.align_params(self.space)
        self._cardinalities: dict[str, Any] = {}
        self._too_hard: set[str] = set()
        self._executions: dict[tuple[str, Fraction, frozenset[str]], Executions] = {}

    # --- executions

    def executions(self, region: Region) -> Executions:
        """Executions by work-items, sub-groups and work-groups.

        Grid axes that a region does not use multiply: there every work-item, or group, repeats the work.
        """
        key = (str(region.points), region.factor, region.inames)
        if key not in self._executions:
            self._executions[key] = self._counted(region)
        return self._executions[key]

    def _counted(self, region: Region) -> Executions:
        groups = self.unused("group", region.inames)
        items = self.unused("local", region.inames)
        by_item = self.gist(self.cardinality(region.points) * self.product((*groups, *items)))
        kept = region.inames - self.along("local", region.inames).keys()
        by_group = self.gist(self.cardinality(projected_on(region.points, kept)) * self.product(groups))
        by_subgroup = self._by_subgroup(region, by_item, by_group, kept)
        return Executions(
            from_isl(_scaled(by_item, region)),
            None if by_subgroup is None else from_isl(_scaled(by_subgroup, region)),
            from_isl(_scaled(by_group, region)),
            tuple(from_isl(_scaled(count, region)) for count in self._of_the_longest(region)),
        )

    def _of_the_longest(self, region: Region) -> list[Any]:
        """Executions by the first and by the last work-item in the region, each times all work-items of the launch.

        One count, if the region is as long for all of them.
        """
        items = self.product((*self.group_counts, *self.local_sizes))
        axes = region.inames & self.axes.keys()
        places, turns = projected_on(region.points, axes), projected_on(region.points, region.inames - axes)
        if (_lifted(places, region.points) & _lifted(turns, region.points)).is_subset(region.points):
            return [self.gist(items * self.cardinality(turns))]
        ends = [
            self.cardinality(region.points & _lifted(end, region.points)) for end in (places.lexmin(), places.lexmax())
        ]
        return [self.gist(items * end) for end in ends]

    def _by_subgroup(self, region: Region, by_item: Any, by_group: Any, kept: frozenset[str]) -> Any:
        """Sub-groups with at least one work-item in the region; None if work-groups have no fixed size."""
        total, width = self._group_size(), self.subgroup_size
        if total is None or width is None:
            return None
        if total <= width:
            return by_group
        if (by_item - by_group * total).is_zero():  # all work-items of a group take part, or none
            return by_group * math.ceil(total / width)
        groups = self.unused("group", region.inames)
        return self.gist(self._active_subgroups(region, kept, width) * self.product(groups))

    def _group_size(self) -> int | None:
        """Work-items of a work-group, if that is known before the launch."""
        sizes = [_constant(extent) for extent in self.local_sizes]
        known = [size for size in sizes if size is not None]
        return math.prod(known) if len(known) == len(sizes) else None

    def _active_subgroups(self, region: Region, kept: frozenset[str], width: int) -> Any:
        """Sub-groups with a work-item in the region, at every point of its loops and groups, one index at a time.

        The work-items of one sub-group lie in a few rows of the group, each of them a box; to let isl find them from a
        linear index costs it minutes for some shapes of groups.
        """
        points, names, sizes = region.points, [], [_constant(extent) or 1 for extent in self.local_sizes]
        for axis, size in enumerate(sizes):
            name = next((i for i, at in self.along("local", region.inames).items() if at == axis), None)
            if name is None:
                name = f"_lane{axis}"
                points = _with_dimension(points, name)
                points = points.add_constraint(_inequality(points, {name: 1}))
                points = points.add_constraint(_inequality(points, {name: -1, 1: size - 1}))
            names.append(name)
        starts = [self.starts.get(name, 0) for name in names]
        count = self.zero()
        for first in range(0, math.prod(sizes), width):
            lanes = isl.Set.empty(points.space)
            for row, begin, end in _rows(first, min(first + width, math.prod(sizes)), sizes):
                box = isl.Set.universe(points.space)
                places = [(begin, end - 1), *((place, place) for place in row)]
                for name, start, (low, high) in zip(names, starts, places, strict=True):
                    box = box.add_constraint(_inequality(box, {name: 1, 1: -low - start}))
                    box = box.add_constraint(_inequality(box, {name: -1, 1: high + start}))
                lanes = lanes | box
            count = count + self.cardinality(projected_on(points & lanes.coalesce(), kept))
        return count

    def met(self, region: Region) -> tuple[Any, Any, Any]:
        """How often work-items, sub-groups and work-groups meet a barrier at a region's points, as isl polynomials.

        The region is of loops and groups: all work-items of a group meet the barrier, or none.
        """
        by_group = _scaled(self.cardinality(region.points) * self.product(self.unused("group", region.inames)), region)
        total, width = self._group_size(), self.subgroup_size
        subgroups = None if total is None or width is None else by_group * math.ceil(total / width)
        return by_group * self.product(self.local_sizes), subgroups, by_group

    def along(self, kind: str, inames: Iterable[str]) -> dict[str, int]:
        """Those of the loop variables that are coordinates of the ``group`` or ``local`` grid, with their axes."""
        return {i: self.axes[i][1] for i in sorted(inames) if self.axes.get(i, ("",))[0] == kind}

    # --- counting points

    def cardinality(self, points: Any) -> Any:
        """The number of points of a set, as an isl polynomial of the sizes; a bound from above without barvinok."""
        key = str(points)
        if key not in self._cardinalities:
            self._cardinalities[key] = self.gist(points.card() if has_barvinok() else self._boxes(points))
        return self._cardinalities[key]

    def distinct(self, elements: Any) -> Any:
        """The number of elements, as `cardinality`; None where irregular strides need more than `MOST_OPERATIONS`.

        Operations are counted, not time, so that the same kernel always has the same counts.
        """
        key = str(elements)
        if key in self._too_hard:
            return None
        context = isl.DEFAULT_CONTEXT
        context.reset_operations()
        context.set_max_operations(MOST_OPERATIONS)
        try:
            return self.cardinality(elements)
        except isl.Error as error:
            if "maximal number of operations" not in str(error):
                raise
            self._too_hard.add(key)
            return None
        finally:
            context.set_max_operations(0)
            context.reset_operations()

    def _boxes(self, points: Any) -> Any:
        """Points of the boxes around the set's disjoint parts: exact where a part is a box."""
        total = self.zero()
        for part in points.make_disjoint().get_basic_sets():
            part = isl.Set.from_basic_set(part)
            box, count = isl.Set.universe(part.space), self.one()
            for axis in range(part.dim(isl.dim_type.set)):
                low, high = part.dim_min(axis), part.dim_max(axis)
                count = count * isl.PwQPolynomial.from_pw_aff((high - low + 1).align_params(self.space))
                box = box & _between(part.space, axis, low, high)
            total = total + count
            self.exact &= box.intersect_params(part.params()).is_subset(part)
        return total

    def unused(self, kind: str, inames: Iterable[str]) -> list[Any]:
        """Extents of the grid along the axes that these loop variables leave out."""
        used = set(self.along(kind, inames).values())
        extents = self.group_counts if kind == "group" else self.local_sizes
        return [extent for axis, extent in enumerate(extents) if axis not in used]

    def product(self, extents: Any) -> Any:
        result = self.one()
        for extent in extents:
            if isinstance(extent, int):
                result = result * extent
            else:
                # Loopy's extents may name values that only some loops depend on, and that decide nothing here.
                result = result * isl.PwQPolynomial.from_pw_aff(extent.drop_unused_params().align_params(self.space))
        return self.gist(result)

    def gist(self, count: Any) -> Any:
        return count.gist_params(self.assumptions)

    def one(self) -> Any:
        point = isl.Set.universe(self.space.add_dims(isl.dim_type.set, 0))
        value = isl.Val.int_from_si(isl.DEFAULT_CONTEXT, 1)
        return isl.PwQPolynomial.from_pw_aff(isl.PwAff.val_on_domain(point.params(), value))

    def zero(self) -> Any:
        return self.one() * 0

    def finished(self, count: Any) -> QuasiPolynomial:
        return from_isl(self.gist(count))


def has_barvinok() -> bool:
    """Whether the installed islpy is the one that counts integer points."""
    return hasattr(isl.Set, "card")


def _rows(first: int, end: int, sizes: list[int]) -> Iterator[tuple[tuple[int, ...], int, int]]:
    """The parts of the rows along axis 0 that hold the work-items first to end - 1: place, and range along axis 0."""
    length = sizes[0]
    for row in range(first // length, -(-end // length)):
        place, rest = [], row
        for size in sizes[1:]:
            place.append(rest % size)
            rest //= size
        yield tuple(place), max(first - row * length, 0), min(end - row * length, length)


def projected_on(points: Any, names: Iterable[str]) -> Any:
    return points.project_out_except(names, [isl.dim_type.set])


def _lifted(points: Any, to: Any) -> Any:
    """A set of some of the loop variables as one of all those of another set, in their order."""
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


def _between(space: Any, axis: int, low: Any, high: Any) -> Any:
    """The points of a space whose coordinate lies between two functions of the sizes."""
    coordinate = isl.PwAff.var_on_domain(isl.LocalSpace.from_space(space), isl.dim_type.set, axis)
    return coordinate.ge_set(low.insert_domain(space)) & coordinate.le_set(high.insert_domain(space))


def _constant(extent: Any) -> int | None:
    """A work-group's extent as a number, if it is one."""
    if isinstance(extent, int):
        return extent
    pieces = extent.get_pieces()
    if len(pieces) != 1 or not pieces[0][1].is_cst():
        return None
    return int(str(pieces[0][1].get_constant_val()))


def _scaled(count: Any, region: Region) -> Any:
    if region.factor == 1:
        return count
    return count.scale_val(isl.Val(f"{region.factor.numerator}/{region.factor.denominator}"))


def statistic(value: float, name: str) -> Fraction:
    """What the user says of data, as a number that counts can be multiplied by.

    Raises:
        CountingError: if it is no number, or negative.
    """
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value) or value < 0:
        raise CountingError(f"the statistic of {name!r} is {value!r}; give a number that is not negative")
    return Fraction(float(value)).limit_denominator(10**6)
