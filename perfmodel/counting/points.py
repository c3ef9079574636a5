"""Counts the points of sets, as functions of sizes; Barvinok and isl do it, within limits of work."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import islpy as isl

from perfmodel.counting.boxes import Box, box_of
from perfmodel.counting.budget import TooHardError, done_once, limited, limited_and_taken, unlimited
from perfmodel.counting.quasipolynomial import QuasiPolynomial, from_isl

# Of isl: to simplify a count, and to add up those of a set's parts.
MOST_SIMPLIFYING = 50_000
MOST_ADDING = 300_000
MOST_TERMS = 20_000
"""Terms of a count times its quotients; more, such as remainders by large numbers have, take isl minutes."""
LARGE_WINDOW, SMALL_STEP, WORK_OF_WRAPPING = 1024, 16, 20
"""Barvinok takes about so many times as long where steps above the one wrap around in windows above the other."""
WORTH_REMEMBERING = 100
"""Barvinok takes no longer for sets with fewer corners than it takes to find them again."""
MANY_PIECES = 4
"""Counts with fewer are simplified as fast as they are found again."""
MOST_SIZES = 4
"""Sizes that a set's points do not depend on are left to isl where there are more."""
SMALL_PRODUCT = 2**24
"""No corner of a set lies beyond, where the product of all its numbers is smaller."""
MOST_FOR_BARVINOK = 2**27 - 1
"""Barvinok multiplies the largest number that it meets by 16, as an integer of 32 bits."""


@dataclass(frozen=True)
class Effort:
    """An effort limits what is done to count the points of one set, with the usual budget.

    Attributes:
        parting: operations of isl to make parts of it that have nothing in common.
        corners: of these parts, for counts as functions of sizes, each once more for each quotient; Barvinok, which
            can't be stopped, goes to each.
        fixed_corners: the same, for counts at sizes that are numbers.
    """

    parting: int
    corners: int
    fixed_corners: int


EXECUTIONS = Effort(1_000_000, 5_000, 5_000)
ELEMENTS = Effort(100_000, 20_000, 20_000)
BY_GROUP = Effort(30_000, 3_000_000, 3_000_000)
DIVERGENT = Effort(30_000, 3_000, 3_000)
"""The efforts are for what counts need, for what accesses touch, for what each work-group touches, and for sub-groups
that go both ways at a branch."""


