"""Which part of a model's value comes from which of its terms: Euler's theorem on homogeneous functions.

Each part is thought of as multiplied by a factor of one, and counts with the derivative of the value by that factor.
For sums and maxima, which are homogeneous in their arguments, the parts add up to the value: what hides behind
something larger counts nothing. What they leave is given as a rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from perfmodel.expression import ModelString, compile_nodes, to_text
from perfmodel.expression.derivative import gradient
from perfmodel.expression.tree import Binary, Call, Negation, Node, Parameter, walk

REST = "rest"
_SHAPES = ("smooth_max", "smooth_step", "overlap")
_LONGEST_LABEL = 60


@dataclass(frozen=True)
class Part:
    """One part of a model's value.

    Attributes:
        value: what it is by itself.
        contribution: what it adds to the model's value.
    """

    name: str
    value: float
    contribution: float


def attribute(string: ModelString, parameters: Mapping[str, float], features: Mapping[str, Any]) -> list[Part]:
    """The parts of one value: the innermost named terms, and what stands outside of any, largest contribution first."""
    nodes = _parts(string)
    if not nodes:
        return []
    factors = {node: Parameter(f"p__{i}") for i, node in enumerate(nodes.values())}
    scaled = _replaced(string.value, {node: Binary("*", factor, node) for node, factor in factors.items()})
    slopes = gradient(scaled)
    ones = {factor.name: 1.0 for factor in factors.values()}
    names = [name for name, node in nodes.items() if factors[node].name in slopes]
    wanted = [nodes[name] for name in names] + [slopes[factors[nodes[name]].name] for name in names] + [string.value]
    *found, total = (float(v) for v in compile_nodes(wanted)({**parameters, **ones}, features))
    values, contributions = found[: len(names)], found[len(names) :]
    parts = [Part(*row) for row in zip(names, values, contributions, strict=True)]
    rest = total - sum(contributions)
    if abs(rest) > 0.005 * abs(total):
        parts.append(Part(REST, rest, rest))
    return sorted(parts, key=lambda part: -part.contribution)


def _parts(string: ModelString) -> dict[str, Node]:
    """Disjoint parts by name: terms that hold no other term, and around them what is summed with them."""
    named = {node: name for name, node in string.terms.items()}
    parts: dict[str, Node] = {}
    pending, seen = [string.value], set()
    while pending:
        node = pending.pop(0)
        if node in seen:
            continue
        seen.add(node)
        inside = any(other is not node and other in named for other in walk(node))
        if node in named and not inside:
            parts[named[node]] = node
        elif isinstance(node, Binary) and node.operator in "+-":
            pending += [node.left, node.right]
        elif isinstance(node, Binary) and node.operator == "**" and (_costs(node.left) or inside):
            pending.append(node.left)
        elif not inside and len(_costs(node)) <= 1:
            parts.setdefault(_label(node), node)
        elif isinstance(node, Call) and node.function in _SHAPES:
            pending += node.arguments[:-1]
        elif isinstance(node, Negation) or (isinstance(node, Call) and node.function in ("min", "max")):
            pending += node.children
        else:
            pending += [child for child in node.children if _costs(child) or any(n in named for n in walk(child))]
    return parts


def _costs(node: Node) -> list[str]:
    """Parameters below a node that are no shape of a maximum or a step."""
    shapes = {
        call.arguments[-1]
        for call in walk(node)
        if isinstance(call, Call) and call.function in _SHAPES and isinstance(call.arguments[-1], Parameter)
    }
    return [n.name for n in walk(node) if isinstance(n, Parameter) and n not in shapes]


def _label(node: Node) -> str:
    costs = _costs(node)
    if len(costs) == 1:
        return costs[0]
    text = to_text(node)
    return text if len(text) <= _LONGEST_LABEL else text[: _LONGEST_LABEL - 1] + "…"


def _replaced(root: Node, new: Mapping[Node, Node]) -> Node:
    """The expression with some nodes replaced, shared parts staying shared."""
    done: dict[Node, Node] = {}
    for node in walk(root):
        children = tuple(done[child] for child in node.children)
        match node:
            case Binary(operator, _, _):
                copy: Node = Binary(operator, *children) if children != node.children else node
            case Call(function, _):
                copy = Call(function, children) if children != node.children else node
            case Negation(_):
                copy = Negation(*children) if children != node.children else node
            case _:
                copy = node
        done[node] = new.get(node, copy)
    return done[root]
