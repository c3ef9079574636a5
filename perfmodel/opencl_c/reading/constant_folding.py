"""Constant expressions are computed as a device would, for tables in constant memory."""

from __future__ import annotations

from perfmodel.opencl_c import syntax as sx
from perfmodel.opencl_c import types as ts
from perfmodel.opencl_c.arithmetic import Number, combined, number_as
from perfmodel.opencl_c.visitor import children, rebuilt


def fold(expression: sx.Expression | sx.InitializerList) -> sx.Expression | sx.InitializerList:
    """Returns an initial value with what is constant in it computed; the rest stays."""
    if not isinstance(expression, sx.InitializerList | sx.VectorLiteral | sx.Convert | sx.Unary | sx.Binary):
        return expression
    expression = rebuilt(expression, fold)
    type_, parts = expression.type, children(expression)
    if not isinstance(type_, ts.Scalar) or not all(isinstance(part, sx.Constant) for part in parts):
        return expression
    match expression:
        case sx.Binary():
            value = combined(expression.operator, parts[0].value, parts[1].value, type_)
        case sx.Unary():
            value = _negated(expression.operator, parts[0].value, type_)
        case _:
            value = number_as(parts[0].value, type_)
    return expression if value is None else sx.Constant(type_, expression.place, value)


def _negated(operator: str, value: Number, type_: ts.Scalar) -> Number | None:
    if operator == "!":
        return int(not value)
    if operator == "-":
        return -value if isinstance(value, float) else number_as(-value, type_)
    return number_as(~value, type_) if isinstance(value, int) else None
