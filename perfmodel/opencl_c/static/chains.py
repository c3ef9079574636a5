"""A statement's last result reaches its new one through operations, counted here as in `counting.loopy.chains`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c.operations import (
    Operations,
    factors,
    is_multiplication,
    is_product,
    is_sum,
    own_operations,
    summands,
)
from perfmodel.opencl_c.static.symbolic_values import PointsTo, Value
from perfmodel.opencl_c.types import element_of, width_of


def carried_operations(
    statement: object, evaluate: Callable[[low.Expression], Value], loops: Sequence[str]
) -> tuple[Operations, frozenset[str]]:
    """Returns operations by (kind, type) on the longest way, and the loops that give every iteration its own result."""
    match statement:
        case low.Assign():

            def is_target(part: low.Expression) -> bool:
                return isinstance(part, low.Read) and part.register is statement.register

            return _through(statement.value, is_target) or Counter(), frozenset()
        case low.Store():
            place = evaluate(statement.pointer)
            if not isinstance(place, PointsTo):
                return Counter(), frozenset()

            def is_same(part: low.Expression) -> bool:
                return isinstance(part, low.Load) and evaluate(part.pointer) == place

            apart = place.offset.names() & set(loops)
            return _through(statement.value, is_same) or Counter(), frozenset(apart)
    return Counter(), frozenset()


def _through(expression: low.Expression, is_target: Callable[[low.Expression], bool]) -> Operations | None:
    """Returns the longest way from the target up to this expression's value; None if it does not contain the target."""
    if is_target(expression):
        return Counter()
    if isinstance(expression, low.Load):
        return None
    if is_sum(expression):
        return _joined(summands(expression), "add", expression, is_target)
    if is_product(expression):
        return _joined(factors(expression), "mul", expression, is_target)
    ways = [way for part in low.parts(expression) if (way := _through(part, is_target)) is not None]
    if not ways:
        return None
    own: Operations = Counter()
    for kind, dtype, times in own_operations(expression):
        own[kind, dtype] += times
    return max(ways, key=lambda way: way.total()) + own


def _joined(
    operands: list[low.Expression],
    kind: str,
    expression: low.Expression,
    is_target: Callable[[low.Expression], bool],
) -> Operations | None:
    """Returns the longest way through operands joined from left to right: all joins from the operand's place on."""
    found = []
    dtype, width = element_of(expression.type).dtype, width_of(expression.type)
    for place, operand in enumerate(operands):
        way = _through(operand, is_target)
        if way is None:
            continue
        operations = Counter(way)
        for step in range(max(place, 1), len(operands)):
            pair = operands[: step + 1] if step == 1 else [operands[step]]
            fused = kind == "add" and any(map(is_multiplication, pair))
            operations["madd" if fused else kind, dtype] += width
            if fused and step == max(place, 1) and is_multiplication(operands[place]) and operations["mul", dtype]:
                operations["mul", dtype] -= width  # the multiplication that this addition takes in
        found.append(+operations)
    return max(found, key=lambda way: way.total()) if found else None
