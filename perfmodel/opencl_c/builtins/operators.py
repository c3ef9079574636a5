"""The operators of OpenCL C (section 6.3) take values of one type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from perfmodel.basics.errors import EmulationError
from perfmodel.opencl_c.builtins.representation import DType, Form, bits_of, dtype_of, truth
from perfmodel.opencl_c.types import CHAR, INT, LONG, SHORT, Type, Vector

INTEGERS = {integer.size: integer for integer in (CHAR, SHORT, INT, LONG)}
"""Vectors compare to integers of the size of their elements."""

COMPARISONS: Mapping[str, np.ufunc] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
}
PLAIN: Mapping[str, np.ufunc] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "&": np.bitwise_and,
    "|": np.bitwise_or,
    "^": np.bitwise_xor,
}
"""These operators are numpy's own, exactly as C's: its whole numbers wrap around silently."""


def binary(operator: str, type: Type) -> Form:  # noqa: A002
    """Returns the form of an operator on two values of one type; a shift's right operand may be another integer.

    It is numpy's own function wherever that does what C asks, for speed. Division of integers by zero, which C leaves
    undefined, gives 0.
    """
    if comparison := COMPARISONS.get(operator):
        return _vector_truth(comparison, type) if isinstance(type, Vector) else comparison
    if plain := PLAIN.get(operator):
        return plain
    dtype = dtype_of(type)
    if operator == "/":
        return _quotient(dtype)
    if operator == "%":
        return np.fmod  # unlike np.remainder, its sign is the dividend's, as in C
    if operator in ("<<", ">>"):
        return _shift(np.left_shift if operator == "<<" else np.right_shift, dtype)
    raise EmulationError(f"there is no operator {operator!r} on values of type {type}")


def unary(operator: str, type: Type) -> Form:  # noqa: A002
    """Returns the form of ``-``, ``~`` or ``!``; the last gives a bool, or 0 and -1 for vectors."""
    if operator == "-":
        return np.negative
    if operator == "~":
        return np.invert
    if operator == "!":
        return _vector_truth(np.logical_not, type) if isinstance(type, Vector) else np.logical_not
    raise EmulationError(f"there is no operator {operator!r} on a value of type {type}")


def _vector_truth(form: Form, type_: Vector) -> Form:
    return truth(form, Vector(INTEGERS[type_.element.size], type_.width))


def _quotient(dtype: DType) -> Form:
    if dtype.kind == "f":
        return np.true_divide
    return np.floor_divide if dtype.kind == "u" else _truncated


def _truncated(left: Any, right: Any) -> Any:
    """Returns the quotient rounded to zero: without its remainder the dividend is a multiple, whose floor is exact."""
    return np.floor_divide(np.subtract(left, np.fmod(left, right)), right)


def _shift(form: np.ufunc, dtype: DType) -> Form:
    mask = bits_of(dtype) - 1

    def shift(left: Any, right: Any) -> Any:
        count = right & mask
        return form(left, count if count.dtype == dtype else count.astype(dtype))

    return shift
