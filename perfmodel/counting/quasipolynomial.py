"""Piecewise quasi-polynomials of a kernel's sizes, evaluated for whole arrays of sizes at once.

A count is exact wherever a float64 can hold it: pieces are selected by integer arithmetic, floors are integer
divisions, and where a polynomial's terms are too large for float64 they are added as Python's integers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.errors import CountingError

Sizes = Mapping[str, Any]


@dataclass(frozen=True)
class Affine:
    """constant + sum of coefficient * size + sum of coefficient * floor(affine), over a common denominator."""

    constant: int
    sizes: tuple[tuple[str, int], ...]
    floors: tuple[tuple[Affine, int], ...]
    denominator: int

    def numerator(self, sizes: Sizes) -> NDArray[np.int64]:
        total = np.asarray(self.constant, dtype=np.int64)
        for name, coefficient in self.sizes:
            total = total + coefficient * np.asarray(sizes[name], dtype=np.int64)
        for inner, coefficient in self.floors:
            total = total + coefficient * inner.floor(sizes)
        return total

    def floor(self, sizes: Sizes) -> NDArray[np.int64]:
        return np.floor_divide(self.numerator(sizes), self.denominator)


@dataclass(frozen=True)
class Constraint:
    """affine == 0 or affine >= 0."""

    affine: Affine
    is_equality: bool

    def holds(self, sizes: Sizes) -> NDArray[np.bool_]:
        value = self.affine.numerator(sizes)
        return value == 0 if self.is_equality else value >= 0


@dataclass(frozen=True)
class Term:
    """coefficient * product of size**exponent * product of floor(affine)**exponent."""

    coefficient: int
    sizes: tuple[tuple[str, int], ...]
    floors: tuple[tuple[Affine, int], ...]

    def value(self, sizes: Sizes, dtype: type[Any]) -> NDArray[Any]:
        """The term in float64, or exactly with the dtype `object`."""
        product = np.asarray(self.coefficient, dtype=dtype)
        for name, exponent in self.sizes:
            product = product * np.asarray(sizes[name]).astype(dtype) ** exponent
        for inner, exponent in self.floors:
            product = product * inner.floor(sizes).astype(dtype) ** exponent
        return np.asarray(product, dtype=dtype)


@dataclass(frozen=True)
class Piece:
    """A polynomial and where it holds: any of several conjunctions of constraints."""

    domain: tuple[tuple[Constraint, ...], ...]
    terms: tuple[Term, ...]
    denominator: int

    def value(self, sizes: Sizes) -> NDArray[np.float64]:
        terms = [term.value(sizes, np.float64) for term in self.terms]
        total, magnitude = np.asarray(sum(terms)), np.asarray(sum(map(np.abs, terms)))
        # Barvinok's polynomials can have terms of 1e40 that cancel to a small count.
        cancelled = (np.abs(total) < 2.0**53 * self.denominator) | (np.abs(total) < magnitude / 2**10)
        inexact = (magnitude >= 2.0**53) & cancelled
        value: NDArray[np.float64] = total / self.denominator
        return np.where(inexact, self.exact(sizes), value) if inexact.any() else value

    def exact(self, sizes: Sizes) -> NDArray[np.float64]:
        numerator = np.asarray(sum(term.value(sizes, object) for term in self.terms), dtype=object)
        return np.asarray(numerator // self.denominator, dtype=np.float64)


@dataclass(frozen=True)
class QuasiPolynomial:
    """A count as a function of sizes; zero outside all its pieces.

    Attributes:
        pieces: disjoint.
        text: the same in isl's notation, for people.
    """

    pieces: tuple[Piece, ...]
    text: str

    def __call__(self, sizes: Sizes) -> NDArray[np.float64]:
        """The count at the sizes: an array of the sizes' common shape."""
        if len(self.pieces) == 1 and self.pieces[0].domain == ((),):
            return self.pieces[0].value(sizes)
        total = np.asarray(0.0)
        for piece in self.pieces:
            total = total + np.where(holds(piece.domain, sizes), piece.value(sizes), 0.0)
        return total

    def __str__(self) -> str:
        return self.text


def from_isl(count: Any) -> QuasiPolynomial:
    """An islpy PwQPolynomial over parameters only.

    Raises:
        CountingError: if the count is infinite (an unbounded loop).
    """
    pieces = tuple(_piece(domain, polynomial) for domain, polynomial in count.get_pieces())
    return QuasiPolynomial(pieces, _readable(str(count)))


def constraints(domain: Any) -> tuple[tuple[Constraint, ...], ...]:
    """An islpy Set over parameters only, as a disjunction of conjunctions."""
    return tuple(
        tuple(Constraint(affine(c.get_aff()), c.is_equality()) for c in basic.get_constraints())
        for basic in domain.compute_divs().get_basic_sets()
    )


def holds(domain: tuple[tuple[Constraint, ...], ...], sizes: Sizes) -> NDArray[np.bool_]:
    """Where the sizes lie in the domain: an array of the sizes' common shape."""
    result = np.asarray(False)
    for conjunction in domain:
        inside = np.asarray(True)
        for constraint in conjunction:
            inside = inside & constraint.holds(sizes)
        result = result | inside
    return result


def _readable(text: str) -> str:
    """isl's ``[n] -> { n^2 : n > 0 }`` without the braces and the list of sizes."""
    return text[text.index("{") + 1 : text.rindex("}")].strip()


def _piece(domain: Any, polynomial: Any) -> Piece:
    import islpy as isl

    if polynomial.is_infty() or polynomial.is_nan():
        raise CountingError("a loop's domain has no bound, so that its executions cannot be counted; bound the loop")
    param, div = isl.dim_type.param, isl.dim_type.div
    raw = []
    for term in polynomial.get_terms():
        sizes = _exponents(term, param, polynomial.get_domain_space())
        floors = tuple(
            (affine(term.get_div(i)), exponent) for i in range(term.dim(div)) if (exponent := term.get_exp(div, i)) != 0
        )
        raw.append((_fraction(term.get_coefficient_val()), sizes, floors))
    denominator = math.lcm(*(c.denominator for c, _, _ in raw)) if raw else 1
    terms = tuple(Term(int(c * denominator), sizes, floors) for c, sizes, floors in raw)
    return Piece(constraints(domain), terms, denominator)


def _exponents(term: Any, kind: Any, space: Any) -> tuple[tuple[str, int], ...]:
    return tuple(
        (space.get_dim_name(kind, i), exponent)
        for i in range(term.dim(kind))
        if (exponent := term.get_exp(kind, i)) != 0
    )


def affine(aff: Any) -> Affine:
    """An islpy Aff over parameters (and floors of such)."""
    import islpy as isl

    param, div = isl.dim_type.param, isl.dim_type.div
    constant = _fraction(aff.get_constant_val())
    sizes = [(aff.get_dim_name(param, i), _fraction(aff.get_coefficient_val(param, i))) for i in range(aff.dim(param))]
    floors = [(i, _fraction(aff.get_coefficient_val(div, i))) for i in range(aff.dim(div))]
    denominator = math.lcm(
        constant.denominator, *(c.denominator for _, c in sizes), *(c.denominator for _, c in floors)
    )
    return Affine(
        int(constant * denominator),
        tuple((name, int(c * denominator)) for name, c in sizes if c),
        tuple((affine(aff.get_div(i)), int(c * denominator)) for i, c in floors if c),
        denominator,
    )


def _fraction(value: Any) -> Fraction:
    return Fraction(str(value))
