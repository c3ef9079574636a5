"""Follows graphs that are given by what follows each of their nodes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

N = TypeVar("N", bound=Hashable)


def reached(start: Iterable[N], following: Callable[[N], Iterable[N]]) -> set[N]:
    """Returns the nodes that are reached from some, themselves included; each is asked once what follows it."""
    found: set[N] = set()
    waiting = list(start)
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += following(node)
    return found
