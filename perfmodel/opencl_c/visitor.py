"""There is one way through the syntax tree and the lowered kernel alike: parts of nodes, walks, rewriting, dispatch.

Nodes are dataclasses derived from `Tree`. Which of their fields hold nodes follows from the declared types of these, so
a new type of node is described once, where it is declared, and every walk knows it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cache
from types import MethodType
from typing import (
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    TypeVar,
    cast,
    dataclass_transform,
    get_args,
    get_type_hints,
    overload,
)

P = ParamSpec("P")
R = TypeVar("R")
N = TypeVar("N", bound="Tree")
Method = TypeVar("Method", bound=Callable[..., Any])
Context = TypeVar("Context", bound="Dispatch[..., Any]")


@dataclass_transform(eq_default=False, frozen_default=True)
class Tree:
    """A node has as its children its fields of nodes, of tuples of nodes, and of tuples of (key, node).

    Subclasses are frozen dataclasses, and their objects are equal only to themselves.
    """

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, eq=False)(cls)


def _child_fields(node_type: Any) -> tuple[str, ...]:
    hints = get_type_hints(node_type)
    return tuple(field.name for field in fields(node_type) if _holds_nodes(hints[field.name]))


def _holds_nodes(hint: Any) -> bool:
    if arguments := get_args(hint):
        return any(map(_holds_nodes, arguments))
    return isinstance(hint, type) and issubclass(hint, Tree)


child_fields: Callable[..., tuple[str, ...]] = cache(_child_fields)
"""Names the fields of a type of node that hold children, in their order."""


def children(node: Tree) -> list[Any]:
    """Returns the nodes that a node is made of, in the order of its fields."""
    found: list[Any] = []
    for name in child_fields(type(node)):
        value = getattr(node, name)
        if isinstance(value, tuple):
            found += [item[1] if isinstance(item, tuple) else item for item in value]
        elif value is not None:
            found.append(value)
    return found


def walk(node: Tree) -> Iterator[Any]:
    """Iterates over a node and all within it, children first."""
    found: list[Any] = []
    waiting = [node]
    while waiting:  # the last child first, and backwards in the end
        each = waiting.pop()
        found.append(each)
        waiting += children(each)
    found.reverse()
    return iter(found)


def rebuilt(node: N, visit: Callable[[Any], Any]) -> N:
    """Returns the node with what a function makes of each child; it is the node itself if they stay what they are.

    In a tuple of nodes, None leaves a node out, and several nodes may take the place of one.
    """
    changes = {}
    for name in child_fields(type(node)):
        old = getattr(node, name)
        new = _listed(old, visit) if isinstance(old, tuple) else None if old is None else visit(old)
        if new is not old:
            changes[name] = new
    return replace(cast(Any, node), **changes) if changes else node


def _listed(old: tuple[Any, ...], visit: Callable[[Any], Any]) -> tuple[Any, ...]:
    found: list[Any] = []
    for item in old:
        new = (item[0], visit(item[1])) if isinstance(item, tuple) else visit(item)
        if isinstance(new, list):
            found += new
        elif new is not None:
            found.append(new)
    return old if len(found) == len(old) and all(map(operator.is_, found, old)) else tuple(found)


class Dispatch(Generic[P, R]):
    """A dispatch is a method that has an implementation for each type of node.

    ``value = Dispatch[[], Value](Expression)`` stands in a class; ``@value.on(Binary)`` before the method that is its
    implementation for that type. Whoever has none, nor has one of its base classes, is named as soon as the class is
    made. Subclasses override the methods by their names.

    Args:
        union: the types of nodes that must have an implementation.
    """

    def __init__(self, union: Any) -> None:
        self.types: tuple[type, ...] = get_args(union) or (union,)
        self.methods: dict[type, str] = {}

    def on(self, *types: type) -> Callable[[Method], Method]:
        """Registers the method that follows as the implementation for some types."""

        def register(method: Method) -> Method:
            self.methods.update(dict.fromkeys(types, method.__name__))
            return method

        return register

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = f"{owner.__name__}.{name}"
        for node_type in self.types:
            self._method(node_type)

    def __call__(self, instance: Any, node: Any, *args: P.args, **kwargs: P.kwargs) -> R:
        method = self.methods.get(type(node)) or self._method(type(node))
        return getattr(instance, method)(node, *args, **kwargs)  # type: ignore[no-any-return]

    def _method(self, node_type: type) -> str:
        """Returns the name of the implementation for a type, that of its nearest base class if it has none itself."""
        found = next((self.methods[base] for base in node_type.__mro__ if base in self.methods), None)
        if found is None:
            raise TypeError(f"{self.name} has no implementation for {node_type.__name__}")
        self.methods[node_type] = found
        return found

    @overload
    def __get__(self: Context, instance: None, owner: type) -> Context: ...

    @overload
    def __get__(self, instance: object, owner: type) -> Callable[Concatenate[Any, P], R]: ...

    def __get__(self, instance: Any, owner: type) -> Any:
        return self if instance is None else MethodType(self, instance)
