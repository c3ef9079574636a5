"""Operations and memory accesses of one Loopy instruction, read off its expression tree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from loopy.symbolic import LinearSubscript, WalkMapper
from pymbolic.mapper import Mapper
from pymbolic.primitives import Power, Product, Subscript, Sum, is_constant

from perfmodel.counting.called_functions import operations_of
from perfmodel.counting.chains import Operations
from perfmodel.counting.loopy.types import Typing


class _Walker(WalkMapper):  # type: ignore[misc]
    """Visits every occurrence of a subexpression, where Loopy's cached walk visits equal ones only once."""

    __call__ = rec = Mapper.__call__

    def map_call(self, expression: Any) -> None:
        for parameter in expression.parameters:
            self.rec(parameter)


class OperationCounter(_Walker):
    """Counts operations by (kind, type); a multiplication that feeds an addition of its type counts as one ``madd``.

    Index arithmetic is left out, as in Stevens & Klöckner 2016, section 2.2. A negation costs nothing: it folds into
    the operation around it; nor does arithmetic of constants alone. Sums and products are typed as C evaluates them,
    from left to right. Of an if-expression both branches count, as a work-item without a branch of its own does both.
    """

    def __init__(self, typing: Typing, context: str | None) -> None:
        """Takes as `context` the type that the expression is assigned to, in which Loopy writes its literals."""
        super().__init__()
        self.typing = typing
        self.context = context
        self.counts: Operations = Counter()

    def add(self, kind: str, expression: Any, times: int = 1) -> None:
        if times:
            self.counts[kind, self.type_of(expression)] += times

    def type_of(self, expression: Any) -> str:
        return self.typing.type_of(expression, self.context)

    def within(self, context: str, *parts: Any) -> None:
        outer, self.context = self.context, context
        for part in parts:
            self.rec(part)
        self.context = outer

    def map_subscript(self, expression: Any) -> None:
        pass

    map_linear_subscript = map_subscript

    def map_sum(self, expression: Any) -> None:
        children = list(flattened(expression, Sum))
        additions = self.steps(children, Sum)
        # Without a factor of minus one, which costs nothing and must not decide the type.
        products = Counter(
            self.type_of(Product(tuple(factors(child)))) for child in children if is_multiplication(child)
        )
        for dtype, times in additions.items():
            fused = min(times, products[dtype])
            for kind, change in (("add", times - fused), ("mul", -fused), ("madd", fused)):
                self.counts[kind, dtype] += change
        for child in children:
            self.rec(child)

    def map_product(self, expression: Any) -> None:
        operands = factors(expression)
        for dtype, times in self.steps(operands, Product).items():
            self.counts["mul", dtype] += times
        for factor in operands:
            self.rec(factor)

    def steps(self, operands: list[Any], kind: type[Any]) -> Counter[str]:
        """Returns the operations, by type, that join the operands from left to right."""
        return Counter(
            self.type_of(kind(tuple(operands[: end + 1])))
            for end in range(1, len(operands))
            if not all(map(is_constant, operands[: end + 1]))
        )

    def map_quotient(self, expression: Any) -> None:
        self.add("div", expression)
        super().map_quotient(expression)

    def map_floor_div(self, expression: Any) -> None:
        self.add_integral("div", expression, expression.numerator, expression.denominator)

    def map_remainder(self, expression: Any) -> None:
        self.add_integral("mod", expression, expression.numerator, expression.denominator)

    def map_power(self, expression: Any) -> None:
        if is_constant(expression.exponent) and expression.exponent in (0, 1, 2):
            self.add("mul", expression, int(_is_square(expression)))
        else:
            self.counts["pow", self.typing.type_of(expression, None)] += 1
        super().map_power(expression)

    def map_comparison(self, expression: Any) -> None:
        dtype = self.typing.type_of(Sum((expression.left, expression.right)), None)
        self.counts["compare", dtype] += 1
        self.within(dtype, expression.left, expression.right)

    def map_min(self, expression: Any) -> None:
        self.add("min", expression, len(expression.children) - 1)
        super().map_min(expression)

    def map_max(self, expression: Any) -> None:
        self.add("max", expression, len(expression.children) - 1)
        super().map_max(expression)

    def map_bitwise_or(self, expression: Any) -> None:
        self.add_integral("bitwise", expression, *expression.children)

    map_bitwise_and = map_bitwise_xor = map_bitwise_or

    def map_bitwise_not(self, expression: Any) -> None:
        dtype = self.typing.type_of(expression.child, None)
        self.counts["bitwise", dtype] += 1
        self.within(dtype, expression.child)

    def map_left_shift(self, expression: Any) -> None:
        self.add_integral("shift", expression, expression.shiftee, expression.shift)

    map_right_shift = map_left_shift

    def add_integral(self, kind: str, expression: Any, *operands: Any) -> None:
        """Adds operations of whole numbers, whatever the type that their result is assigned to."""
        dtype = self.typing.type_of(expression, None)
        self.counts[kind, dtype] += len(operands) - 1
        self.within(dtype, *operands)

    def map_call(self, expression: Any) -> None:
        for kind, times in operations_of(self.typing.function_of(expression)).items():
            self.add(kind, expression, times)
        for parameter in expression.parameters:
            self.within(self.typing.type_of(parameter, None), parameter)


