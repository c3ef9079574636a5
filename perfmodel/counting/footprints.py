"""Computes footprints: what the accesses of a kernel touch together (Stevens & Klöckner 2016, Algorithm 2)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import islpy as isl

from perfmodel.counting.boxes import Extent
from perfmodel.counting.budget import unless_too_hard
from perfmodel.counting.counts import FOOTPRINTS, Footprint
from perfmodel.counting.domains import Domains
from perfmodel.counting.isl_names import isl_list
from perfmodel.counting.lattices import Lattice
from perfmodel.counting.points import ELEMENTS, has_barvinok
from perfmodel.counting.quasipolynomial import QuasiPolynomial

MOST_WORK = 500_000
"""No footprint takes more of isl's operations."""


@dataclass(frozen=True)
class Line:
    """The direction in which an array's elements lie next to each other, to see what of it is used.

    Attributes:
        axis: along which neighbours lie next to each other.
        gap: from one touched element to the next, as an access sees it; None where it touches one of every row.
        step: the shortest way of the access from one element to the next, where it is a number; 1 where they lie next
            to each other.
    """

    axis: int
    gap: int | None
    step: int | None = None


@dataclass(frozen=True)
class ByGroup:
    """Pairs of a work-group and an element that it touches.

    Attributes:
        pairs: isl set; the group's coordinates come first.
        repeats: extents of the group axes on which the element does not depend.
        axes: the other group axes.
    """

    pairs: Any
    repeats: tuple[Any, ...]
    axes: frozenset[int]


@dataclass(frozen=True)
class TouchedSets:
    """Holds isl sets of what one access touches; None where they can't be derived.

    Attributes:
        elements: by their coordinates along the array's axes.
        along: the same to be looked at along a line: by addresses, where the array's strides are numbers.
        by_group: by work-groups.
    """

    elements: Any = None
    along: Any = None
    by_group: ByGroup | None = None


class Touched:
    """Holds what one access touches of a global array.

    Args:
        direction: ``load``, ``store`` or ``atomic``.
        line: None where it can't be derived.
        make: makes the sets of what is touched, where they are asked for.
        lattice: the same as a sum of steps; None where it is none.
    """

    def __init__(
        self, direction: str, line: Line | None, make: Callable[[], TouchedSets], lattice: Lattice | None = None
    ) -> None:
        self.direction, self.line, self.lattice = direction, line, lattice
        self._make = make

    @cached_property
    def sets(self) -> TouchedSets:
        return unless_too_hard(self._make, MOST_WORK) or TouchedSets()


@dataclass
class _Array:
    dtype: str
    size: QuasiPolynomial | None
    extents: Sequence[Any]
    touched: list[Touched] = field(default_factory=list)


