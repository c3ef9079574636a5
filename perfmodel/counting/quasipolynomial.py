"""Piecewise quasi-polynomials of a kernel's sizes, evaluated for whole arrays of sizes at once.

A count is exact wherever a float64 can hold it: pieces are selected by integer arithmetic, floors are integer
divisions, and where a polynomial's terms are too large for float64 they are added as whole numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perfmodel.basics.errors import CountingError
from perfmodel.counting.evaluation import Block, blockwise, once_per_block, power

_WRAP = 1 << 64


@dataclass(frozen=True)
class Affine:
    """constant + sum of coefficient * size + sum of coefficient * floor(affine), over a common denominator."""

    constant: int
    sizes: tuple[tuple[str, int], ...]
    floors: tuple[tuple[Affine, int], ...]
    denominator: int

    def numerator(self, block: Block) -> NDArray[np.int64]:
        total = np.asarray(self.constant, dtype=np.int64)
        for name, coefficient in self.sizes:
            total = total + coefficient * block[name]
        for inner, coefficient in self.floors:
            total = total + coefficient * inner.floor(block)
        return total

    def at(self, sizes: Mapping[str, int]) -> int:
        """Returns the numerator at one number for each size."""
        floors = sum(coefficient * (inner.at(sizes) // inner.denominator) for inner, coefficient in self.floors)
        return self.constant + sum(coefficient * sizes[name] for name, coefficient in self.sizes) + floors

    def __str__(self) -> str:
        """Returns the numerator as Python text."""
        parts = [f"{c} * {name}" for name, c in self.sizes]
        parts += [f"{c} * (({inner}) // {inner.denominator})" for inner, c in self.floors]
        return " + ".join([*parts, str(self.constant)])

    @once_per_block
    def floor(self, block: Block) -> NDArray[np.int64]:
        return np.floor_divide(self.numerator(block), self.denominator)

    @once_per_block
    def power(self, block: Block, exponent: int, dtype: type[Any]) -> NDArray[Any]:
        """Returns the floor to a positive power."""
        return power(self.floor(block).astype(dtype), exponent)


@dataclass(frozen=True)
class Constraint:
    """affine == 0 or affine >= 0."""

    affine: Affine
    is_equality: bool

    def __str__(self) -> str:
        return f"{self.affine} {'==' if self.is_equality else '>='} 0"

    def holds_at(self, sizes: Mapping[str, int]) -> bool:
        value = self.affine.at(sizes)
        return value == 0 if self.is_equality else value >= 0

    @once_per_block
    def holds(self, block: Block) -> NDArray[np.bool_]:
        value = self.affine.numerator(block)
        return np.asarray(value == 0 if self.is_equality else value >= 0)


@dataclass(frozen=True)
class Term:
    """coefficient * product of size**exponent * product of floor(affine)**exponent, with positive exponents."""

    coefficient: int
    sizes: tuple[tuple[str, int], ...]
    floors: tuple[tuple[Affine, int], ...]

    def value(self, block: Block, dtype: type[Any]) -> NDArray[Any]:
        """Returns the term in float64, exactly with the dtype `object`, or modulo 2**64 with int64."""
        coefficient = self.coefficient
        if dtype is np.int64:
            coefficient = (coefficient + _WRAP // 2) % _WRAP - _WRAP // 2
        product = np.asarray(coefficient, dtype=dtype)
        for name, exponent in self.sizes:
            product = product * block.power(name, exponent, dtype)
        for inner, exponent in self.floors:
            product = product * inner.power(block, exponent, dtype)
        return np.asarray(product, dtype=dtype)


@dataclass(frozen=True)
class Piece:
    """A polynomial and its domain: any of several conjunctions of constraints."""

    domain: tuple[tuple[Constraint, ...], ...]
    terms: tuple[Term, ...]
    denominator: int

    def holds(self, block: Block) -> NDArray[np.bool_]:
        return _holds(self.domain, block)

    def value(self, block: Block, inside: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Returns the polynomial at the sizes, right only where they are inside its domain."""
        with np.errstate(over="ignore", invalid="ignore"):
            terms = [term.value(block, np.float64) for term in self.terms]
            total = np.asarray(sum(terms), dtype=np.float64)
            magnitude = np.abs(total) if len(terms) == 1 else np.asarray(sum(map(np.abs, terms)), dtype=np.float64)
            value = total / self.denominator if self.denominator != 1 else total
            if magnitude.max(initial=0.0) < 2.0**53:
                return value
            # Barvinok's polynomials can have terms of 1e40 that cancel to a small count.
            size = np.abs(total)
            rounded = (size >= 2.0**53 * self.denominator) & (size >= magnitude / 2**10)
            inexact = inside & (magnitude >= 2.0**53) & ~rounded
            if inexact.all():
                return self.exact(block, total, magnitude)
            if inexact.any():
                inexact = np.broadcast_to(inexact, block.shape)
                value = np.array(np.broadcast_to(value, block.shape))
                total, magnitude = (np.broadcast_to(a, block.shape)[inexact] for a in (total, magnitude))
                value[inexact] = self.exact(block.where(inexact), total, magnitude)
        return value

    def exact(self, block: Block, total: NDArray[np.float64], magnitude: NDArray[np.float64]) -> NDArray[np.float64]:
        """Returns the polynomial in whole numbers, rounded only at the end.

        Args:
            total, magnitude: the sums of the terms and of their absolute values, as float64 gives them.
        """
        if self.denominator >= 2**62:
            return self._unbounded(block)
        size = np.abs(total)
        # Where the error of `total` is far below 2**64, and the quotient fits into int64 or needs no more than float64.
        modular = (magnitude < 2.0**100) & ((size < 2.0**62) | (size >= 2.0**53 * self.denominator))
        if modular.all():
            return self._modular(block, total)
        modular = np.broadcast_to(modular, block.shape)
        result = np.empty(block.shape)
        result[modular] = self._modular(block.where(modular), np.broadcast_to(total, block.shape)[modular])
        result[~modular] = self._unbounded(block.where(~modular))
        return result

    def _unbounded(self, block: Block) -> NDArray[np.float64]:
        numerator = np.asarray(sum(term.value(block, object) for term in self.terms), dtype=object)
        return np.asarray(numerator / self.denominator, dtype=np.float64)

    def _modular(self, block: Block, total: NDArray[np.float64]) -> NDArray[np.float64]:
        """Returns the quotient, from the sum modulo 2**64, which is right however large the terms are, and its
        estimate."""
        wrapped = np.asarray(sum(term.value(block, np.int64) for term in self.terms))
        laps = np.rint((total - wrapped) / 2.0**64)
        # Statistics give counts that are no whole numbers.
        quotient, remainder = np.divmod(wrapped, self.denominator)
        small = quotient + remainder / self.denominator
        return np.where(laps == 0, small, (wrapped + laps * 2.0**64) / self.denominator)


