"""Sizes, strides and other whole-number expressions of Loopy's, as quasi-polynomials of the sizes."""

from __future__ import annotations

import operator
from collections import Counter
from functools import reduce
from typing import Any

from pymbolic.primitives import FloorDiv, Power, Product, Sum, Variable

from perfmodel.counting.quasipolynomial import Affine, Piece, QuasiPolynomial, Term

# A product of powers of sizes and of floors, and the polynomial as coefficients of such products.
_Monomial = tuple[tuple[tuple[str, int], ...], tuple[tuple[Affine, int], ...]]
_Polynomial = Counter[_Monomial]
_ONE: _Monomial = ((), ())


def polynomial(expression: Any, text: str | None = None) -> QuasiPolynomial | None:
    """A pymbolic expression in the sizes, or None where it is no polynomial of them and their quotients."""
    terms = _expanded(expression)
    if terms is None:
        return None
    found = tuple(Term(c, sizes, floors) for (sizes, floors), c in terms.items() if c)
    return QuasiPolynomial((Piece(((),), found, 1),), text or str(expression))


def _expanded(expression: Any) -> _Polynomial | None:
    match expression:
        case int() | bool():
            return Counter({_ONE: int(expression)})
        case Variable(name=name):
            return Counter({(((name, 1),), ()): 1})
        case Sum(children=children):
            return _joined(children, _sum)
        case Product(children=children):
            return _joined(children, _product)
        case Power(base=base, exponent=int() as exponent) if exponent >= 0:
            return _joined([base] * exponent or [1], _product)
        case FloorDiv(numerator=numerator, denominator=int() as denominator):
            return _floor(_expanded(numerator), denominator)
    if hasattr(expression, "__index__"):  # numpy's integers
        return Counter({_ONE: operator.index(expression)})
    return None


def _joined(children: Any, join: Any) -> _Polynomial | None:
    parts = [_expanded(child) for child in children]
    return None if None in parts else reduce(join, parts)


def _sum(left: _Polynomial, right: _Polynomial) -> _Polynomial:
    total = Counter(left)
    for monomial, coefficient in right.items():
        total[monomial] += coefficient
    return total


def _product(left: _Polynomial, right: _Polynomial) -> _Polynomial:
    total: _Polynomial = Counter()
    for (sizes, floors), coefficient in left.items():
        for (other_sizes, other_floors), other in right.items():
            total[_powers(sizes, other_sizes), _powers(floors, other_floors)] += coefficient * other
    return total


def _powers(left: Any, right: Any) -> Any:
    exponents: Counter[Any] = Counter(dict(left))
    for base, exponent in right:
        exponents[base] += exponent
    return tuple(sorted(exponents.items(), key=str))


def _floor(numerator: _Polynomial | None, denominator: int) -> _Polynomial | None:
    if numerator is None or denominator <= 0:
        return None
    constant, sizes = 0, []
    for (powers, floors), coefficient in numerator.items():
        if not powers and not floors:
            constant = coefficient
        elif not floors and len(powers) == 1 and powers[0][1] == 1:
            sizes.append((powers[0][0], coefficient))
        else:
            return None
    return Counter({((), ((Affine(constant, tuple(sizes), (), denominator), 1),)): 1})
