"""Expressions of the syntax tree are written as C here, as messages and reports show them."""

from __future__ import annotations

from perfmodel.opencl_c import syntax as syn
from perfmodel.opencl_c.arithmetic import BINDING
from perfmodel.opencl_c.types import Vector

_LETTERS = "xyzw"
MOST = 60
_ATOMS = (*(syn.Constant, syn.Name, syn.Member, syn.Swizzle, syn.Call, syn.BuiltinCall, syn.VectorLiteral, syn.Decay),)


def text_of(expression: syn.Expression) -> str:
    """Returns the expression in C, without the conversions that C makes by itself; shortened if long."""
    text = _text(expression)
    return text if len(text) <= MOST else text[: MOST - 1] + "…"


def _text(expression: syn.Expression) -> str:
    match expression:
        case syn.Constant():
            return str(expression.value)
        case syn.Name():
            return expression.variable.name
        case syn.Dereference(pointer=syn.Shift() as shift):
            return f"{_text(shift.pointer)}[{_text(shift.index)}]"
        case syn.Dereference():
            return f"*{_inner(expression.pointer)}"
        case syn.Shift():
            return f"{_text(expression.pointer)} + {_text(expression.index)}"
        case syn.Member(record=syn.Dereference(pointer=pointer)) if not isinstance(pointer, syn.Shift):
            return f"{_inner(pointer)}->{expression.name}"
        case syn.Member():
            return f"{_inner(expression.record)}.{expression.name}"
        case syn.Swizzle():
            return f"{_inner(expression.vector)}.{_components(expression)}"
        case syn.AddressOf():
            return f"&{_inner(expression.target)}"
        case syn.Decay():
            return _text(expression.array)
        case syn.Unary():
            return f"{expression.operator}{_inner(expression.operand)}"
        case syn.Binary() | syn.Logical():
            return _row(expression)
        case syn.PointerDifference():
            return f"{_inner(expression.left)} - {_inner(expression.right)}"
        case syn.Conditional():
            parts = (expression.condition, expression.then, expression.otherwise)
            return "{} ? {} : {}".format(*map(_inner, parts))
        case syn.Convert():
            return _text(expression.operand)
        case syn.VectorLiteral():
            return f"({expression.type})({', '.join(map(_text, expression.parts))})"
        case syn.Call():
            return f"{expression.function.name}({', '.join(map(_text, expression.arguments))})"
        case syn.BuiltinCall():
            return f"{expression.name}({', '.join(map(_text, expression.arguments))})"
        case syn.Assign():
            return f"{_text(expression.target)} = {_text(expression.value)}"
        case syn.CompoundAssign():
            return f"{_text(expression.target)} {expression.operator}= {_text(expression.value)}"
        case syn.Increment():
            sign = "++" if expression.step > 0 else "--"
            return f"{_text(expression.target)}{sign}" if expression.is_postfix else f"{sign}{_text(expression.target)}"
        case syn.Comma():
            return f"{_text(expression.first)}, {_text(expression.second)}"
        case syn.CompoundLiteral():
            return f"({expression.type}){{…}}"
        case syn.Block():
            return f"({{… {_text(expression.value)}; }})"


def _row(expression: syn.Binary | syn.Logical) -> str:
    """Returns the text of operators in a row, or of so many of them that it is too long anyway."""
    row = [expression]
    while isinstance(left := _unconverted(row[-1].left), syn.Binary | syn.Logical):
        if BINDING[left.operator] < BINDING[row[-1].operator]:
            break
        row.append(left)
    text = _inner(left)
    for each in reversed(row):
        text = f"{text} {each.operator} {_operand(each.right, BINDING[each.operator] + 1)}"
        if len(text) > MOST:
            break
    return text


def _unconverted(expression: syn.Expression) -> syn.Expression:
    while isinstance(expression, syn.Convert):
        expression = expression.operand
    return expression


def _operand(expression: syn.Expression, least: int) -> str:
    """Returns an operand's text, in brackets if it binds less than `least`."""
    expression = _unconverted(expression)
    if isinstance(expression, syn.Binary | syn.Logical) and BINDING[expression.operator] >= least:
        return _text(expression)
    return _inner(expression)


def _inner(expression: syn.Expression) -> str:
    expression = _unconverted(expression)
    text = _text(expression)
    is_element = isinstance(expression, syn.Dereference) and isinstance(expression.pointer, syn.Shift)
    return text if isinstance(expression, _ATOMS) or is_element else f"({text})"


def _components(swizzle: syn.Swizzle) -> str:
    width = swizzle.vector.type.width if isinstance(swizzle.vector.type, Vector) else 4
    if width <= len(_LETTERS):
        return "".join(_LETTERS[c] for c in swizzle.components)
    return "s" + "".join(f"{c:x}" for c in swizzle.components)
