"""Lattices are places that sums of steps lead to, of which each is taken some times: what accesses in loops touch.

Where each step is longer than all shorter ones together, or fits into the next shorter one without a gap, their number
is a product, which isl need not count.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import islpy as isl

from perfmodel.counting.boxes import Box, Extent
from perfmodel.counting.symbolic import Floor, Polynomial


@dataclass(frozen=True)
class Step:
    """A step along an axis of an array, taken 0 to `times` - 1 times, as a digit of a coordinate says."""

    axis: int
    by: int
    times: Extent
    coordinate: str
    digit: int = 0


@dataclass(frozen=True)
class Lattice:
    """Holds what an access touches of an array.

    Attributes:
        steps: those that lead somewhere.
        start: the place on each axis from which they go on; None where sizes decide on it.
        groups: extents of the coordinates of work-groups at which the access is made.
        repeats: extents of the grid's axes of groups on which nothing depends.
        sizes: isl set of the sizes for which there is an access; None where these are all that are assumed.
    """

    steps: tuple[Step, ...]
    start: tuple[int | None, ...]
    groups: Mapping[str, Extent]
    repeats: tuple[Extent, ...]
    sizes: Any

    def elements(self) -> list[Extent] | None:
        """Returns factors of the number of distinct places; None where that is no product."""
        return _distinct(self.steps)

    def filled(self, gap: int, axis: int) -> list[Extent] | None:
        """Returns the same of the places from the first to the last along an axis, which brings a gap behind it."""
        span: Extent = gap
        for step in self.steps:
            if step.axis == axis:
                span = _extended(span, abs(step.by), step.times)
        found = _distinct(replace(step, by=0) if step.axis == axis else step for step in self.steps)
        return None if found is None else [*found, span]

    def by_group(self) -> list[Extent] | None:
        """Returns factors of the number of distinct places of each work-group, summed over these; None likewise."""
        own = [step for step in self.steps if step.coordinate not in self.groups]
        found = _distinct(own)
        return None if found is None else [*found, *self.groups.values(), *self.repeats]

    def is_like(self, other: Lattice) -> bool:
        """Returns whether another access touches the same places, in each work-group, too."""
        return self is other or (None not in self.start and self._key() == other._key())

    def _key(self) -> tuple[Any, ...]:
        steps = sorted(
            (step.axis, step.by, str(step.times), step.coordinate if step.coordinate in self.groups else "", step.digit)
            for step in self.steps
        )
        groups = sorted((name, str(extent)) for name, extent in self.groups.items())
        return steps, self.start, groups, str(self.sizes)


def lattice(
    axes: Sequence[Polynomial], parts: int, box: Box, groups: Collection[str], repeats: Iterable[Extent]
) -> Lattice | None:
    """Returns the places of indices along the axes of an array; None where they are no sums of independent steps.

    Args:
        axes: polynomials of the box's coordinates alone; along the last one, an access touches so many `parts`.
        groups: coordinates of the box that are those of work-groups.
        repeats: see `Lattice`.
    """
    steps = [Step(len(axes) - 1, 1, parts, "parts")] if parts > 1 else []
    linear: dict[str, list[tuple[int, int]]] = {}
    quotients: dict[str, list[tuple[int, int, int]]] = {}
    start: list[int | None] = []
    for axis, index in enumerate(axes):
        origin: int | None = 0
        for monomial, by in index.terms.items():
            if not monomial:
                origin = None if origin is None else origin + by
                continue
            (atom, power), *others = monomial
            if others or power != 1:
                return None
            divisor = 1
            if isinstance(atom, Floor):
                inner, known = _name(atom.numerator), atom.denominator.constant
                if inner is None or not known or known < 0:
                    return None
                atom, divisor = inner, known
            if atom not in box.extents:
                return None
            if divisor > 1:
                quotients.setdefault(atom, []).append((axis, by, divisor))
            else:
                linear.setdefault(atom, []).append((axis, by))
                low = box.starts[atom]
                origin = None if origin is None or low is None else origin + by * low
        start.append(origin)
    for coordinate in dict.fromkeys((*linear, *quotients)):
        found = _digits(
            coordinate,
            linear.get(coordinate, ()),
            quotients.get(coordinate, ()),
            box.extents[coordinate],
            box.starts[coordinate],
        )
        if found is None:
            return None
        steps += found
    return Lattice(
        steps=tuple(steps),
        start=tuple(start),
        groups={name: box.extents[name] for name in groups},
        repeats=tuple(repeats),
        sizes=box.sizes,
    )


def _name(value: Polynomial) -> str | None:
    """Returns the name that a polynomial is, and nothing else."""
    if len(value.terms) != 1:
        return None
    ((monomial, by),) = value.terms.items()
    if by != 1 or len(monomial) != 1 or monomial[0][1] != 1 or not isinstance(monomial[0][0], str):
        return None
    return monomial[0][0]


def _digits(
    coordinate: str,
    linear: Iterable[tuple[int, int]],
    quotients: Sequence[tuple[int, int, int]],
    extent: Extent,
    start: int | None,
) -> list[Step] | None:
    """Returns the steps of a coordinate: one, or those of its digits, where its quotients count as well."""
    divisors = [1, *sorted({divisor for _, _, divisor in quotients})]
    if len(divisors) > 1 and (start != 0 or not isinstance(extent, int)):
        return None
    ends = [*divisors[1:], extent]
    if len(divisors) > 1 and any(end % divisor for divisor, end in zip(divisors, ends, strict=True)):
        return None
    steps = []
    for place, (divisor, end) in enumerate(zip(divisors, ends, strict=True)):
        times = end // divisor if len(divisors) > 1 else extent
        moved: dict[int, int] = {}
        for axis, by in linear:
            moved[axis] = moved.get(axis, 0) + by * divisor
        for axis, by, other in quotients:
            if other <= divisor:
                moved[axis] = moved.get(axis, 0) + by * (divisor // other)
        steps += [
            Step(axis=axis, by=by, times=times, coordinate=coordinate, digit=place) for axis, by in moved.items() if by
        ]
    return steps


def _distinct(steps: Iterable[Step]) -> list[Extent] | None:
    """Returns factors of the number of places that independent steps lead to; None where that is no product."""
    found: list[Extent] = []
    by_axis: dict[int, list[Step]] = {}
    digits = set()
    for step in steps:
        if not isinstance(step.times, int) or step.times != 1:
            if (step.coordinate, step.digit) in digits:  # which moves along a diagonal
                return None
            digits.add((step.coordinate, step.digit))
            if step.by:
                by_axis.setdefault(step.axis, []).append(step)
    for along in by_axis.values():
        dense: list[tuple[int, Extent]] = []
        reach: int | None = 0  # of all shorter steps together
        for step in sorted(along, key=lambda step: abs(step.by)):
            by, times = abs(step.by), step.times
            if dense and by % dense[-1][0] == 0 and _is_at_least(dense[-1][1], by // dense[-1][0]):
                dense[-1] = dense[-1][0], _extended(dense[-1][1], by // dense[-1][0], times)
            elif reach is not None and by > reach:
                dense.append((by, times))
            else:
                return None
            reach = reach + by * (times - 1) if reach is not None and isinstance(times, int) else None
        found += [times for _, times in dense]
    return found


def _is_at_least(extent: Extent, number: int) -> bool:
    return isinstance(extent, int) and extent >= number


def _extended(extent: Extent, by: int, times: Extent) -> Extent:
    """Returns how long a row is that is laid down some times, each time so many places further."""
    if isinstance(times, int):
        return extent + by * (times - 1)
    return (times - 1).scale_val(isl.Val.int_from_si(isl.DEFAULT_CONTEXT, by)) + extent
