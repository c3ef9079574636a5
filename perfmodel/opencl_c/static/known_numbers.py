"""Floating-point numbers that are the same for all work-items are computed here, as C does: arguments and constants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from perfmodel.basics.errors import EmulationError
from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c.arithmetic import COMPARISONS
from perfmodel.opencl_c.builtins import binary, conversion, function, unary
from perfmodel.opencl_c.types import BOOL, Scalar, Type, Vector, element_of, is_float


@dataclass(frozen=True)
class Known:
    """Holds the components of a number that is known; a scalar has one.

    Attributes:
        bits: of the components, in order, so that equal numbers are equal values (a NaN, too).
    """

    bits: bytes
    type: Type

    @property
    def value(self) -> Any:
        """The number as built-in functions take it: a numpy scalar, or a column of components."""
        found = np.frombuffer(self.bits, element_of(self.type).numpy)
        return found[:, None] if isinstance(self.type, Vector) else found[0]


def known(value: Any, type_: Type) -> Known:
    """Returns a number, or a sequence of components, as one of this type."""
    width = type_.width if isinstance(type_, Vector) else 1
    with np.errstate(all="ignore"):
        components = np.broadcast_to(np.asarray(value, element_of(type_).numpy).reshape(-1), (width,))
    return Known(components.tobytes(), type_)


def computed(expression: low.Expression, operands: Sequence[Known]) -> Known | bool | None:
    """Returns what an operator or built-in function makes of numbers; None where that is no such number."""
    type_, values = expression.type, [operand.value for operand in operands]
    with np.errstate(all="ignore"):
        match expression:
            case low.Binary() if expression.operator in COMPARISONS and type_ == BOOL:
                return bool(COMPARISONS[expression.operator](*values))
            case low.Convert() if type_ == BOOL:
                return bool(values[0] != 0)
            case low.Binary() if is_float(type_):
                return known(binary(expression.operator, type_)(*values), type_)
            case low.Unary() if is_float(type_) and expression.operator == "-":
                return known(unary("-", type_)(*values), type_)
            case low.Convert() if isinstance(type_, Scalar | Vector):
                given = conversion(expression.operand.type, type_, expression.rounding, expression.saturate)
                return known(given(*values), type_)
            case low.Pick():
                return known(values[0].reshape(-1)[list(expression.components)], type_)
            case low.Join():
                return known(np.concatenate([value.reshape(-1) for value in values]), type_)
            case low.Call():
                try:
                    form = function(expression.function, type_, tuple(part.type for part in expression.arguments))
                except EmulationError:
                    return None
                return known(form(*values), type_)
    return None
