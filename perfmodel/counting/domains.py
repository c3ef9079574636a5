"""Iteration domains of a scheduled Loopy kernel, and how many points they have."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from numbers import Real
from typing import Any

import islpy as isl
import loopy as lp
from loopy.isl_helpers import static_min_of_pw_aff
from loopy.kernel.data import GroupInameTag, LocalInameTag
from loopy.symbolic import condition_to_set

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
        kernel: a linearized Loopy kernel.
        statistics: expected trip counts by loop variable, and probabilities by predicate or instruction.
        subgroup_size: work-items of a sub-group; None counts no sub-groups, which can be costly.

    Attributes:
        exact: turns False once a count had to be bounded instead.
    """

    def __init__(self, kernel: Any, callables: Any, statistics: Mapping[str, float], subgroup_size: int | None) -> None:
        self.kernel = kernel
        self.statistics = statistics
        self.subgroup_size = subgroup_size
        self.exact = True
        self.group_counts, self.local_sizes = kernel.get_grid_size_upper_bounds(callables)
        self.sizes = frozenset(a.name for a in kernel.args if isinstance(a, lp.ValueArg) and a.dtype.is_integral())
        self.space = isl.Space.create_from_names(isl.DEFAULT_CONTEXT, set=[], params=sorted(self.sizes)).params()
        assumptions = isl.Set.from_basic_set(kernel.assumptions).project_out_except(self.sizes, [isl.dim_type.param])
        self.assumptions = assumptions.align_params(self.space)
        self._cardinalities: dict[str, Any] = {}
        self._too_hard: set[str] = set()
        self._executions: dict[tuple[str, Fraction, frozenset[str]], Executions] = {}

    # --- regions

    def region(self, inames: frozenset[str], predicates: Iterable[Any], instruction: str) -> Region:
        """Where an instruction runs: in its loops, if all predicates hold, under the kernel's assumptions.

        Raises:
            CountingError: for a loop or predicate that depends on data and has no statistics.
        """
        points, known, factor, moving = self._loops(inames, instruction)
        for predicate in predicates:
            condition = condition_to_set(points.space, predicate)
            if condition is None:
                factor *= self._probability(predicate, instruction)
            else:
                points = points & condition
        return Region(points.intersect_params(self.assumptions), known, factor, moving)

    def depends_on_data(self, predicate: Any, inames: frozenset[str], instruction: str) -> bool:
        """Whether a predicate is decided only when the kernel runs."""
        points, *_ = self._loops(inames, instruction)
        return condition_to_set(points.space, predicate) is None

    def _loops(self, inames: frozenset[str], instruction: str) -> tuple[Any, frozenset[str], Fraction, frozenset[str]]:
        """Points of the loops whose bounds are known, their names, and of the others the expected trips, and which of
        them start somewhere that depends on data."""
        factor, known, moving = Fraction(1), inames, set()
        points = self._projected(known)
        while hidden := set(points.get_var_names(isl.dim_type.param)) - self.sizes:
            loop = next((i for i in sorted(known) if _is_bound_by(points, i, hidden)), None)
            if loop is None or loop not in self.statistics:
                raise CountingError(
                    f"the loop over {loop or ', '.join(sorted(known))!r} around instruction {instruction!r} depends on "
                    f"{', '.join(sorted(hidden))}, known only when the kernel runs; give the expected trip count as "
                    f"Kernel(…, statistics={{{loop!r}: …}})"
                )
            factor *= _fraction(self.statistics[loop], loop)
            if _is_bound_by(points, loop, hidden, from_below=True):
                moving.add(loop)
            known -= {loop}
            points = self._projected(known)
        return points.align_params(self.space), known, factor, frozenset(moving)

    def _projected(self, inames: frozenset[str]) -> Any:
        domain = self.kernel.get_inames_domain(inames).project_out_except(inames, [isl.dim_type.set])
        domain = isl.Set.from_basic_set(domain) if isinstance(domain, isl.BasicSet) else domain
        # A parameter that no constraint mentions any more bounds nothing.
        kept = [
            name
            for name in domain.get_var_names(isl.dim_type.param)
            if name in self.sizes or domain.involves_dims(*_place(domain, name), 1)
        ]
        return domain.project_out_except(kept, [isl.dim_type.param])

    def _probability(self, predicate: Any, instruction: str) -> Fraction:
        for key in (str(predicate), instruction):
            if key in self.statistics:
                probability = _fraction(self.statistics[key], key)
                if probability > 1:
                    raise CountingError(f"the probability of {key!r} is {float(probability):g}; give one from 0 to 1")
                return probability
        raise CountingError(
            f"instruction {instruction!r} runs only if {predicate}, which depends on data; give the probability as "
            f"Kernel(…, statistics={{{str(predicate)!r}: …}})"
        )

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
        groups = self.unused(self.group_counts, region.inames, GroupInameTag)
        items = self.unused(self.local_sizes, region.inames, LocalInameTag)
        by_item = self.gist(self.cardinality(region.points) * self.product((*groups, *items)))
        kept = {i for i in region.inames if not self.is_local(i)}
        by_group = self.gist(self.cardinality(_projected_on(region.points, kept)) * self.product(groups))
        by_subgroup = self._by_subgroup(region, by_item, by_group, kept)
        return Executions(
            from_isl(_scaled(by_item, region.factor)),
            None if by_subgroup is None else from_isl(_scaled(by_subgroup, region.factor)),
            from_isl(_scaled(by_group, region.factor)),
            tuple(from_isl(_scaled(count, region.factor)) for count in self._of_the_longest(region)),
        )

    def _of_the_longest(self, region: Region) -> list[Any]:
        """Executions by the first and by the last work-item in the region, each times all work-items of the launch.

        One count, if the region is as long for all of them.
        """
        items = self.product((*self.group_counts, *self.local_sizes))
        axes = {i for i in region.inames if self.is_local(i)} | self.group_inames(region.inames)
        places, turns = _projected_on(region.points, axes), _projected_on(region.points, region.inames - axes)
        if (_lifted(places, region.points) & _lifted(turns, region.points)).is_subset(region.points):
            return [self.gist(items * self.cardinality(turns))]
        ends = [
            self.cardinality(region.points & _lifted(end, region.points)) for end in (places.lexmin(), places.lexmax())
        ]
        return [self.gist(items * end) for end in ends]

    def _by_subgroup(self, region: Region, by_item: Any, by_group: Any, kept: set[str]) -> Any:
        """Sub-groups with at least one work-item in the region; None if work-groups have no fixed size."""
        total, width = self._group_size(), self.subgroup_size
        if total is None or width is None:
            return None
        if total <= width:
            return by_group
        if (by_item - by_group * total).is_zero():  # all work-items of a group take part, or none
            return by_group * math.ceil(total / width)
        groups = self.unused(self.group_counts, region.inames, GroupInameTag)
        return self.gist(self._active_subgroups(region, kept, width) * self.product(groups))

    def _group_size(self) -> int | None:
        """Work-items of a work-group, if that is known before the launch."""
        sizes = [_constant(extent) for extent in self.local_sizes]
        known = [size for size in sizes if size is not None]
        return math.prod(known) if len(known) == len(sizes) else None

    def _active_subgroups(self, region: Region, kept: set[str], width: int) -> Any:
        """Sub-groups with a work-item in the region, at every point of its loops and groups, one index at a time.

        The work-items of one sub-group lie in a few rows of the group, each of them a box; to let isl find them from a
        linear index costs it minutes for some shapes of groups.
        """
        points, names, sizes = region.points, [], [_constant(extent) or 1 for extent in self.local_sizes]
        for axis, size in enumerate(sizes):
            name = next((i for i in sorted(region.inames) if self._local_axis(i) == axis), None)
            if name is None:
                name = f"_lane{axis}"
                points = _with_dimension(points, name)
                points = points.add_constraint(_inequality(points, {name: 1}))
                points = points.add_constraint(_inequality(points, {name: -1, 1: size - 1}))
            names.append(name)
        starts = [self._start(name) for name in names]
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
            count = count + self.cardinality(_projected_on(points & lanes.coalesce(), kept))
        return count

    def _start(self, name: str) -> int:
        """The loop variable's value for work-item 0."""
        if name not in self.kernel.all_inames():
            return 0
        bounds = self.kernel.get_iname_bounds(name)
        low = static_min_of_pw_aff(bounds.lower_bound_pw_aff, constants_only=True)
        return int(str(low.get_constant_val()))

    def meetings(self, loops: frozenset[str]) -> tuple[Any, Any, Any]:
        """How often work-items, sub-groups and work-groups meet a barrier inside these loops, as isl polynomials."""
        inames = loops | self.groups_around(loops)
        region = self.region(inames, (), "barrier")
        unused = self.unused(self.group_counts, region.inames, GroupInameTag)
        by_group = _scaled(self.cardinality(region.points) * self.product(unused), region.factor)
        total, width = self._group_size(), self.subgroup_size
        subgroups = None if total is None or width is None else by_group * math.ceil(total / width)
        return by_group * self.product(self.local_sizes), subgroups, by_group

    def groups_around(self, loops: frozenset[str]) -> frozenset[str]:
        """Group axes that the loops' bounds may depend on; outside all loops every group meets a barrier."""
        if not loops:
            return frozenset()
        return self.group_inames(next(i.within_inames for i in self.kernel.instructions if loops <= i.within_inames))

    def group_inames(self, inames: frozenset[str]) -> frozenset[str]:
        return frozenset(i for i in inames if self.kernel.iname_tags_of_type(i, GroupInameTag))

    def is_local(self, iname: str) -> bool:
        return bool(self.kernel.iname_tags_of_type(iname, LocalInameTag))

    def _local_axis(self, iname: str) -> int | None:
        return next((int(tag.axis) for tag in self.kernel.iname_tags_of_type(iname, LocalInameTag)), None)

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

    def unused(self, extents: Any, inames: frozenset[str], tag_type: Any) -> list[Any]:
        used = {tag.axis for iname in inames for tag in self.kernel.iname_tags_of_type(iname, tag_type)}
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


def _is_bound_by(points: Any, iname: str, hidden: set[str], from_below: bool = False) -> bool:
    """Whether a constraint ties the loop variable, or its start, to a value known only when the kernel runs."""
    return any(
        constraint.involves_dims(*_place(points, iname), 1)
        and not (from_below and constraint.get_coefficient_val(*_place(points, iname)).is_neg())
        and any(constraint.involves_dims(*_place(points, name), 1) for name in hidden)
        for basic in points.get_basic_sets()
        for constraint in basic.get_constraints()
    )


def _place(points: Any, name: str) -> tuple[Any, int]:
    kind, position = points.get_var_dict()[name]
    return kind, position


def _projected_on(points: Any, names: Iterable[str]) -> Any:
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


def _scaled(count: Any, factor: Fraction) -> Any:
    if factor == 1:
        return count
    return count.scale_val(isl.Val(f"{factor.numerator}/{factor.denominator}"))


def _fraction(value: float, name: str) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value) or value < 0:
        raise CountingError(f"the statistic of {name!r} is {value!r}; give a number that is not negative")
    return Fraction(float(value)).limit_denominator(10**6)
