"""The expression tree of a model string: plain immutable nodes, shared where a term is used twice.

Nodes compare by identity, so that every algorithm over them can memoise by node and cost stays proportional to the
number of distinct nodes, however often a term is used.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, fields


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Node:
    """Any part of an expression."""

    @property
    def children(self) -> tuple[Node, ...]:
        return ()

    def __repr__(self) -> str:
        own = [value for each in fields(self) if isinstance(value := getattr(self, each.name), str | float)]
        return f"<{' '.join(map(str, [type(self).__name__, *own]))}>"


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Number(Node):
    value: float


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Parameter(Node):
    """A hardware-dependent value to be fitted; the name starts with ``p_``."""

    name: str


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class FeatureName(Node):
    """A kernel characteristic; the name starts with ``f_`` and may carry conditions."""

    name: str


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Binary(Node):
    """``left operator right`` with operator one of ``+ - * / **``."""

    operator: str
    left: Node
    right: Node

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.left, self.right)


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Negation(Node):
    operand: Node

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.operand,)


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Call(Node):
    """One of the language's functions or of the primitives below them (see `perfmodel.expression.functions`)."""

    function: str
    arguments: tuple[Node, ...]

    @property
    def children(self) -> tuple[Node, ...]:
        return self.arguments


def rewritten(roots: Sequence[Node], rewrite: Callable[[Node, tuple[Node, ...]], Node | None]) -> list[Node]:
    """Returns the expressions with some nodes replaced; shared parts stay shared.

    Args:
        rewrite: given a node and its rewritten children, returns what takes its place; None for the same over these.
    """
    done: dict[Node, Node] = {}
    for node in walk(*roots):
        children = tuple(done[child] for child in node.children)
        done[node] = rewrite(node, children) or _over(node, children)
    return [done[root] for root in roots]


def _over(node: Node, children: tuple[Node, ...]) -> Node:
    if children == node.children:
        return node
    match node:
        case Binary(operator):
            return Binary(operator, *children)
        case Call(function):
            return Call(function, children)
    return Negation(*children)


def walk(*roots: Node, leaves: Container[Node] = ()) -> Iterator[Node]:
    """Yields every distinct node below the roots once, children before parents; nothing below one of the `leaves`."""
    seen: set[Node] = set()
    stack: list[tuple[Node, bool]] = [(root, False) for root in reversed(roots)]
    while stack:
        node, expanded = stack.pop()
        if expanded:
            yield node
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            if node not in leaves:
                stack.extend((child, False) for child in reversed(node.children))
