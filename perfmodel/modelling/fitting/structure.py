"""Tells from a model's tree what its parameters are, before any number is fitted.

The search for a non-linear fit needs to know which parameters are costs (the model is linear in them once sums stand
for its maxima), which are shapes, how large each of them is likely to be, and which cannot be seen at all because
their features are zero in every measurement.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from perfmodel.expression.tree import Binary, Call, FeatureName, Negation, Node, Number, Parameter, rewritten, walk

_COMPETING = frozenset({"max", "min", "smooth_max", "overlap"})
"""Names of functions in which one argument can hide the others."""

_SUMMED = {"max": 0, "smooth_max": 1, "overlap": 1}
"""Functions that the linear surrogate replaces by a sum, with the number of trailing shape arguments to drop."""

_STEPS = frozenset({"step", "smooth_step"})

_ODD = frozenset({"sqrt", "abs", "ceil", "floor", "tanh"})
"""Functions of one argument that are zero where it is."""


def edge_parameters(root: Node) -> frozenset[str]:
    """Returns parameters that are the edge of a `smooth_max` or `smooth_step`: the reciprocal of a difference."""
    return _last_arguments(root, {"smooth_max", "smooth_step"})


def exponent_parameters(root: Node) -> frozenset[str]:
    """Returns parameters that are the exponent of an `overlap`: dimensionless, from 1 (sum) upwards (maximum)."""
    return _last_arguments(root, {"overlap"})


def thresholds(root: Node) -> dict[str, str]:
    """Returns parameters that are the end of a `saturating` of a feature, with that feature.

    The derivative by them is zero, so that only trying finds them.
    """
    found = {}
    for node in walk(root):
        match node:
            case Call("saturating", (FeatureName(feature), *_, Parameter(name))):
                found[name] = feature
    return found


def _last_arguments(root: Node, functions: set[str]) -> frozenset[str]:
    calls = (node for node in walk(root) if isinstance(node, Call) and node.function in functions)
    return frozenset(call.arguments[-1].name for call in calls if isinstance(call.arguments[-1], Parameter))


def competing_parameters(root: Node) -> frozenset[str]:
    """Returns parameters below a function in which one argument can hide the others."""
    calls = [node for node in walk(root) if isinstance(node, Call) and node.function in _COMPETING]
    return frozenset(node.name for node in walk(*calls) if isinstance(node, Parameter))


def absent_parameters(root: Node, zero_features: frozenset[str]) -> dict[str, tuple[str, ...]]:
    """Returns parameters that cannot act because every product they stand in is zero, each with the features to
    blame."""
    vanishing: set[Node] = set()
    for node in walk(root):
        if _vanishes(node, vanishing, zero_features):
            vanishing.add(node)
    live = {node.name for node in _walk_outside(root, vanishing) if isinstance(node, Parameter)}
    absent: dict[str, set[str]] = defaultdict(set)
    for product in vanishing:
        inside = list(walk(product))
        culprits = {node.name for node in inside if isinstance(node, FeatureName)} & zero_features
        for node in inside:
            if isinstance(node, Parameter) and node.name not in live:
                absent[node.name] |= culprits
    return {name: tuple(sorted(culprits)) for name, culprits in absent.items()}


def _vanishes(node: Node, vanishing: set[Node], zero_features: frozenset[str]) -> bool:
    match node:
        case FeatureName(name):
            return name in zero_features
        case Number(value):
            return value == 0
        case Binary("*", left, right):
            return left in vanishing or right in vanishing
        case Binary("/", left, _):
            return left in vanishing
        case Binary("**", left, Number(value)):
            return value > 0 and left in vanishing
        case Binary("+" | "-") | Negation():
            return all(child in vanishing for child in node.children)
        case Call(function, arguments) if function in _ODD or function in _COMPETING:
            shapes = _SUMMED.get(function, 0)
            return all(argument in vanishing for argument in arguments[: len(arguments) - shapes])
    return False


def _walk_outside(root: Node, excluded: set[Node]) -> Iterator[Node]:
    """Yields every distinct node reachable from the root without passing an excluded one."""
    seen = set(excluded)
    stack = [root]
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            stack.extend(node.children)
            yield node


def surrogate(root: Node) -> Node:
    """Returns the tree with sums for maxima and overlaps: linear in the costs wherever the model combines costs by
    them.

    A step that compares costs of the sum (a maximum spelled out) is taken as one.
    """
    every_step = {node for node in walk(root) if isinstance(node, Call) and node.function in _STEPS}
    costs = linear_parameters(_simplified(root, every_step))
    return _simplified(root, {step for step in every_step if _parameter_names(step.arguments[0]) <= costs})


def _parameter_names(node: Node) -> frozenset[str]:
    return frozenset(below.name for below in walk(node) if isinstance(below, Parameter))


def _simplified(root: Node, steps: Set[Node]) -> Node:
    """Returns the tree with sums instead of maxima and one instead of the given steps."""

    def simpler(node: Node, children: tuple[Node, ...]) -> Node | None:
        if node in steps and _parameter_names(node.children[0]):
            return Number(1.0)
        if isinstance(node, Call) and node.function in _SUMMED:
            costs = children[: len(children) - _SUMMED[node.function]]
            return reduce(lambda left, right: Binary("+", left, right), costs)
        return None

    return rewritten([root], simpler)[0]


def substituted(root: Node, nodes: Mapping[str, Node]) -> Node:
    """Returns the tree with a node in the place of each parameter that has one."""
    return rewritten([root], lambda node, _: nodes.get(node.name) if isinstance(node, Parameter) else None)[0]


def linear_parameters(root: Node) -> frozenset[str]:
    """Returns parameters in which the tree is jointly linear (with an offset) while all the others are held."""
    linear: dict[Node, frozenset[str]] = {}
    shape: set[str] = set()
    for node in walk(root):
        below = [linear[child] for child in node.children]
        match node:
            case Parameter(name):
                linear[node] = frozenset({name})
            case Binary("*", _, _) if below[0] and below[1]:
                kept, given_up = sorted(below, key=len, reverse=True)
                linear[node] = kept
                shape |= given_up
            case Binary("/", _, _):
                linear[node] = below[0]
                shape |= below[1]
            case Call("saturating"):  # (n, a, b, c, a2, c2, n_sat) is a n**b + c up to n_sat, then a2 n + c2
                linear[node] = below[1] | below[3] | below[4] | below[5]
                shape.update(below[0], below[2], below[6])
            case Binary("**") | Call():
                linear[node] = frozenset()
                shape.update(*below)
            case _:
                linear[node] = frozenset().union(*below)
    return linear[root] - shape


def natural_scales(root: Node, features: Mapping[str, NDArray[np.float64]], output: float) -> dict[str, float]:
    """Returns the magnitude that makes each parameter's part of the model as large as the output asks.

    Args:
        root: The model's tree.
        features: The measurements' columns, shape (N,) each.
        output: The typical output in seconds.

    The known magnitudes (features, numbers, arguments of transcendental functions) rise from the leaves; what is
    asked of each node then descends from the output. Multiplying a feature by c divides the scale of its parameter
    by c, whatever the units.
    """
    nodes = list(walk(root))
    known: dict[Node, float | None] = {}
    for node in nodes:
        known[node] = _known_magnitude(node, known, features)
    asked: dict[Node, list[float]] = defaultdict(list)
    asked[root].append(output)
    scales: dict[str, list[float]] = defaultdict(list)
    for node in reversed(nodes):
        magnitude = _geometric_mean(asked[node])
        if isinstance(node, Parameter):
            scales[node.name].append(magnitude)
        for child, value in zip(node.children, _asked_of_children(node, magnitude, known, output), strict=True):
            asked[child].append(value)
    return {name: _geometric_mean(values) for name, values in scales.items()}


def typical(values: NDArray[np.float64]) -> float:
    """Returns the median magnitude of the values that are not zero, 1 where all are."""
    magnitudes = np.abs(values[values != 0])
    return float(np.median(magnitudes)) if magnitudes.size else 1.0


def _geometric_mean(values: Iterable[float]) -> float:
    return math.exp(sum(logs := [math.log(value) for value in values]) / len(logs))


def _known_magnitude(
    node: Node, known: Mapping[Node, float | None], features: Mapping[str, NDArray[np.float64]]
) -> float | None:
    below = [known[child] for child in node.children]
    present = [magnitude for magnitude in below if magnitude is not None]
    match node:
        case Number(value):
            return abs(value) or None
        case FeatureName(name):
            return typical(features[name])
        case Binary("*" | "/" as operator, _, _):
            if below[0] is None or below[1] is None:
                return None
            return below[0] * below[1] if operator == "*" else below[0] / below[1]
        case Binary("**", _, Number(value)):
            return None if below[0] is None else _bounded_power(below[0], value)
        case Binary("**"):
            return None
        case Call("saturating"):
            return None
        case Call("sqrt"):
            return None if below[0] is None else math.sqrt(below[0])
        case Call("abs" | "ceil" | "floor" | "max" | "min" | "smooth_max" | "overlap") | Binary() | Negation():
            return max(present, default=None)
        case Call():
            return 1.0
    return None


def _asked_of_children(
    node: Node, magnitude: float, known: Mapping[Node, float | None], output: float
) -> tuple[float, ...]:
    below = [known[child] for child in node.children]
    match node:
        case Binary("*", _, _):
            return _asked_of_factors(magnitude, *below)
        case Binary("/", _, _):
            numerator, denominator = below
            if denominator is None:
                denominator = 1.0 if numerator is None else numerator / magnitude
            return (magnitude * denominator if numerator is None else numerator, denominator)
        case Binary("**", _, Number(value)):
            return (below[0] or _bounded_power(magnitude, 1 / value if value else 0.0), abs(value) or 1.0)
        case Binary("**", _, _):
            return (below[0] or 1.0, 1.0)
        case Call("sqrt"):
            return (magnitude**2,)
        case Call("smooth_max", arguments):
            return (magnitude,) * (len(arguments) - 1) + (1 / magnitude,)
        case Call("overlap", arguments):
            return (magnitude,) * (len(arguments) - 1) + (2.0,)
        case Call("smooth_step"):
            difference = below[0] or output
            return (difference, 1 / difference)
        case Call("step"):
            return (below[0] or output,)
        case Call("saturating"):
            n = below[0] or 1.0
            return (n, magnitude / n, 1.0, magnitude, magnitude / n, magnitude, n)
        case Call("abs" | "ceil" | "floor" | "max" | "min") | Binary() | Negation():
            return (magnitude,) * len(below)
    return tuple(value or 1.0 for value in below)


def _asked_of_factors(magnitude: float, left: float | None, right: float | None) -> tuple[float, float]:
    if left is None and right is None:
        return (math.sqrt(magnitude), math.sqrt(magnitude))
    if left is None:
        return (magnitude / right, right) if right else (magnitude, 1.0)
    return (left, magnitude / left if right is None else right)


def _bounded_power(base: float, exponent: float) -> float:
    """Returns base ** exponent kept within floating-point range."""
    return math.exp(max(-300.0, min(300.0, exponent * math.log(base))))
