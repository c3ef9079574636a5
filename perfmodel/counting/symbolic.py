"""Whole numbers in a kernel as polynomials of its sizes, coordinates and loop counters, where they are such.

A value is a `Pieces`: polynomials, each under a condition. A polynomial's atoms are names and floors of quotients.
Conditions are text in isl's notation, as isl is who decides them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from perfmodel.counting.isl_names import isl_name
from perfmodel.counting.quasipolynomial import Affine, Piece, QuasiPolynomial, Term

MOST_PIECES = 16
MOST_TERMS = 200

Bounds: TypeAlias = Mapping[str, tuple[int, int | None]]
"""The smallest and the largest value of names; None where it has no largest one."""


@dataclass(frozen=True)
class Floor:
    """floor(numerator / denominator)."""

    numerator: Polynomial
    denominator: Polynomial

    @property
    def key(self) -> str:
        return f"floor(({self.numerator})/({self.denominator}))"


Atom: TypeAlias = "str | Floor"
Monomial: TypeAlias = tuple[tuple[Atom, int], ...]


def _key(atom: Atom) -> str:
    return atom if isinstance(atom, str) else atom.key


class Polynomial:
    """A sum of integer multiples of products of atoms; immutable."""

    def __init__(self, terms: Mapping[Monomial, int]) -> None:
        self.terms: dict[Monomial, int] = {monomial: c for monomial, c in terms.items() if c}

    @cached_property
    def _items(self) -> frozenset[tuple[Monomial, int]]:
        return frozenset(self.terms.items())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Polynomial) and self._items == other._items

    def __hash__(self) -> int:
        return hash(self._items)

    def __add__(self, other: Polynomial) -> Polynomial:
        terms = dict(self.terms)
        for monomial, coefficient in other.terms.items():
            terms[monomial] = terms.get(monomial, 0) + coefficient
        return Polynomial(terms)

    def __neg__(self) -> Polynomial:
        return self.scaled(-1)

    def __sub__(self, other: Polynomial) -> Polynomial:
        return self + -other

    def __mul__(self, other: Polynomial) -> Polynomial:
        terms: dict[Monomial, int] = {}
        for left, c in self.terms.items():
            for right, d in other.terms.items():
                product = _product(left, right)
                terms[product] = terms.get(product, 0) + c * d
        return Polynomial(terms)

    def scaled(self, factor: int) -> Polynomial:
        return Polynomial({monomial: factor * c for monomial, c in self.terms.items()})

    @property
    def constant(self) -> int | None:
        """The value of a polynomial without atoms; None for others."""
        if not self.terms:
            return 0
        return self.terms.get((), None) if len(self.terms) == 1 else None

    def names(self) -> frozenset[str]:
        found: set[str] = set()
        for monomial in self.terms:
            for atom, _ in monomial:
                if isinstance(atom, str):
                    found.add(atom)
                else:
                    found |= atom.numerator.names() | atom.denominator.names()
        return frozenset(found)

    def coefficient(self, name: str) -> Polynomial | None:
        """Returns the coefficient of a name in which the polynomial is linear; None where it is not."""
        terms: dict[Monomial, int] = {}
        for monomial, c in self.terms.items():
            powers = dict(monomial)
            if name in powers:
                if powers.pop(name) != 1 or any(isinstance(a, Floor) and name in _names(a) for a in powers):
                    return None
                terms[tuple(powers.items())] = c
            elif any(isinstance(atom, Floor) and name in _names(atom) for atom in powers):
                return None
        return Polynomial(terms)

    def at(self, values: Mapping[str, int]) -> int | None:
        """Returns the value at whole numbers; None if a name has none, or a quotient is by zero."""
        total = 0
        for monomial, c in self.terms.items():
            for atom, power in monomial:
                if isinstance(atom, str):
                    known = values.get(atom)
                else:
                    above, below = atom.numerator.at(values), atom.denominator.at(values)
                    known = above // below if above is not None and below else None
                if known is None:
                    return None
                c *= known**power
            total += c
        return total

    def replaced(self, values: Mapping[str, Polynomial]) -> Polynomial:
        """Returns the polynomial with polynomials in place of names."""
        total = ZERO
        for monomial, c in self.terms.items():
            product = number(c)
            for atom, power in monomial:
                if isinstance(atom, str):
                    factor = values.get(atom, name(atom))
                else:
                    factor = quotient(atom.numerator.replaced(values), atom.denominator.replaced(values), {})
                for _ in range(power):
                    product = product * factor
            total = total + product
        return total

    def bounds(self, known: Bounds) -> tuple[int | None, int | None]:
        """Returns numbers between which the value lies, by interval arithmetic; None where there is no bound."""
        low: int | None = 0
        high: int | None = 0
        for monomial, c in self.terms.items():
            least, most = _monomial_bounds(monomial, known)
            if c < 0:
                least, most = most, least
            low = None if low is None or least is None else low + c * least
            high = None if high is None or most is None else high + c * most
        return low, high

    def isl(self) -> str | None:
        """Returns the polynomial in isl's notation; None if it is not affine."""
        parts = []
        for monomial, c in sorted(self.terms.items(), key=lambda item: str(item[0])):
            if not monomial:
                parts.append(str(c))
                continue
            (atom, power), *others = monomial
            if others or power != 1:
                return None
            if isinstance(atom, str):
                parts.append(f"{c}*{isl_name(atom)}")
            else:
                inner, divisor = atom.numerator.isl(), atom.denominator.constant
                if inner is None or divisor is None:
                    return None
                parts.append(f"{c}*floor(({inner})/{divisor})")
        return " + ".join(parts) or "0"

    def quasipolynomial(self) -> QuasiPolynomial | None:
        """Returns the polynomial as a function of sizes; None with quotients by sizes."""
        terms = []
        for monomial, c in self.terms.items():
            sizes = tuple((atom, power) for atom, power in monomial if isinstance(atom, str))
            floors = []
            for atom, power in monomial:
                if isinstance(atom, Floor):
                    affine = _affine(atom)
                    if affine is None:
                        return None
                    floors.append((affine, power))
            terms.append(Term(c, sizes, tuple(floors)))
        return QuasiPolynomial((Piece(((),), tuple(terms), 1),), str(self))

    def __str__(self) -> str:
        if not self.terms:
            return "0"
        parts = []
        for monomial, c in sorted(self.terms.items(), key=lambda item: str(item[0]), reverse=True):
            factors = [_key(atom) if power == 1 else f"{_key(atom)}^{power}" for atom, power in monomial]
            parts.append("*".join(factors if c == 1 and factors else [str(c), *factors]))
        return " + ".join(parts).replace("+ -", "- ")

    __repr__ = __str__


