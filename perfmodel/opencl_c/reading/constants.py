"""Constant expressions computed as a device would: for tables in constant memory."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from perfmodel.opencl_c import syntax as sx
from perfmodel.opencl_c import types as ts

_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
}


def fold(expression: sx.Expression) -> sx.Expression:
    """`expression` with what is constant in it computed; the rest stays."""
    if isinstance(expression, sx.VectorLiteral):
        return replace(expression, parts=tuple(map(fold, expression.parts)))
    if isinstance(expression, sx.Convert):
        expression = replace(expression, operand=fold(expression.operand))
        value = _converted(expression)
    elif isinstance(expression, sx.Unary):
        expression = replace(expression, operand=fold(expression.operand))
        value = _negated(expression)
    elif isinstance(expression, sx.Binary):
        expression = replace(expression, left=fold(expression.left), right=fold(expression.right))
        value = _combined(expression)
    else:
        return expression
    return expression if value is None else sx.Constant(expression.type, expression.place, value)


def rounded(value: float, type_: ts.Type) -> float:
    """The number of the type that is nearest."""
    if not isinstance(type_, ts.Scalar) or not type_.is_float:
        return value
    with np.errstate(all="ignore"):
        return float(type_.numpy.type(value))


def _converted(expression: sx.Convert) -> int | float | None:
    if not isinstance(expression.operand, sx.Constant) or not isinstance(expression.type, ts.Scalar):
        return None
    value = expression.operand.value
    if expression.type.is_float:
        return rounded(value, expression.type)
    if expression.type is ts.BOOL:
        return int(value != 0)
    whole = int(value) if np.isfinite(value) else None
    return whole if whole is None or isinstance(value, float) else _wrapped(whole, expression.type)


def _negated(expression: sx.Unary) -> int | float | None:
    if not isinstance(expression.operand, sx.Constant) or not isinstance(expression.type, ts.Scalar):
        return None
    value = expression.operand.value
    if expression.operator == "-":
        return -value if isinstance(value, float) else _wrapped(-value, expression.type)
    if expression.operator == "~" and isinstance(value, int):
        return _wrapped(~value, expression.type)
    return int(not value) if expression.operator == "!" else None


def _combined(expression: sx.Binary) -> int | float | None:
    left, right, type_ = expression.left, expression.right, expression.type
    if not (isinstance(left, sx.Constant) and isinstance(right, sx.Constant) and isinstance(type_, ts.Scalar)):
        return None
    a, b, sign = left.value, right.value, expression.operator
    if isinstance(a, int) and isinstance(b, int):
        if sign in _ARITHMETIC:
            return _wrapped(_ARITHMETIC[sign](a, b), type_)
        if sign in ("<<", ">>"):
            count = b % (8 * type_.size)
            return _wrapped(a << count if sign == "<<" else a >> count, type_)
        if sign in "/%" and b:
            quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
            return _wrapped(quotient if sign == "/" else a - b * quotient, type_)
        return None
    if not type_.is_float or sign not in ("+", "-", "*", "/"):
        return None
    number = type_.numpy.type
    with np.errstate(all="ignore"):
        if sign == "/":
            return float(np.divide(number(a), number(b)))
        return float(_ARITHMETIC[sign](number(a), number(b)))


def _wrapped(value: int, type_: ts.Type) -> int:
    if not isinstance(type_, ts.Scalar) or type_.is_float:
        return value
    bits = 8 * type_.size
    value %= 1 << bits
    return value - (1 << bits) if type_.is_signed and value >> (bits - 1) else value
