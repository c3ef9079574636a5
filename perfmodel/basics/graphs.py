"""Follows graphs that are given by what follows each of their nodes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
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


def immediate_dominators(
    start: N, following: Callable[[N], Iterable[N]], before: Callable[[N], Iterable[N]]
) -> dict[N, N]:
    """Returns the last node before each that every way to it from a start goes through, of those that are reached; the
    start for itself (Cooper, Harvey and Kennedy 2001)."""
    order: list[N] = []
    seen = {start}
    stack = [(start, iter(following(start)))]
    while stack:
        node, rest = stack[-1]
        for each in rest:
            if each not in seen:
                seen.add(each)
                stack.append((each, iter(following(each))))
                break
        else:
            order.append(node)
            stack.pop()
    places = {node: place for place, node in enumerate(order)}
    found = {start: start}

    def common(one: N, other: N) -> N:
        while one != other:
            if places[one] < places[other]:
                one = found[one]
            else:
                other = found[other]
        return one

    changed = True
    while changed:
        changed = False
        for node in reversed(order[:-1]):
            known = [each for each in before(node) if each in found]
            new = known[0]
            for each in known[1:]:
                new = common(each, new)
            if found.get(node) != new:
                found[node], changed = new, True
    return found


def dominates(dominators: Mapping[N, N], above: N, below: N) -> bool:
    """Returns whether every way to one node goes through another; each dominates itself."""
    while below != above and dominators[below] != below:
        below = dominators[below]
    return below == above
