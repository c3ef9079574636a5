"""Tells which loads are left of loops that a compiler writes out: what one copy of the body has loaded stays in a
register for those that load it again.

Windows that slide over a row load most of it again: ``x[i + d]``, with three copies of ``d`` in four of ``i``, is six
places and not twelve. The loads that stand in one loop nest are compared with each other, too.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from fractions import Fraction
from typing import Any

from perfmodel.counting.domains import Region
from perfmodel.counting.symbolic import Polynomial, coordinate, is_coordinate, number
from perfmodel.counting.symbolic import name as symbol
from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import walks
from perfmodel.opencl_c.promotion import may_meet

MOST_IN_REGISTERS = 32
"""So many numbers that a body loads stay in registers at most, to be used again."""

ALL = Fraction(1)
"""All of a load's executions are left."""


class RepeatedLoads:
    """Follows the loads of a kernel in the order in which they stand.

    Args:
        written_out: the loops that a compiler writes out, by name, each with its iterations.
        apart: arrays that are told apart from all others.
    """

    def __init__(self, written_out: Mapping[str, int], apart: Collection[str]) -> None:
        self.written_out, self.apart = written_out, apart
        self.loaded: dict[tuple[str | None, int, tuple[str, ...], Polynomial], list[tuple[Any, set[Polynomial]]]] = {}

    def left(
        self, access: low.Access, address: Polynomial | None, region: Region, loops: Sequence[low.Loop]
    ) -> tuple[Region, Fraction]:
        """Returns the points at which a load is still executed, and which part of its executions there remains.

        Args:
            address: in bytes; None where it is not known.
            loops: around it, the innermost last.
        """
        inner = itertools.takewhile(lambda loop: self._is_one_piece(loop, access), reversed(loops))
        copies = {coordinate(loop.name): self.written_out[loop.name] for loop in inner}
        if address is None or not copies:
            return region, ALL
        places, moving, dropped, part = {_part(address, _is_same_for_all)}, set(), set(), ALL
        for name, times in copies.items():
            step = _step(address, name)
            if not step.terms:
                dropped.add(name)
                continue
            moving.add(name)
            moved = {place + step * number(turn) for place in places for turn in range(times)}
            part *= Fraction(len(moved), len(places) * times)
            places = moved
            if len(places) > MOST_IN_REGISTERS:  # by the next iteration of the loops around, the first are gone
                return region.without(dropped), part
        apart = _part(address, lambda names: not _is_same_for_all(names) and not moving & names)
        before = self.loaded.setdefault((access.variable, access.bytes, tuple(copies), apart), [])
        seen = {place for points, others in before if points.plain_is_equal(region.points) for place in others}
        before.append((region.points, places))
        return region.without(dropped), part * Fraction(len(places - seen), len(places))

    def _is_one_piece(self, loop: low.Loop, access: low.Access) -> bool:
        """Returns whether the copies of a loop's body share what they load."""
        return loop.name in self.written_out and not self._changes(loop, access)

    def _changes(self, loop: low.Loop, access: low.Access) -> bool:
        """Returns whether a loop may store what an access loads, or waits for others that may."""
        return any(
            isinstance(each, low.Barrier)
            or (isinstance(each, low.Store | low.Atomic) and may_meet(each.access, access, self.apart))
            for each in walks.simple_statements(loop.body)
        )


def _step(address: Polynomial, name: str) -> Polynomial:
    """Returns by how many bytes an address moves from one iteration to the next; where it moves otherwise than by
    equal steps, the loop's own name, as all its iterations are apart then."""
    found = address.coefficient(name)
    return symbol(name) if found is None else found


def _is_same_for_all(names: frozenset[str]) -> bool:
    """Returns whether a term with these names is the same for all work-items and iterations."""
    return not any(map(is_coordinate, names))


def _part(address: Polynomial, is_wanted: Callable[[frozenset[str]], bool]) -> Polynomial:
    """Returns the terms of an address whose names are wanted."""
    terms = address.terms.items()
    return Polynomial({each: times for each, times in terms if is_wanted(Polynomial({each: 1}).names())})