@dataclass(frozen=True)
class QuasiPolynomial:
    """A count as a function of sizes; zero outside all its pieces.

    Attributes:
        pieces: disjoint.
        text: the same in isl's notation, for people.
    """

    pieces: tuple[Piece, ...]
    text: str

    def __call__(self, sizes: Mapping[str, ArrayLike]) -> NDArray[np.float64]:
        """Returns the count at the sizes: an array of the sizes' common shape, or one that broadcasts to it for a
        `Block`."""
        if not sizes and not isinstance(sizes, Block) and self._number is not None:
            return np.asarray(self._number, dtype=np.float64)
        return sizes.value_of(self) if isinstance(sizes, Block) else blockwise([self.value], sizes)[0]

    @property
    def is_zero(self) -> bool:
        """True where it is plain to see that it is zero for all sizes."""
        return not any(term.coefficient for piece in self.pieces for term in piece.terms)

    @cached_property
    def _number(self) -> float | None:
        """The number that it is for all sizes; None where that is not plain to see."""
        if len(self.pieces) != 1 or self.pieces[0].domain != ((),) or len(self.pieces[0].terms) != 1:
            return None
        (term,), denominator = self.pieces[0].terms, self.pieces[0].denominator
        is_small = abs(term.coefficient) < 2**53 and denominator < 2**53
        return term.coefficient / denominator if is_small and not term.sizes and not term.floors else None

    @once_per_block
    def value(self, block: Block) -> NDArray[np.float64]:
        result = np.asarray(0.0)
        for piece in self.pieces:
            inside = piece.holds(block)
            if inside.all():
                return piece.value(block, inside)
            if inside.any():
                result = np.where(inside, piece.value(block, inside), result)
        return result

    def scaled(self, times: float) -> QuasiPolynomial:
        """Returns the count times a number, to six digits behind the point."""
        exact = Fraction(times).limit_denominator(10**6)
        pieces = tuple(
            Piece(
                piece.domain,
                tuple(Term(term.coefficient * exact.numerator, term.sizes, term.floors) for term in piece.terms),
                piece.denominator * exact.denominator,
            )
            for piece in self.pieces
        )
        return QuasiPolynomial(pieces, f"{exact} * ({self.text})")

    def __str__(self) -> str:
        return self.text


