"""A statement's last result reaches its new one through operations, which are found here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from perfmodel.counting.chains import Operations, joined, longest
from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import walks
from perfmodel.opencl_c.operations import (
    factors,
    is_multiplication,
    is_product,
    is_sum,
    own_operations,
    summands,
)
from perfmodel.opencl_c.static.values import PointsTo, Value
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
    if is_sum(expression) or is_product(expression):
        operands, kind = (summands(expression), "add") if is_sum(expression) else (factors(expression), "mul")
        ways = [_through(operand, is_target) for operand in operands]
        dtype, width = element_of(expression.type).dtype, width_of(expression.type)
        return joined(ways, list(map(is_multiplication, operands)), kind, dtype, width)
    way = longest(_through(part, is_target) for part in walks.parts(expression))
    if way is None:
        return None
    own: Operations = Counter()
    for kind, dtype, times in own_operations(expression):
        own[kind, dtype] += times
    return way + own
