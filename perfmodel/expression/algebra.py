"""Builds nodes with zeros and ones folded away, so that derivatives stay as short as a person writes them."""

from __future__ import annotations

import math

from perfmodel.expression.tree import Binary, Call, Negation, Node, Number

ZERO = Number(0.0)
ONE = Number(1.0)


def add(left: Node, right: Node) -> Node:
    if _is(left, 0.0):
        return right
    if _is(right, 0.0):
        return left
    if isinstance(left, Number) and isinstance(right, Number):
        return _folded("+", left, right, left.value + right.value)
    return Binary("+", left, right)


def subtract(left: Node, right: Node) -> Node:
    if _is(right, 0.0):
        return left
    if _is(left, 0.0):
        return negate(right)
    if isinstance(left, Number) and isinstance(right, Number):
        return _folded("-", left, right, left.value - right.value)
    return Binary("-", left, right)


def multiply(left: Node, right: Node) -> Node:
    for one, other in ((left, right), (right, left)):
        if _is(one, 0.0):
            return ZERO
        if _is(one, 1.0):
            return other
        if _is(one, -1.0):
            return negate(other)
    if isinstance(left, Number) and isinstance(right, Number):
        return _folded("*", left, right, left.value * right.value)
    return Binary("*", left, right)


def divide(left: Node, right: Node) -> Node:
    if _is(right, 1.0):
        return left
    if _is(left, 0.0) and not _is(right, 0.0):
        return ZERO
    return Binary("/", left, right)


def power(base: Node, exponent: Node) -> Node:
    if _is(exponent, 0.0):
        return ONE
    if _is(exponent, 1.0):
        return base
    return Binary("**", base, exponent)


def negate(operand: Node) -> Node:
    if isinstance(operand, Number):
        return Number(-operand.value)
    if isinstance(operand, Negation):
        return operand.operand
    return Negation(operand)


def call(function: str, *arguments: Node) -> Node:
    return Call(function, arguments)


def chain(function: str, arguments: tuple[Node, ...]) -> Node:
    """Applies a function of two arguments to any number of them, from left to right."""
    result = arguments[0]
    for argument in arguments[1:]:
        result = call(function, result, argument)
    return result


def _is(node: Node, value: float) -> bool:
    return isinstance(node, Number) and node.value == value


def _folded(operator: str, left: Node, right: Node, value: float) -> Node:
    """Returns the value as a node, unless it overflowed: an infinite number has no text."""
    return Number(value) if math.isfinite(value) else Binary(operator, left, right)
