"""Lowered expressions that are known before anything runs are computed here."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import reduce

from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import syntax as syn
from perfmodel.opencl_c.arithmetic import COMPARISONS, WHOLE, combined, number_as
from perfmodel.opencl_c.types import BOOL, DOUBLE, FLOAT, LONG, Pointer, Scalar, Type, Vector, element_of

INVERTED: Mapping[str, Callable[[int], int]] = {"-": operator.neg, "~": operator.invert}


def converted(value: low.Expression, type_: Type) -> low.Expression:
    """Returns the value in another type; itself where it has it already."""
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
    return _narrowed(value, type_) or low.Convert(type_, value)


def _narrowed(value: low.Expression, type_: Type) -> low.Expression | None:
    """Returns what a float of 32 bits becomes of one operation of doubles that were such floats, as compilers do it in
    32 bits with the same result (Figueroa, When is double rounding innocuous?, 1995); None for all else."""
    if not isinstance(value, low.Binary) or value.operator not in ("+", "-", "*", "/"):
        return None
    if element_of(type_) != FLOAT or element_of(value.type) != DOUBLE:
        return None
    left, right = _as_single(value.left, type_), _as_single(value.right, type_)
    return None if left is None or right is None else low.Binary(type_, value.operator, left, right)


def _as_single(value: low.Expression, type_: Type) -> low.Expression | None:
    """Returns the float of 32 bits that a double is; None where it may be none."""
    if isinstance(value, low.Convert) and value.operand.type == type_:
        return value.operand
    if isinstance(value, low.Constant) and number_as(value.value, FLOAT) == value.value:
        return low.Constant(type_, value.value)
    return None


def as_bool(value: low.Expression) -> low.Expression:
    """Returns whether a number or pointer is not zero, as an expression."""
    if isinstance(value, low.Convert) and value.operand.type == BOOL:
        return value.operand
    if isinstance(value, low.Constant):
        return low.Constant(BOOL, int(value.value != 0))
    if isinstance(value.type, Pointer):
        return low.Binary(BOOL, "!=", value, low.Constant(value.type, 0))
    return value if value.type == BOOL else low.Convert(BOOL, value)


def folded(expression: low.Binary) -> low.Expression:
    """Returns the result of whole numbers that are constants; everything else as it is."""
    left, right, sign, type_ = expression.left, expression.right, expression.operator, expression.type
    if not isinstance(left, low.Constant) or not isinstance(right, low.Constant):
        return expression
    if type_ == BOOL and sign in COMPARISONS:
        return low.Constant(BOOL, int(COMPARISONS[sign](left.value, right.value)))
    if not isinstance(type_, Scalar) or type_ == BOOL or type_.is_float or sign not in WHOLE:
        return expression
    known = combined(sign, int(left.value), int(right.value), type_)
    return expression if known is None else low.Constant(type_, known)


def inverted(expression: low.Unary) -> low.Expression:
    """Returns the result of ``-`` or ``~`` of a whole number that is a constant; everything else as it is."""
    operand, type_ = expression.operand, expression.type
    if not isinstance(operand, low.Constant) or not isinstance(type_, Scalar) or type_ == BOOL or type_.is_float:
        return expression
    known = number_as(INVERTED[expression.operator](int(operand.value)), type_)
    return expression if known is None else low.Constant(type_, known)


def joined(operator_: str, conditions: list[low.Expression]) -> low.Expression:
    return reduce(lambda left, right: low.Binary(BOOL, operator_, left, right), conditions)


def program_constant(name: syn.Name) -> low.Number | None:
    """Returns the number of a scalar that the program has in constant memory; None for any other variable."""
    type_ = name.variable.type
    if name.variable.space != "constant" or not isinstance(type_, Scalar):
        return None
    value = as_constant(name)
    return number_as(value, type_) if isinstance(value, int | float) else None


def as_constant(expression: syn.Expression) -> low.Number | tuple[low.Number, ...] | None:
    """Returns the value of an initializer in constant memory, as of numbers and other constants; None where it is of
    more than these."""
    match expression:
        case syn.Constant():
            return expression.value
        case syn.Name() if expression.variable.space == "constant" and expression.variable.initial is not None:
            initial = expression.variable.initial
            return None if isinstance(initial, syn.InitializerList) else as_constant(initial)
        case syn.Convert(type=Scalar() as type_):
            value = as_constant(expression.operand)
            return number_as(value, type_) if isinstance(value, int | float) else None
        case syn.Unary(type=Scalar() as type_) if expression.operator in INVERTED:
            value = as_constant(expression.operand)
            return number_as(INVERTED[expression.operator](value), type_) if isinstance(value, int) else None
        case syn.Binary():
            row = [expression]
            while isinstance(left := row[-1].left, syn.Binary):
                row.append(left)
            value = as_constant(left)
            for each in reversed(row):
                right = as_constant(each.right)
                if not isinstance(each.type, Scalar) or not isinstance(value, int | float):
                    return None
                if not isinstance(right, int | float):
                    return None
                if each.operator in COMPARISONS:
                    value = int(COMPARISONS[each.operator](value, right))
                else:
                    value = combined(each.operator, value, right, each.type)
            return value
        case syn.Unary(type=Scalar(), operator="!"):
            value = as_constant(expression.operand)
            return int(not value) if isinstance(value, int | float) else None
        case syn.Logical(type=Scalar()):
            value = as_constant(expression.left)
            if not isinstance(value, int | float):
                return None
            if bool(value) == (expression.operator == "||"):
                return int(bool(value))
            right = as_constant(expression.right)
            return int(bool(right)) if isinstance(right, int | float) else None
        case syn.Conditional(type=Scalar()) if isinstance(expression.condition.type, Scalar):
            value = as_constant(expression.condition)
            if not isinstance(value, int | float):
                return None
            return as_constant(expression.then if value else expression.otherwise)
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
