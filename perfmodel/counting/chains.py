"""Operations stand between an expression's operand and its value: those that wait for a result that it contains."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeAlias

Operations: TypeAlias = Counter[tuple[str, str]]
"""Operations are counted by kind and type."""


def longest(ways: Iterable[Operations | None]) -> Operations | None:
    """Returns the way of most operations; None where no operand has one."""
    return max((way for way in ways if way is not None), key=Counter.total, default=None)


def joined(
    ways: Sequence[Operations | None], are_products: Sequence[bool], kind: str, dtype: str, width: int = 1
) -> Operations | None:
    """Returns the longest way through operands joined from left to right: all joins from the operand's place on.

    Args:
        ways: into each operand; None where the result that is waited for is not in it.
        are_products: which operands are multiplications, that an addition takes in as one ``madd``.
        width: components of what is joined.
    """
    return longest(
        None if way is None else _from(place, way, are_products, kind, dtype, width) for place, way in enumerate(ways)
    )


def _from(place: int, way: Operations, are_products: Sequence[bool], kind: str, dtype: str, width: int) -> Operations:
    operations, first = Counter(way), max(place, 1)
    for step in range(first, len(are_products)):
        fused = kind == "add" and any(are_products[:2] if step == 1 else [are_products[step]])
        operations["madd" if fused else kind, dtype] += width
        if fused and step == first and are_products[place] and operations["mul", dtype]:
            operations["mul", dtype] -= width  # the multiplication that this addition takes in
    return +operations
