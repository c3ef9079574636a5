"""Sizes, strides, indices and other whole-number expressions of Loopy's as polynomials."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from typing import Any

from pymbolic.primitives import FloorDiv, Power, Product, Remainder, Sum, Variable

from perfmodel.counting.quasipolynomial import QuasiPolynomial
from perfmodel.counting.symbolic import ONE, Bounds, Polynomial, name, number, quotient, remainder


def polynomial(expression: Any) -> QuasiPolynomial | None:
    """Returns a pymbolic expression as a polynomial of sizes and their quotients; None where it is none."""
    found = symbolic(expression, {})
    counted = None if found is None else found.quasipolynomial()
    return None if counted is None else replace(counted, text=str(expression))


def symbolic(expression: Any, bounds: Bounds) -> Polynomial | None:
    """Returns a pymbolic expression as a polynomial; None where it is none of its names and their quotients.

    Args:
        bounds: of the names, by which quotients and remainders become simpler; divisors are taken as positive.
    """
    match expression:
        case int() | bool():
            return number(int(expression))
        case Variable(name=variable):
            return name(variable)
        case Sum(children=children):
            return _joined(children, bounds, operator.add)
        case Product(children=children):
            return _joined(children, bounds, operator.mul)
        case Power(base=base, exponent=int() as exponent) if exponent >= 0:
            return _joined([base] * exponent, bounds, operator.mul)
        case FloorDiv(numerator=above, denominator=below):
            return _divided(above, below, bounds, quotient)
        case Remainder(numerator=above, denominator=below):
            return _divided(above, below, bounds, remainder)
    if hasattr(expression, "__index__"):  # numpy's integers
        return number(operator.index(expression))
    return None


def _joined(children: Any, bounds: Bounds, join: Callable[[Polynomial, Polynomial], Polynomial]) -> Polynomial | None:
    parts = [symbolic(child, bounds) for child in children]
    known = [part for part in parts if part is not None]
    return reduce(join, known or [ONE]) if len(known) == len(parts) else None


def _divided(
    above: Any, below: Any, bounds: Bounds, divide: Callable[[Polynomial, Polynomial, Bounds], Polynomial]
) -> Polynomial | None:
    value, divisor = symbolic(above, bounds), symbolic(below, bounds)
    if value is None or divisor is None or (divisor.constant is not None and divisor.constant <= 0):
        return None
    return divide(value, divisor, bounds)