class SubscriptCollector(_Walker):
    """Collects every array access in an expression, also those inside other accesses' indices."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Any] = []

    def map_subscript(self, expression: Any) -> None:
        self.found.append(expression)
        for index in expression.index_tuple:
            self.rec(index)

    def map_linear_subscript(self, expression: Any) -> None:
        self.found.append(expression)
        self.rec(expression.index)

    def map_variable(self, expression: Any) -> None:
        self.found.append(expression)

    map_tagged_variable = map_variable


def subscripts(expression: Any) -> list[Any]:
    collector = SubscriptCollector()
    collector(expression)
    return collector.found


class _BranchCollector(_Walker):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[Any] = []

    def map_if(self, expression: Any) -> None:
        self.found += [*subscripts(expression.then), *subscripts(expression.else_)]
        self.rec(expression.condition)


def subscripts_in_branches(expression: Any) -> list[Any]:
    """Returns the array accesses in an expression that are made or not as an if-expression decides."""
    collector = _BranchCollector()
    collector(expression)
    return collector.found


def variable_of(access: Any) -> Any:
    return access.aggregate if isinstance(access, Subscript | LinearSubscript) else access


def index_of(access: Any) -> tuple[Any, ...]:
    """Returns the index expressions of an access: one for ``a[[flat]]``, none for a scalar."""
    return (access.index,) if isinstance(access, LinearSubscript) else getattr(access, "index_tuple", ())


def access_tags(access: Any) -> frozenset[str]:
    """Returns the tags that a kernel's author gave with ``a$tag[i]``."""
    return frozenset(str(getattr(tag, "value", tag)) for tag in getattr(variable_of(access), "tags", ()))


def flattened(expression: Any, kind: type[Any]) -> Iterator[Any]:
    """Yields the operands of nested sums, or of nested products, in the order in which C evaluates them."""
    for child in expression.children:
        if isinstance(child, kind):
            yield from flattened(child, kind)
        else:
            yield child


def factors(product: Any) -> list[Any]:
    """Returns the factors that cost a multiplication: plus and minus one do not. Loopy writes a square as a product."""
    if isinstance(product, Power):
        return [product.base, product.base]
    return [f for f in flattened(product, Product) if not (is_constant(f) and f in (1, -1))]


def is_multiplication(expression: Any) -> bool:
    if isinstance(expression, Power):
        return _is_square(expression)
    return isinstance(expression, Product) and len(factors(expression)) > 1


def _is_square(power: Any) -> bool:
    return bool(is_constant(power.exponent) and power.exponent == 2)
