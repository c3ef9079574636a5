"""The operations through which a result of an instruction's last turn reaches its new one."""

from __future__ import annotations

from collections import Counter
from typing import Any

from loopy.symbolic import get_dependencies
from pymbolic.primitives import (
    BitwiseAnd,
    BitwiseOr,
    BitwiseXor,
    Call,
    Comparison,
    ExpressionNode,
    FloorDiv,
    If,
    LeftShift,
    Max,
    Min,
    Power,
    Product,
    Quotient,
    Remainder,
    RightShift,
    Sum,
)

from perfmodel.counting.expressions import Operations, factors, flattened, is_multiplication
from perfmodel.counting.types import Typing


def operations_behind(target: Any, expression: Any, typing: Typing, context: str | None) -> Operations:
    """Operations of `expression` that wait for `target`, by (kind, type); of several such ways, those of the longest.

    Counted as `OperationCounter` counts them: sums and products from left to right, a multiplication that feeds an
    addition as one ``madd``. Empty if the expression doesn't contain the target, or passes it on as it is.
    """
    return _Path(target, typing, context).through(expression) or Counter()


class _Path:
    def __init__(self, target: Any, typing: Typing, context: str | None) -> None:
        self.target, self.typing, self.context = target, typing, context
        self.names = get_dependencies(target)

    def through(self, expression: Any) -> Operations | None:
        """The longest way from the target up to this expression's value; None if it does not contain the target."""
        if expression == self.target:
            return Counter()
        if not isinstance(expression, ExpressionNode) or not self.names <= get_dependencies(expression):
            return None
        if isinstance(expression, Sum):
            return self.joined(list(flattened(expression, Sum)), "add", expression)
        if isinstance(expression, Product) or (isinstance(expression, Power) and is_multiplication(expression)):
            return self.joined(factors(expression), "mul", expression)
        if isinstance(expression, Min | Max):
            return self.joined(list(expression.children), type(expression).__name__.lower(), expression)
        return self.single(expression)

    def joined(self, operands: list[Any], kind: str, expression: Any) -> Operations | None:
        """Through operands that are joined from left to right: all joins from the operand's place on."""
        ways = [(place, way) for place, operand in enumerate(operands) if (way := self.through(operand)) is not None]
        if not ways:
            return None
        found = []
        for place, way in ways:
            ops, dtype = Counter(way), self.typing.type_of(expression, self.context)
            for step in range(max(place, 1), len(operands)):
                pair = operands[: step + 1] if step == 1 else [operands[step]]
                fused = kind == "add" and any(map(is_multiplication, pair))
                ops["madd" if fused else kind, dtype] += 1
                if fused and step == max(place, 1) and is_multiplication(operands[place]) and ops["mul", dtype]:
                    ops["mul", dtype] -= 1  # the multiplication that this addition takes in
            found.append(+ops)
        return max(found, key=lambda ops: ops.total())

    def single(self, expression: Any) -> Operations | None:
        """Through an expression that is one operation, or none."""
        parts = [part for part in _parts(expression) if part is not None]
        ways = [way for part in parts if (way := self.through(part)) is not None]
        if not ways:
            return None
        way = max(ways, key=lambda ops: ops.total())
        if isinstance(expression, Comparison):
            operands = Sum((expression.left, expression.right))
            return way + Counter({("compare", self.typing.type_of(operands, None)): 1})
        if kind := self.kind(expression):
            way = way + Counter({(kind, self.typing.type_of(expression, self.context)): 1})
        return way

    def kind(self, expression: Any) -> str | None:
        if isinstance(expression, Call):
            return self.typing.function_of(expression)
        names = {Quotient: "div", Power: "pow", LeftShift: "shift", RightShift: "shift"}
        names |= {FloorDiv: "div", Remainder: "mod", BitwiseAnd: "bitwise", BitwiseOr: "bitwise", BitwiseXor: "bitwise"}
        return next((kind for node, kind in names.items() if isinstance(expression, node)), None)


def _parts(expression: Any) -> tuple[Any, ...]:
    """The operands of an expression that is no sum and no product; not the indices of an access."""
    if isinstance(expression, Call):
        return tuple(expression.parameters)
    if isinstance(expression, If):
        return (expression.condition, expression.then, expression.else_)
    for first, second in (("numerator", "denominator"), ("base", "exponent"), ("shiftee", "shift"), ("left", "right")):
        if hasattr(expression, first):
            return (getattr(expression, first), getattr(expression, second))
    if hasattr(expression, "children"):
        return tuple(expression.children)
    return (getattr(expression, "child", None),)