class Footprints:
    """Collects what the accesses to global arrays touch."""

    def __init__(self, domains: Domains) -> None:
        self.domains = domains
        self.arrays: dict[str, _Array] = {}

    def add(
        self, name: str, dtype: str, size: QuasiPolynomial | None, extents: Sequence[Any], touched: Touched
    ) -> None:
        """Adds one access to an array of so many elements, with so many along each axis of its `Line`s."""
        self.arrays.setdefault(name, _Array(dtype, size, extents)).touched.append(touched)

    def footprints(self) -> tuple[Footprint, ...]:
        """Returns the footprints by array and direction."""
        return tuple(each for name, array in self.arrays.items() for each in self._of_array(name, array))

    def _of_array(self, name: str, array: _Array) -> Iterator[Footprint]:
        numbers: dict[tuple[int, ...], QuasiPolynomial | None] = {}
        by_group: dict[tuple[int, ...], QuasiPolynomial | None] = {}
        for direction in FOOTPRINTS:
            places = tuple(p for p, t in enumerate(array.touched) if direction in ("any", t.direction))
            if not places and direction != "any":
                continue
            chosen = [array.touched[place] for place in places]
            # Of an array that is only loaded from, loads touch what any access touches.
            if places not in numbers:
                numbers[places] = self._elements(chosen)
            filled = None
            if direction == "any":
                if (gap := _even_gap([t.line for t in chosen])) is None:
                    filled = self._filled(chosen, array.extents)
                elif (number := numbers[places]) is not None:
                    filled = number if gap == 1 else number.scaled(gap)
            if places not in by_group:
                by_group[places] = self._by_group(chosen)
            yield Footprint(
                space="global",
                variable=name,
                dtype=array.dtype,
                direction=direction,
                elements=numbers[places],
                filled=filled,
                by_group=by_group[places],
                size=array.size,
            )

    def _elements(self, chosen: Sequence[Touched]) -> QuasiPolynomial | None:
        """Returns the number of distinct elements that some accesses touch together."""
        common = _common([t.lattice for t in chosen])
        factors = None if common is None else common.elements()
        if common is not None and factors is not None:
            return self.of_factors(factors, common.sizes)
        sets = [t.sets.elements for t in chosen]
        return unless_too_hard(lambda: self.number(_union(sets)), MOST_WORK)

    def _by_group(self, chosen: Sequence[Touched]) -> QuasiPolynomial | None:
        """Returns the number of distinct elements of each work-group, summed."""
        common = _common([t.lattice for t in chosen])
        factors = None if common is None else common.by_group()
        if common is not None and factors is not None:
            return self.of_factors(factors, common.sizes)
        # A group and its elements are no box, which is all that can be counted without barvinok.
        if not has_barvinok():
            return None
        parts = [t.sets.by_group for t in chosen]
        return unless_too_hard(partial(self._summed_over_groups, parts), MOST_WORK)

    def of_factors(self, factors: Sequence[Extent], sizes: Any) -> QuasiPolynomial:
        """Returns a product as a function of the sizes, zero for those that are none of some."""
        return self.domains.finished(self.domains.within(self.domains.product(factors), sizes))

    def number(self, elements: Any) -> QuasiPolynomial | None:
        """Returns the number of an isl set's elements; None where there is no set.

        Raises:
            TooHardError: that takes too long.
        """
        return None if elements is None else self.domains.finished(self.domains.cardinality(elements, ELEMENTS))

    def _summed_over_groups(self, parts: list[ByGroup | None]) -> QuasiPolynomial | None:
        """Returns the number of distinct elements of each work-group, summed.

        What accesses share, counts twice where they use different group axes, or where isl would be busy for long.
        """
        total = self.domains.zero()
        by_axes: dict[frozenset[int], list[ByGroup]] = defaultdict(list)
        for part in parts:
            if part is None:
                return None
            by_axes[part.axes].append(part)
        for same in by_axes.values():
            union = _union(part.pairs for part in same)
            if union is None:
                return None
            numbers = [self.domains.distinct(union)]
            if None in numbers and len(same) > 1:
                numbers = [self.domains.distinct(part.pairs) for part in same]
            for number in numbers:
                if number is None:
                    return None
                total = total + number * self.domains.product(same[0].repeats)
        return self.domains.finished(total)

    def _filled(self, chosen: Sequence[Touched], extents: Sequence[Any]) -> QuasiPolynomial | None:
        """Returns the number of elements with all gaps along their lines filled.

        Each element brings the gap behind it, so that every second element of a line fills exactly half of it; an
        array of which all accesses touch one element of every row brings the row.
        """
        lines = [t.line for t in chosen]
        known = [line for line in lines if line is not None]
        if len(known) < len(lines) or len({line.axis for line in known}) != 1:
            return None
        gaps = [line.gap for line in known if line.gap is not None]
        axis = known[0].axis
        common = _common([t.lattice for t in chosen])
        factors = common.filled(max(gaps), axis) if common is not None and gaps else None
        if common is not None and factors is not None:
            return self.of_factors(factors, common.sizes)
        reach = f"{max(gaps)} - 1" if gaps else f"({extents[axis]}) - 1"
        sets = [t.sets.along for t in chosen]
        return unless_too_hard(lambda: self._with_gaps(sets, axis, reach), MOST_WORK)

    def _with_gaps(self, sets: Sequence[Any], axis: int, reach: str) -> QuasiPolynomial | None:
        union = _union(sets)
        if union is None:
            return None
        filled = _shifted(union, axis, ">=", "0") & _shifted(union, axis, "<=", reach)
        return self.number(filled.coalesce())


def _common(lattices: Sequence[Lattice | None]) -> Lattice | None:
    """Returns the places that all accesses touch alike; None where they differ, or are not known as a lattice."""
    first, *others = lattices or (None,)
    return first if first is not None and all(each is not None and first.is_like(each) for each in others) else None


def _even_gap(lines: Sequence[Line | None]) -> int | None:
    """Returns the step that all accesses take along one line, where none falls between the elements of another."""
    found = {(line.step, line.gap) if line is not None else (None, None) for line in lines}
    step, gap = found.pop() if len(found) == 1 else (None, None)
    return step if step == gap else None


def addresses(elements: Any, strides: list[int]) -> Any:
    """Returns elements as distances from the array's first one."""
    axes = [f"_from{axis}" for axis in range(len(strides))]
    address = " + ".join(f"{stride} * {axis}" for stride, axis in zip(strides, axes, strict=True))
    return elements.apply(isl.Map(f"{{ [{', '.join(axes)}] -> [{address}] }}").align_params(elements.space))


def _shifted(elements: Any, axis: int, comparison: str, reach: str) -> Any:
    """Returns the points whose coordinate along an axis compares so with that of an element, moved by a reach."""
    dimensions = range(elements.dim(isl.dim_type.set))
    before, after = [f"_from{d}" for d in dimensions], [f"_to{d}" for d in dimensions]
    conditions = [f"{b} = {a}" for d, (b, a) in enumerate(zip(before, after, strict=True)) if d != axis]
    conditions.append(f"{after[axis]} {comparison} {before[axis]} + {reach}")
    sizes = isl_list(elements.get_var_names(isl.dim_type.param))
    relation = f"[{sizes}] -> {{ [{', '.join(before)}] -> [{', '.join(after)}] : {' and '.join(conditions)} }}"
    return elements.apply(isl.Map(relation))


def _union(parts: Iterable[Any]) -> Any:
    """Returns the union of isl sets of one dimension, or None if one is missing."""
    union = None
    for part in parts:
        if part is None or (union is not None and part.dim(isl.dim_type.set) != union.dim(isl.dim_type.set)):
            return None
        union = part if union is None else union | part
    return None if union is None else union.coalesce()
