"""This module computes with numbers that are known before anything runs, as C does: literals, tables, ``#if``."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from perfmodel.opencl_c.types import BOOL, Scalar, Type

Number: TypeAlias = int | float

BINDING: Mapping[str, int] = {
    sign: rank
    for rank, signs in enumerate(("||", "&&", "|", "^", "&", "== !=", "< <= > >=", "<< >>", "+ -", "* / %"))
    for sign in signs.split()
}
"""The rank of an operator says how strongly it binds, the weakest first (C99, 6.5)."""


def _quotient(left: int, right: int) -> int:
    size = abs(left) // abs(right)
    return size if (left < 0) == (right < 0) else -size


COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
RING: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
}
"""These operators are defined for all whole numbers."""
WHOLE: Mapping[str, Callable[[int, int], int]] = {
    **RING,
    "/": _quotient,
    "%": lambda left, right: left - right * _quotient(left, right),
    "<<": operator.lshift,
    ">>": operator.rshift,
}
"""These operators give whole numbers before they are brought into a type: no divisor is zero, no shift negative."""


def rounded(value: Number, scalar: Scalar) -> float:
    """Returns the number of a floating-point type that is nearest."""
    with np.errstate(all="ignore"):
        return float(scalar.numpy.type(value))


def number_as(value: Number, scalar: Scalar) -> Number | None:
    """Returns a number as C converts it to a type; None where C leaves it open."""
    if scalar == BOOL:
        return int(value != 0)
    if scalar.is_float:
        return rounded(value, scalar)
    if not math.isfinite(value):
        return None
    bits = 8 * scalar.size
    whole = int(value) & ((1 << bits) - 1)
    return whole - (1 << bits) if scalar.is_signed and whole >> (bits - 1) else whole


def combined(sign: str, left: Number, right: Number, type_: Type) -> Number | None:
    """Returns what an arithmetic operator makes of two numbers of a type; None where C leaves it open."""
    if not isinstance(type_, Scalar):
        return None
    if isinstance(left, int) and isinstance(right, int):
        if sign not in WHOLE or (sign in "/%" and right == 0):
            return None
        return number_as(WHOLE[sign](left, right % (8 * type_.size) if sign in ("<<", ">>") else right), type_)
    if not type_.is_float or sign not in ("+", "-", "*", "/"):
        return None
    number = type_.numpy.type
    with np.errstate(all="ignore"):
        form = np.divide if sign == "/" else RING[sign]
        return float(form(number(left), number(right)))