class Points:
    """The sets of one kernel's points can be counted here.

    Args:
        sizes: names of the parameters.
        assumptions: isl set of what is known of them.

    Attributes:
        exact: turns False once a count had to be bounded instead.
    """

    patience = 1
    """Parts of sets may have so many times the corners that an effort allows."""

    def __init__(self, sizes: Iterable[str], assumptions: Any) -> None:
        self.exact = True
        self.sizes = frozenset(sizes)
        self.space = isl.Space.create_from_names(isl.DEFAULT_CONTEXT, set=[], params=sorted(self.sizes)).params()
        self.assumptions = assumptions.align_params(self.space)
        self._cardinalities: dict[str, Any] = {}
        self._boxes_found: dict[str, Box | None] = {}
        self._too_hard: set[tuple[str, Effort]] = set()
        self._gists: dict[int, Any] = {}
        self._remembered: dict[str, Any] = {}
        self._numbers: dict[int, Any] = {}
        self._functions: dict[str, QuasiPolynomial] = {}
        self._products: dict[tuple[int, ...], tuple[list[Any], Any]] = {}
        self._extents: dict[str, Any] = {}
        self._neighbours: dict[str, tuple[Any, int]] = {}

    def cardinality(self, points: Any, effort: Effort = EXECUTIONS) -> Any:
        """Returns the number of points of a set, as an isl polynomial of the sizes; a bound from above without
        barvinok.

        Raises:
            TooHardError: it takes more than this effort, by default that for executions.
        """
        key = str(points)
        if key not in self._cardinalities:
            if (key, effort) in self._too_hard:
                raise TooHardError
            if (box := self.box(points)) is not None:
                count = self.of_box(box)
            else:
                try:
                    count = self._points(points, effort) if has_barvinok() else self._boxes(points)
                except TooHardError:
                    self._too_hard.add((key, effort))
                    raise
            self._cardinalities[key] = self.gist(count)
        return self._cardinalities[key]

    def box(self, points: Any) -> Box | None:
        """Returns a set as a box; None where it is none."""
        key = str(points)
        if key not in self._boxes_found:
            self._boxes_found[key] = box_of(points, self.assumptions, self._one_object)
        return self._boxes_found[key]

    def _one_object(self, extent: Any) -> Any:
        """Returns a function of the sizes, as one object for equal ones, so that products are found again."""
        return self._extents.setdefault(str(extent), extent)

    def of_box(self, box: Box) -> Any:
        """Returns the number of points of a box."""
        return self.within(self.product(box.extents.values()), box.sizes)

    def within(self, count: Any, sizes: Any) -> Any:
        """Returns a count that is zero but for some sizes, see `Box`."""
        return count if sizes is None else self.gist(count.intersect_params(sizes))

    def distinct(self, elements: Any) -> Any:
        """Returns the number of elements, as `cardinality`; None where irregular strides are too hard to count."""
        try:
            return self.cardinality(elements, BY_GROUP)
        except TooHardError:
            return None

    def _points(self, points: Any, effort: Effort) -> Any:
        # Barvinok, which can't be stopped, is only given what is disjoint already, part by part.
        parts = limited(lambda: points.make_disjoint().compute_divs().get_basic_sets(), effort.parting)
        is_function = points.dim(isl.dim_type.param) > 0
        most = self.patience * (effort.corners if is_function else effort.fixed_corners)
        work = [_corners(part) * _work_at_each(part) for part in parts]
        if sum(work) > most:
            raise TooHardError
        total, terms, left = self.zero(), 0, float(MOST_ADDING)
        for part, each in zip(parts, work, strict=True):
            count = _counted(part, each)
            terms += _terms(count)
            if terms > self.patience * MOST_TERMS:
                raise TooHardError
            if len(parts) == 1:
                return count
            # At once, so that no more are counted where they cannot be added up.
            total, taken = limited_and_taken(partial(operator.add, total, count), left)
            left -= taken
        return total

    def _boxes(self, points: Any) -> Any:
        """Returns the number of points of the boxes around the set's disjoint parts: exact where a part is a box."""
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

    def remembered(self, text: str, make: Callable[[], Any]) -> Any:
        """Returns a set or relation that a text says and a function makes, which loops ask for again and again, of one
        kernel and of others."""
        if text not in self._remembered:
            self._remembered[text] = made_once(text, make)
        return self._remembered[text]

    def neighbours(self, points: Any, axis: str, find: Callable[[str], Any]) -> Any:
        """Returns what a function finds along an axis of a set, which every access that is made there asks for."""
        return done_once(partial(find, axis), self._neighbours, f"{axis} of {points}")

    def product(self, extents: Iterable[Any]) -> Any:
        """Returns the product of numbers and functions of the sizes."""
        whole, functions = 1, []
        for factor in extents:
            if isinstance(factor, int):
                whole *= factor
            else:
                functions.append(factor)
        key = (whole, *map(id, functions))
        if key not in self._products:
            result = self._number(whole)
            for extent in functions:
                # Loopy's extents may name values that only some loops depend on, and that decide nothing here.
                result = result * isl.PwQPolynomial.from_pw_aff(extent.drop_unused_params().align_params(self.space))
            result = self.gist(result) if functions else result
            self._products[key] = functions, result  # which keeps the functions, and so their ids
        return self._products[key][1]

    def gist(self, count: Any) -> Any:
        """Returns the count as short as assumptions allow; unchanged, where that takes more than `MOST_SIMPLIFYING`."""
        if id(count) in self._gists or not self.sizes:
            return count
        try:
            found = limited(partial(self._simplified, count), MOST_SIMPLIFYING)
        except TooHardError:
            return count
        self._gists[id(found)] = found
        return found

    def _simplified(self, count: Any) -> Any:
        simplify = partial(count.gist_params, self.assumptions)
        if count.n_piece() < MANY_PIECES:
            return simplify()
        return done_once(simplify, _SIMPLIFIED, f"{count} where {self.assumptions}")

    def one(self) -> Any:
        return self._number(1)

    def zero(self) -> Any:
        return self._number(0)

    def _number(self, value: int) -> Any:
        if value not in self._numbers:
            point = isl.Set.universe(self.space.add_dims(isl.dim_type.set, 0))
            exact = isl.Val(str(value))
            found = isl.PwQPolynomial.from_pw_aff(isl.PwAff.val_on_domain(point.params(), exact))
            self._numbers[value] = self._gists[id(found)] = found
        return self._numbers[value]

    def finished(self, count: Any) -> QuasiPolynomial:
        return self.function(self.gist(count))

    def function(self, count: Any) -> QuasiPolynomial:
        """Returns an isl polynomial as a function of the sizes; equal ones are one object."""
        text = str(count)
        if text not in self._functions:
            read = partial(from_isl, count)
            self._functions[text] = done_once(read, _FUNCTIONS, text) if count.n_piece() >= MANY_PIECES else read()
        return self._functions[text]


