"""Divides a model's value among its terms, by Aumann and Shapley's prices of the parts.

All parts grow together from nothing to what they are, and each is given what the value gains by its own growth on the
way ("Values of Non-Atomic Games", 1974; for models: Sundararajan, Taly, Yan, "Axiomatic Attribution for Deep
Networks", 2017, where it is called integrated gradients). The parts add up to the value, and none is negative in a
model that grows with each of them along that way: in sums, maxima and overlaps, however soft. What hides behind
something larger counts nothing. What the value is without any of its parts is given as a rest.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.expression import ModelString, compile_nodes, to_text
from perfmodel.expression.derivative import gradient
from perfmodel.expression.tree import Binary, Call, Negation, Node, Number, Parameter, rewritten, walk

REST = "rest"
_SHAPES = ("smooth_max", "smooth_step", "overlap")
_SWITCHES = ("smooth_step",)
_LONGEST_LABEL = 60
_NEGLIGIBLE = 0.005
_ROUNDING = 1e-6


@dataclass(frozen=True)
class Part:
    """One part of a model's value.

    Attributes:
        value: what it is by itself, times the factors around it.
        contribution: what it adds to the model's value.
    """

    name: str
    value: float
    contribution: float


def attribute(string: ModelString, parameters: Mapping[str, float], features: Mapping[str, Any]) -> list[Part]:
    """Returns the parts of one value: the innermost named terms, and what stands outside of any, largest contribution
    first."""
    division = _division(string)
    if not division.names:
        return []
    growing: dict[str, Any] = {**parameters, **dict.fromkeys(division.factors, _POINTS)}
    with np.errstate(all="ignore"):
        gains = [np.broadcast_to(gain, _POINTS.shape) for gain in division.on_the_way(growing, features)]
    *values, total = (float(v) for v in division.values(parameters, features))
    contributions = _settled([float(np.nan_to_num(gain) @ _WEIGHTS) for gain in gains], total)
    parts = [Part(*row) for row in zip(division.names, values, contributions, strict=True)]
    rest = total - sum(contributions)
    if abs(rest) > _NEGLIGIBLE * abs(total):
        parts.append(Part(REST, rest, rest))
    return sorted(parts, key=lambda part: -part.contribution)


@dataclass(frozen=True)
class _Division:
    """The parts of a model, whatever its parameters and features.

    Attributes:
        factors: parameters, one for each part, by which it grows from nothing to what it is.
        on_the_way: what the model's value gains by each part's growth.
        values: what each part is by itself, and last the model's value.
    """

    names: list[str]
    factors: list[str]
    on_the_way: Callable[..., Sequence[NDArray[np.float64]]]
    values: Callable[..., Sequence[NDArray[np.float64]]]


@lru_cache(8)
def _division(string: ModelString) -> _Division:
    found = _parts(string)
    factors = {part.node: Parameter(f"p__{i}") for i, part in enumerate(found.values())}
    slopes = gradient(_replaced(string.value, {node: Binary("*", factor, node) for node, factor in factors.items()}))
    names = [name for name, part in found.items() if factors[part.node].name in slopes]
    on_the_way = compile_nodes([slopes[factors[found[name].node].name] for name in names])
    values = compile_nodes([*(found[name].alone for name in names), string.value])
    return _Division(names, [factor.name for factor in factors.values()], on_the_way, values)


def _settled(contributions: list[float], total: float) -> list[float]:
    """Returns the contributions without the integration's error: a tiny negative one is 0, and their sum is the
    total."""
    settled = [0.0 if -_ROUNDING * abs(total) < each < 0 else each for each in contributions]
    left = total - sum(settled)
    if settled and 0 < abs(left) <= _NEGLIGIBLE * abs(total):
        largest = max(range(len(settled)), key=lambda i: abs(settled[i]))
        settled[largest] += left
    return settled


def _points() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Returns the points and weights of a quadrature from 0 to 1, denser towards 0, where soft maxima turn into hard
    ones."""
    ends = np.concatenate([[0.0], 10.0 ** np.arange(-8, 1)])
    places, weights = np.polynomial.legendre.leggauss(10)
    middles, halves = (ends[1:] + ends[:-1]) / 2, (ends[1:] - ends[:-1]) / 2
    return (middles[:, None] + halves[:, None] * places).ravel(), (halves[:, None] * weights).ravel()


