"""Finds the operations through which an instruction's result of one iteration reaches its result of the next."""

from __future__ import annotations

from collections import Counter
from typing import Any

from pymbolic.primitives import ExpressionNode, Max, Min, Power, Product, Sum

from perfmodel.counting.chains import Operations, joined, longest
from perfmodel.counting.loopy.expressions import OperationCounter, factors, flattened, is_multiplication
from perfmodel.counting.loopy.types import Typing


def operations_behind(target: Any, expression: Any, typing: Typing, context: str | None) -> Operations:
    """Returns the operations of `expression` that wait for `target`, by (kind, type), along the longest such path.

    Counted as `OperationCounter` counts them: sums and products from left to right, a multiplication that feeds an
    addition as one ``madd``. Empty if the expression doesn't contain the target, or passes it on as it is.
    """
    return _Path(target, typing, context).through(expression) or Counter()


class _Path:
    def __init__(self, target: Any, typing: Typing, context: str | None) -> None:
        self.target, self.typing, self.context = target, typing, context

    def through(self, expression: Any) -> Operations | None:
        """Returns the longest path from the target to this expression's value; None if it does not contain the
        target."""
        if expression == self.target:
            return Counter()
        if not isinstance(expression, ExpressionNode):
            return None
        if isinstance(expression, Sum):
            return self.joined(list(flattened(expression, Sum)), "add", expression)
        if isinstance(expression, Product) or (isinstance(expression, Power) and is_multiplication(expression)):
            return self.joined(factors(expression), "mul", expression)
        if isinstance(expression, Min | Max):
            return self.joined(list(expression.children), type(expression).__name__.lower(), expression)
        return self.single(expression)

    def joined(self, operands: list[Any], kind: str, expression: Any) -> Operations | None:
        """Returns the path through operands joined from left to right."""
        ways = list(map(self.through, operands))
        if longest(ways) is None:
            return None
        return joined(ways, list(map(is_multiplication, operands)), kind, self.typing.type_of(expression, self.context))

    def single(self, expression: Any) -> Operations | None:
        """Returns the path through an expression that is one operation, or none."""
        node = _Node(self.typing, self.context)
        node(expression)
        way = longest(map(self.through, node.operands))
        return None if way is None else way + Counter(dict.fromkeys(node.counts, 1))


class _Node(OperationCounter):
    """Counts what an expression does itself, and collects its operands."""

    def __init__(self, typing: Typing, context: str | None) -> None:
        super().__init__(typing, context)
        self.operands: list[Any] = []

    def rec(self, operand: Any) -> None:
        self.operands.append(operand)