def coordinate(text: str) -> str:
    """Returns the name of a loop's counter as a coordinate: one that C reserves, so that no size has it."""
    return f"__{text}"


def own_coordinate(text: str) -> str:
    """Returns the name of any other coordinate, as of the grid: one that no loop's counter has, as no variable
    begins with a digit."""
    return f"__0{text}"


def is_coordinate(name_: str) -> bool:
    return name_.startswith("__")


def name(text: str) -> Polynomial:
    return Polynomial({((text, 1),): 1})


def number(value: int) -> Polynomial:
    return Polynomial({(): value})


ZERO, ONE = number(0), number(1)


def quotient(value: Polynomial, divisor: Polynomial, known: Bounds) -> Polynomial:
    """Returns floor(value / divisor), simplified; the divisor is positive."""
    by = divisor.constant
    if by is None:
        return _symbolic_quotient(value, divisor, known)
    whole = Polynomial({m: c // by for m, c in value.terms.items() if c % by == 0 and m})
    rest = Polynomial({m: c for m, c in value.terms.items() if c % by or not m})
    constant = rest.terms.get((), 0)
    whole, rest = whole + number(constant // by), rest - number(constant - constant % by)
    low, high = rest.bounds(known)
    if low is not None and high is not None and low // by == high // by:
        return whole + number(low // by)
    rest, by = _shortened(rest, by, known)
    if len(rest.terms) == 1 and (atom := _single(rest)) is not None and isinstance(atom, Floor):
        inner = atom.denominator.constant  # floor(floor(i / 4) / 2) is floor(i / 8)
        if inner is not None:
            return whole + quotient(atom.numerator, number(inner * by), known)
    return whole + Polynomial({((Floor(rest, number(by)), 1),): 1})


def _shortened(value: Polynomial, by: int, known: Bounds) -> tuple[Polynomial, int]:
    """Returns a value and a divisor with the same quotient, without what is too small to change it.

    floor((16 i + j) / 64) is floor(i / 4) for j from 0 to 15, and floor((4 i + 3) / 8) is floor(i / 2).
    """
    for step in sorted({math.gcd(by, c) for m, c in value.terms.items() if m}, reverse=True):
        low, high = Polynomial({m: c for m, c in value.terms.items() if c % step or not m}).bounds(known)
        if step > 1 and low is not None and high is not None and low // step == high // step:
            kept = Polynomial({m: c // step for m, c in value.terms.items() if c % step == 0 and m})
            return kept + number(low // step), by // step
    return value, by


def remainder(value: Polynomial, divisor: Polynomial, known: Bounds) -> Polynomial:
    return value - divisor * quotient(value, divisor, known)


def _symbolic_quotient(value: Polynomial, divisor: Polynomial, known: Bounds) -> Polynomial:
    if value == divisor:
        return ONE
    whole = ZERO
    if len(divisor.terms) == 1 and 1 in divisor.terms.values():  # (i n + j) / n is i + j / n
        (monomial,) = divisor.terms
        rest: dict[Monomial, int] = {}
        for term, c in value.terms.items():
            shorter = quotient_of(term, monomial)
            if shorter is None:
                rest[term] = c
            else:
                whole = whole + Polynomial({shorter: c})
        value = Polynomial(rest)
    if not value.terms:
        return whole
    return whole + Polynomial({((Floor(value, divisor), 1),): 1})


def quotient_of(monomial: Monomial, by: Monomial) -> Monomial | None:
    """Returns a product without the factors of another; None if it has not got them."""
    powers = dict(monomial)
    for atom, power in by:
        if powers.get(atom, 0) < power:
            return None
        powers[atom] -= power
    return tuple((atom, power) for atom, power in powers.items() if power)


def _single(value: Polynomial) -> Atom | None:
    ((monomial, c),) = value.terms.items()
    return monomial[0][0] if c == 1 and len(monomial) == 1 and monomial[0][1] == 1 else None


def _names(floor: Floor) -> frozenset[str]:
    return floor.numerator.names() | floor.denominator.names()


def _product(left: Monomial, right: Monomial) -> Monomial:
    powers: dict[Atom, int] = dict(left)
    for atom, power in right:
        powers[atom] = powers.get(atom, 0) + power
    return tuple(sorted(powers.items(), key=lambda item: _key(item[0])))


def _monomial_bounds(monomial: Monomial, known: Bounds) -> tuple[int | None, int | None]:
    low, high = 1, 1
    for atom, power in monomial:
        least, most = _atom_bounds(atom, known)
        if least is None or least < 0:
            if len(monomial) == 1 and power == 1:
                return least, most
            return None, None
        low *= least**power
        if most is None or high is None:
            high = None  # type: ignore[assignment]
        else:
            high *= most**power
    return low, high


def _atom_bounds(atom: Atom, known: Bounds) -> tuple[int | None, int | None]:
    if isinstance(atom, str):
        return known.get(atom, (None, None))
    low, high = atom.numerator.bounds(known)
    by = atom.denominator.constant
    if by is None:
        return (0, high) if low is not None and low >= 0 else (None, None)
    return None if low is None else low // by, None if high is None else high // by


def _affine(floor: Floor) -> Affine | None:
    divisor = floor.denominator.constant
    if divisor is None:
        return None
    constant, sizes, floors = 0, [], []
    for monomial, c in floor.numerator.terms.items():
        if not monomial:
            constant = c
        elif len(monomial) > 1 or monomial[0][1] != 1:
            return None
        elif isinstance(atom := monomial[0][0], str):
            sizes.append((atom, c))
        else:
            inner = _affine(atom)
            if inner is None:
                return None
            floors.append((inner, c))
    return Affine(constant, tuple(sizes), tuple(floors), divisor)


# --- values by pieces


@dataclass(frozen=True)
class Pieces:
    """Polynomials under conditions that exclude each other: pairs of isl text and polynomial."""

    pieces: tuple[tuple[str, Polynomial], ...]

    @property
    def single(self) -> Polynomial | None:
        return self.pieces[0][1] if len(self.pieces) == 1 else None

    def map(self, function: Callable[[Polynomial], Polynomial]) -> Pieces:
        return merged((condition, function(value)) for condition, value in self.pieces)

    def names(self) -> frozenset[str]:
        return frozenset().union(*(value.names() for _, value in self.pieces))


EVERYWHERE, NOWHERE = "true", "false"


def plain(value: Polynomial) -> Pieces:
    return Pieces(((EVERYWHERE, value),))


def both(left: str, right: str) -> str:
    if NOWHERE in (left, right):
        return NOWHERE
    if left == EVERYWHERE:
        return right
    return left if right == EVERYWHERE else f"({left}) and ({right})"


def either(left: str, right: str) -> str:
    if EVERYWHERE in (left, right):
        return EVERYWHERE
    if left == NOWHERE:
        return right
    return left if right == NOWHERE else f"({left}) or ({right})"


def opposite(condition: str) -> str:
    if condition in (EVERYWHERE, NOWHERE):
        return NOWHERE if condition == EVERYWHERE else EVERYWHERE
    return f"not ({condition})"


def merged(pieces: Iterable[tuple[str, Polynomial]]) -> Pieces:
    """Joins the pieces of one value: those of the same polynomial become one."""
    by_value: dict[Polynomial, str] = {}
    for condition, value in pieces:
        by_value[value] = either(by_value[value], condition) if value in by_value else condition
    if len(by_value) == 1:
        return plain(next(iter(by_value)))
    return Pieces(tuple((condition, value) for value, condition in by_value.items()))


def combined(
    left: Pieces, right: Pieces, function: Callable[[Polynomial, Polynomial], Polynomial | None]
) -> Pieces | None:
    """Applies a function to two values; returns None where it has no result, or too many pieces."""
    found = []
    for condition, a in left.pieces:
        for other, b in right.pieces:
            value = function(a, b)
            if value is None or len(value.terms) > MOST_TERMS:
                return None
            found.append((both(condition, other), value))
    return merged(found) if len(found) <= MOST_PIECES else None


def chosen(condition: str, then: Pieces, otherwise: Pieces) -> Pieces | None:
    """Returns a value that is `then` where the condition holds, and `otherwise` elsewhere."""
    if then == otherwise:
        return then
    found = [(both(condition, c), v) for c, v in then.pieces]
    found += [(both(opposite(condition), c), v) for c, v in otherwise.pieces]
    return merged(found) if len(found) <= MOST_PIECES else None


def divided_by_size(value: Polynomial) -> tuple[Polynomial, Polynomial, Polynomial] | None:
    """Returns a product of sizes, how many times it is in a value, and the rest; None where no coordinate is multiplied
    with a size."""
    for product in value.terms:
        size = tuple((atom, power) for atom, power in product if isinstance(atom, str) and not is_coordinate(atom))
        if size and len(size) < len(product):
            break
    else:
        return None
    times = {q: c for m, c in value.terms.items() if (q := quotient_of(m, size)) is not None}
    rest = Polynomial({m: c for m, c in value.terms.items() if quotient_of(m, size) is None})
    by = math.gcd(*times.values())
    return Polynomial({size: by}), Polynomial({m: c // by for m, c in times.items()}), rest


def compared(operator: str, left: Pieces, right: Pieces) -> str | None:
    """Returns the condition under which two values compare so; None where isl cannot decide it."""
    sign = {"==": "=", "!=": "!="}.get(operator, operator)
    found = []
    for condition, a in left.pieces:
        for other, b in right.pieces:
            difference = a - b
            if (known := difference.constant) is not None:
                text = EVERYWHERE if _holds(operator, known) else NOWHERE
            else:
                affine = difference.isl()
                if affine is None:
                    return None
                text = f"{affine} {sign} 0"
            found.append(both(both(condition, other), text))
    result = found[0]
    for text in found[1:]:
        result = either(result, text)
    return result


def _holds(operator: str, difference: int) -> bool:
    return {
        "<": difference < 0,
        "<=": difference <= 0,
        ">": difference > 0,
        ">=": difference >= 0,
        "==": difference == 0,
        "!=": difference != 0,
    }[operator]