def made_once(text: str, make: Callable[[], Any]) -> Any:
    """Returns a set or relation that a text says and a function makes, charged each time as if it was made."""
    return done_once(make, _MADE, text)


def has_barvinok() -> bool:
    """Returns True if the installed islpy is the one that counts integer points."""
    return hasattr(isl.Set, "card")


_NUMBER = re.compile(r"(?<!\w)[1-9]\d*")
_UNUSED = ("__0larger", "__0smaller")
_MADE: dict[str, tuple[Any, int]] = {}
_KNOWN: dict[str, tuple[Any, int]] = {}
_SIMPLIFIED: dict[str, tuple[Any, int]] = {}
_FUNCTIONS: dict[str, tuple[QuasiPolynomial, int]] = {}


def _counted(part: Any, work: int) -> Any:
    """Returns the number of points of a basic set at whose corners there is so much work."""
    if work < WORTH_REMEMBERING:
        return _cardinality(part)
    # Kernels are counted as they are and as compiled, for all sizes and at their own: much of that is the same, but for
    # conditions that follow from others.
    part = part.remove_redundancies()
    return done_once(partial(_cardinality, part), _KNOWN, str(part), may_overrun=True)


def _cardinality(part: Any) -> Any:
    """Returns the number of points of a basic set, however long that takes."""
    with unlimited():
        return _card(part)


def _card(part: Any) -> Any:
    """Returns the same; sizes that have nothing to do with the points, but are in conditions beside, would cost
    Barvinok seconds."""
    whole, points = isl.Set.from_basic_set(part), isl.dim_type.set
    count = _ended if math.prod(map(int, _NUMBER.findall(str(part)))) >= SMALL_PRODUCT else isl.Set.card
    if part.dim(isl.dim_type.param) <= MOST_SIZES:
        return count(whole)
    beside = isl.BasicSet.universe(part.space)
    for constraint in part.get_constraints():
        if not any(constraint.involves_dims(kind, 0, part.dim(kind)) for kind in (points, isl.dim_type.div)):
            beside = beside.add_constraint(constraint)
    rest = part.drop_constraints_not_involving_dims(points, 0, part.dim(points))
    used = isl.Set.from_basic_set(rest).drop_unused_params()
    return count(used).intersect_params(isl.Set.from_basic_set(beside).params())