# Blocks remember values by object, so counts share their quotients and conditions.
_affine = lru_cache(maxsize=4096)(Affine)
_constraint = lru_cache(maxsize=4096)(Constraint)


def from_isl(count: Any) -> QuasiPolynomial:
    """Makes a count of an islpy PwQPolynomial over parameters only.

    Raises:
        CountingError: if the count is infinite (an unbounded loop).
    """
    pieces = tuple(_piece(domain, polynomial) for domain, polynomial in count.get_pieces())
    return QuasiPolynomial(pieces, _readable(str(count)))


def constraints(domain: Any) -> tuple[tuple[Constraint, ...], ...]:
    """Returns an islpy Set over parameters only as a disjunction of conjunctions."""
    return tuple(
        tuple(_constraint(affine(c.get_aff()), c.is_equality()) for c in basic.get_constraints())
        for basic in domain.compute_divs().get_basic_sets()
    )


def holds(domain: tuple[tuple[Constraint, ...], ...], sizes: Mapping[str, ArrayLike]) -> NDArray[np.bool_]:
    """Returns a mask of the sizes in the domain: an array that broadcasts to the sizes' common shape."""
    if all(isinstance(size, int) for size in sizes.values()):
        numbers = cast(Mapping[str, int], sizes)
        return np.asarray(any(all(each.holds_at(numbers) for each in conjunction) for conjunction in domain))
    return _holds(domain, Block(sizes))


def _holds(domain: tuple[tuple[Constraint, ...], ...], block: Block) -> NDArray[np.bool_]:
    result = np.asarray(False)
    for conjunction in domain:
        inside = np.asarray(True)
        for constraint in conjunction:
            inside = inside & constraint.holds(block)
        result = result | inside
    return result


def _readable(text: str) -> str:
    """Returns isl's ``[n] -> { n^2 : n > 0 }`` without the braces and the list of sizes."""
    return text[text.index("{") + 1 : text.rindex("}")].strip()


def _piece(domain: Any, polynomial: Any) -> Piece:
    import islpy as isl  # slow to import

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
    """Makes an `Affine` of an islpy Aff over parameters (and floors of such)."""
    import islpy as isl  # slow to import

    param, div = isl.dim_type.param, isl.dim_type.div
    constant = _fraction(aff.get_constant_val())
    sizes = [(aff.get_dim_name(param, i), _fraction(aff.get_coefficient_val(param, i))) for i in range(aff.dim(param))]
    floors = [(i, _fraction(aff.get_coefficient_val(div, i))) for i in range(aff.dim(div))]
    denominator = math.lcm(
        constant.denominator, *(c.denominator for _, c in sizes), *(c.denominator for _, c in floors)
    )
    return _affine(
        int(constant * denominator),
        tuple((name, int(c * denominator)) for name, c in sizes if c),
        tuple((affine(aff.get_div(i)), int(c * denominator)) for i, c in floors if c),
        denominator,
    )


def _fraction(value: Any) -> Fraction:
    above, _, below = str(value).partition("/")
    return Fraction(int(above), int(below or 1))
