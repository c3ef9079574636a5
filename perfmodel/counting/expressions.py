"""Operations and memory accesses of one Loopy instruction, read off its expression tree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from loopy.symbolic import WalkMapper
from pymbolic.primitives import Product, Subscript, Sum, is_constant

Operations = Counter[tuple[str, str]]


class OperationCounter(WalkMapper):  # type: ignore[misc]
    """Counts operations by (kind, type); a multiplication that feeds an addition of its type counts as one ``madd``.

    Index arithmetic is left out, as in Stevens & Klöckner 2016, section 2.2. A negation costs nothing: it folds into
    the operation around it.
    """

    def __init__(self, type_of: Any) -> None:
        super().__init__()
        self.type_of = type_of
        self.counts: Operations = Counter()

    def add(self, kind: str, expression: Any, times: int = 1) -> None:
        if times:
            self.counts[kind, self.type_of(expression)] += times

    def map_subscript(self, expression: Any) -> None:
        pass

    def map_sum(self, expression: Any) -> None:
        children = list(_flatten_sum(expression))
        additions = len(children) - 1
        self.add("add", expression, additions)
        dtype = self.type_of(expression)
        products = sum(1 for child in children if _multiplications(child) and self.type_of(child) == dtype)
        for kind, sign in (("madd", 1), ("add", -1), ("mul", -1)):
            self.add(kind, expression, sign * min(additions, products))
        for child in children:
            self.rec(child)

    def map_product(self, expression: Any) -> None:
        self.add("mul", expression, _multiplications(expression))
        for factor in _factors(expression):
            self.rec(factor)

    def map_quotient(self, expression: Any) -> None:
        self.add("div", expression)
        super().map_quotient(expression)

    def map_floor_div(self, expression: Any) -> None:
        self.add("div", expression)
        super().map_floor_div(expression)

    def map_remainder(self, expression: Any) -> None:
        self.add("mod", expression)
        super().map_remainder(expression)

    def map_power(self, expression: Any) -> None:
        self.add("pow", expression)
        super().map_power(expression)

    def map_comparison(self, expression: Any) -> None:
        self.add("compare", expression.left)
        super().map_comparison(expression)

    def map_min(self, expression: Any) -> None:
        self.add("min", expression, len(expression.children) - 1)
        super().map_min(expression)

    def map_max(self, expression: Any) -> None:
        self.add("max", expression, len(expression.children) - 1)
        super().map_max(expression)

    def map_call(self, expression: Any) -> None:
        self.add(function_name(expression), expression)
        for parameter in expression.parameters:
            self.rec(parameter)

    def map_type_cast(self, expression: Any) -> None:
        self.rec(expression.child)


class SubscriptCollector(WalkMapper):  # type: ignore[misc]
    """Every array access in an expression, also those inside other accesses' indices."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Any] = []

    def map_subscript(self, expression: Any) -> None:
        self.found.append(expression)
        for index in expression.index_tuple:
            self.rec(index)

    def map_variable(self, expression: Any) -> None:
        self.found.append(expression)

    map_tagged_variable = map_variable

    def map_call(self, expression: Any) -> None:
        for parameter in expression.parameters:
            self.rec(parameter)

    def map_type_cast(self, expression: Any) -> None:
        self.rec(expression.child)


def subscripts(expression: Any) -> list[Any]:
    collector = SubscriptCollector()
    collector(expression)
    return collector.found


def variable_of(access: Any) -> Any:
    return access.aggregate if isinstance(access, Subscript) else access


def access_tags(access: Any) -> frozenset[str]:
    """The tags that a kernel's author gave with ``a$tag[i]``."""
    return frozenset(str(getattr(tag, "value", tag)) for tag in getattr(variable_of(access), "tags", ()))


def function_name(call: Any) -> str:
    function = call.function
    while not isinstance(function, str):
        function = getattr(function, "function", None) or getattr(function, "name", None) or str(function)
    return function


def _flatten_sum(expression: Any) -> Iterator[Any]:
    for child in expression.children:
        if isinstance(child, Sum):
            yield from _flatten_sum(child)
        else:
            yield child


def _factors(expression: Any) -> Iterator[Any]:
    """Factors that cost a multiplication: nested products flattened, plus and minus one left out."""
    for child in expression.children:
        if isinstance(child, Product):
            yield from _factors(child)
        elif not (is_constant(child) and child in (1, -1)):
            yield child


def _multiplications(expression: Any) -> int:
    if not isinstance(expression, Product):
        return 0
    return max(0, sum(1 for _ in _factors(expression)) - 1)
