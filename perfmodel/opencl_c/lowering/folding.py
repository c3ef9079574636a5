"""Lowered expressions that are known before anything runs, computed."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import syntax as syn
from perfmodel.opencl_c.types import BOOL, LONG, Pointer, Scalar, Type, Vector

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_INTEGERS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
}


def converted(value: low.Expression, type_: Type) -> low.Expression:
    """The value in another type; itself where it has it already."""
    if value.type == type_:
        return value
    if isinstance(type_, Pointer):
        if isinstance(value, low.Constant):
            return low.Constant(type_, value.value)
        return low.Reinterpret(type_, value if isinstance(value.type, Pointer) else converted(value, LONG))
    if isinstance(value.type, Pointer):
        return converted(low.Reinterpret(LONG, value), type_)
    if isinstance(value, low.Constant):
        element = type_.element if isinstance(type_, Vector) else type_
        known = number_as(value.value, element) if isinstance(element, Scalar) else None
        if known is not None:
            return low.Constant(type_, known)
    return low.Convert(type_, value)


def number_as(value: low.Number, scalar: Scalar) -> low.Number | None:
    """A number as C converts it; None where C leaves it open."""
    if scalar == BOOL:
        return int(value != 0)
    if scalar.is_float:
        with np.errstate(all="ignore"):
            return float(scalar.numpy.type(value))
    if not math.isfinite(value):
        return None
    bits = 8 * scalar.size
    whole = int(value) & ((1 << bits) - 1)
    return whole - (1 << bits) if scalar.is_signed and whole >> (bits - 1) else whole


def as_bool(value: low.Expression) -> low.Expression:
    """Whether a number or pointer is not zero."""
    if isinstance(value, low.Convert) and value.operand.type == BOOL:
        return value.operand
    if isinstance(value, low.Constant):
        return low.Constant(BOOL, int(value.value != 0))
    if isinstance(value.type, Pointer):
        return low.Binary(BOOL, "!=", value, low.Constant(value.type, 0))
    return value if value.type == BOOL else low.Convert(BOOL, value)


def folded(expression: low.Binary) -> low.Expression:
    """Whole numbers that are constants, computed; everything else as it is."""
    left, right = expression.left, expression.right
    if not isinstance(left, low.Constant) or not isinstance(right, low.Constant):
        return expression
    if expression.type == BOOL and expression.operator in _COMPARISONS:
        return low.Constant(BOOL, int(_COMPARISONS[expression.operator](left.value, right.value)))
    type_ = expression.type
    if not isinstance(type_, Scalar) or type_ == BOOL or type_.is_float or expression.operator not in _INTEGERS:
        return expression
    known = number_as(_INTEGERS[expression.operator](int(left.value), int(right.value)), type_)
    return expression if known is None else low.Constant(type_, known)


def joined(operator_: str, conditions: list[low.Expression]) -> low.Expression:
    return reduce(lambda left, right: low.Binary(BOOL, operator_, left, right), conditions)


def as_constant(expression: syn.Expression) -> low.Number | tuple[low.Number, ...] | None:
    """The value of an initializer in constant memory, which the reader has computed; None where it could not."""
    match expression:
        case syn.Constant():
            return expression.value
        case syn.Convert(type=Vector() as type_):
            value = as_constant(expression.operand)
            return (value,) * type_.width if isinstance(value, int | float) else value
        case syn.VectorLiteral():
            found: list[low.Number] = []
            for part in expression.parts:
                value = as_constant(part)
                if value is None:
                    return None
                found += value if isinstance(value, tuple) else [value]
            return tuple(found)
    return None