_POINTS, _WEIGHTS = _points()


@dataclass(frozen=True)
class _Place:
    """A part of an expression, and what it stands for there: itself, times the factors around it."""

    node: Node
    alone: Node


def _parts(string: ModelString) -> dict[str, _Place]:
    """Returns disjoint parts by name: terms that hold no other term, products, and around them what is summed with
    them.

    A product is gone into where one factor alone has costs; in others, such as a cost times the part of all data that
    a cache misses, no factor is a time by itself.
    """
    named = {node: name for name, node in string.terms.items()}
    parts: dict[str, _Place] = {}
    pending, seen = [_Place(string.value, string.value)], set()
    while pending:
        place = pending.pop(0)
        node = place.node
        if node in seen:
            continue
        seen.add(node)
        inside = any(other is not node and other in named for other in walk(node))
        if node in named and not inside:
            parts[named[node]] = place
        elif isinstance(node, Binary) and node.operator in "+-":
            pending += _within(place, node.left, node.right)
        elif isinstance(node, Binary) and node.operator == "**" and (_costs(node.left) or inside):
            pending += _within(place, node.left)
        elif not inside and len(_costs(node)) <= 1:
            parts.setdefault(_label(node, named), place)
        elif isinstance(node, Call) and node.function in _SHAPES:
            pending += _within(place, *node.arguments[:-1])
        elif isinstance(node, Negation) or (isinstance(node, Call) and node.function in ("min", "max")):
            pending += _within(place, *node.children)
        elif isinstance(node, Binary) and node.operator in "*/":
            factors = _factors(node, named)
            whole = [n for n in factors if not _is_switch(n) and (_costs(n) or any(i in named for i in walk(n)))]
            if len(whole) == 1 and not factors[whole[0]]:
                switches: dict[Node, Node] = {n: Number(1.0) for n in factors if _is_switch(n)}
                pending.append(_Place(whole[0], _replaced(place.alone, switches)))
            else:
                parts.setdefault(named.get(node) or _label(node, named), place)
        else:
            pending += _within(place, *(c for c in node.children if _costs(c) or any(n in named for n in walk(c))))
    return parts


def _within(place: _Place, *inner: Node) -> list[_Place]:
    return [_Place(node, _replaced(place.alone, {place.node: node})) for node in inner]


def _factors(product: Node, terms: Container[Node]) -> dict[Node, bool]:
    """Returns the factors of a product, each with whether it is a divisor; named terms stay whole."""
    factors: dict[Node, bool] = {}
    pending = [(product, False)]
    while pending:
        node, divides = pending.pop()
        if isinstance(node, Binary) and node.operator in "*/" and (node is product or node not in terms):
            pending += [(node.left, divides), (node.right, divides != (node.operator == "/"))]
        else:
            factors[node] = divides
    return factors


def _is_switch(node: Node) -> bool:
    return isinstance(node, Call) and node.function in _SWITCHES


def _costs(node: Node) -> list[str]:
    """Returns the parameters below a node, without those that shape a maximum or a step."""
    shapes = {
        call.arguments[-1]
        for call in walk(node)
        if isinstance(call, Call) and call.function in _SHAPES and isinstance(call.arguments[-1], Parameter)
    }
    return [n.name for n in walk(node) if isinstance(n, Parameter) and n not in shapes]


def _label(node: Node, terms: Container[Node]) -> str:
    """Returns a node's name for people: its only cost or, of several, the one that is a factor by itself."""
    costs = _costs(node)
    if len(costs) > 1:
        costs = [n.name for n, divides in _factors(node, terms).items() if isinstance(n, Parameter) and not divides]
    if len(costs) == 1:
        return costs[0]
    text = to_text(node)
    return text if len(text) <= _LONGEST_LABEL else text[: _LONGEST_LABEL - 1] + "…"


def _replaced(root: Node, new: Mapping[Node, Node]) -> Node:
    return rewritten([root], lambda node, _: new.get(node))[0]