def _ended(points: Any) -> Any:
    """Returns the number of points of a set with large numbers, at which Barvinok may go on forever.

    It looks for a direction at random, within a range that follows from the largest number, and tries again if an edge
    is perpendicular to it. Where 32 bits overflow, as at 2^26 in four dimensions, the range is empty, and the direction
    always the same. Two more sizes that change nothing bring a number that is the largest, and whose range is not.
    """
    sizes = points.dim(isl.dim_type.param)
    more = points.add_dims(isl.dim_type.param, 2)
    for place, text in enumerate(_UNUSED, sizes):
        more = more.set_dim_name(isl.dim_type.param, place, text)
    space = more.get_space().params()
    largest = isl.Constraint.ineq_from_names(space, dict(zip(_UNUSED, (MOST_FOR_BARVINOK, -1), strict=True)))
    beside = isl.Set.universe(space).add_constraint(largest)
    places = isl.dim_type.param, sizes, 2
    count = isl.PwQPolynomial.zero(points.get_space().params().add_dims(isl.dim_type.out, 1))
    for where, polynomial in more.intersect_params(beside).card().get_pieces():
        piece = isl.PwQPolynomial.alloc(where.project_out(*places), polynomial.drop_dims(*places))
        count = count.add_disjoint(piece)
    return count


def _terms(count: Any) -> int:
    """Returns how many terms the polynomials of a count have, each as often as the polynomial has quotients; those of
    infinite ones are left out."""
    polynomials = [each for _, each in count.get_pieces() if not (each.is_infty() or each.is_nan())]
    return sum(len(each.get_terms()) * each.dim(isl.dim_type.div) for each in polynomials)


def _work_at_each(part: Any) -> int:
    """Returns how much work there is at each corner of a basic set: more with quotients, for a function of sizes, and
    much more where several coordinates wrap around at a large number that has nothing to do with their steps."""
    quotients, coordinates = isl.dim_type.div, range(part.dim(isl.dim_type.set))
    work = 1 + part.dim(quotients) if part.dim(isl.dim_type.param) > 0 else 1
    for constraint in part.get_constraints():
        for place in range(part.dim(quotients)):
            window = abs(constraint.get_coefficient_val(quotients, place).to_python())
            if window > LARGE_WINDOW:
                steps = [
                    constraint.get_coefficient_val(isl.dim_type.set, at).to_python() % window for at in coordinates
                ]
                if sum(min(step, window - step) > SMALL_STEP and window % step != 0 for step in steps) > 1:
                    return work * WORK_OF_WRAPPING
    return work


def _corners(part: Any) -> int:
    """Returns how many corners a basic set may have: so many constraints meet in one as it has dimensions."""
    kinds = [kind for kind in (isl.dim_type.set, isl.dim_type.div) for _ in range(part.dim(kind))]
    places = [place for kind in (isl.dim_type.set, isl.dim_type.div) for place in range(part.dim(kind))]
    if len(kinds) <= 2:
        return 1
    together: list[tuple[set[int], int]] = []
    for constraint in part.get_constraints():
        used = {
            axis
            for axis, (kind, place) in enumerate(zip(kinds, places, strict=True))
            if constraint.involves_dims(kind, place, 1)
        }
        number = 0 if constraint.is_equality() else 1
        for other in [group for group in together if group[0] & used]:
            together.remove(other)
            used, number = used | other[0], number + other[1]
        if used:
            together.append((used, number))
    # Variables that no constraint brings together are counted apart.
    return max((math.comb(number, len(used)) for used, number in together), default=1)


def _between(space: Any, axis: int, low: Any, high: Any) -> Any:
    """Returns the points of a space whose coordinate lies between two functions of the sizes."""
    coordinate = isl.PwAff.var_on_domain(isl.LocalSpace.from_space(space), isl.dim_type.set, axis)
    return coordinate.ge_set(low.insert_domain(space)) & coordinate.le_set(high.insert_domain(space))
