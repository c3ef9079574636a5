"""Formulas of functions: how they evaluate, what they are lowered into, and their partial derivatives, as nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from perfmodel.expression.algebra import ONE, ZERO, add, call, chain, divide, multiply, negate, power, subtract
from perfmodel.expression.tree import Node, Number

Arguments = tuple[Node, ...]
HALF = Number(0.5)


def elementwise(function: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a plain numpy expression the `out` argument of a ufunc; it is written only when the result is complete."""

    def apply(*arguments: Any, out: Any = None) -> Any:
        result = function(*arguments)
        if out is None:
            return result
        out[...] = result
        return out

    return apply


@elementwise
def step(x: Any) -> Any:
    return np.heaviside(x, 1.0)


@elementwise
def product(x: Any, y: Any) -> Any:
    result = np.multiply(x, y)
    return np.where((x == 0) | (y == 0), 0.0, result) if np.isnan(result).any() else result


@elementwise
def power_log(x: Any, y: Any) -> Any:
    return np.where(x == 0, 0.0, product(np.power(x, y), np.log(x)))


@elementwise
def soft_step(x: Any) -> Any:
    """Returns (1 + tanh(x)) / 2 with full relative precision, also where it is nearly 0."""
    return 1 / (1 + np.exp(-2 * x))


@elementwise
def sech_squared(x: Any) -> Any:
    """Returns sech(x)**2, exact to its last digits, which 1 - tanh**2 loses."""
    decay = np.exp(-2 * np.abs(x))
    return 4 * decay / (1 + decay) ** 2


@elementwise
def smooth_max(a: Any, b: Any, p: Any) -> Any:
    """Returns a*s(a-b) + b*s(b-a), as the larger of them less what the smaller adds: so nothing cancels.

    With p below 0 it is a smooth minimum.
    """
    distance = np.abs(a - b)
    less = product(distance, soft_step(-np.abs(p) * distance))
    upper = np.maximum(a, b) - less
    return np.where(p < 0, np.minimum(a, b) + less, upper) if np.any(p < 0) else upper


@elementwise
def ratio(x: Any, y: Any) -> Any:
    return np.where(y == 0, 1.0, np.divide(x, y))


@elementwise
def select(x: Any, y: Any, then: Any, otherwise: Any) -> Any:
    return np.where(np.less_equal(x, y), then, otherwise)


def flat_partials(arguments: Arguments, node: Node) -> tuple[Node, ...]:
    """Returns the partial derivatives of a function that is constant almost everywhere: zeros."""
    return (ZERO,) * len(arguments)


def minimum_partials(arguments: Arguments, node: Node) -> tuple[Node, ...]:
    x, y = arguments
    return call("select", x, y, ONE, ZERO), call("select", x, y, ZERO, ONE)


def maximum_partials(arguments: Arguments, node: Node) -> tuple[Node, ...]:
    x, y = arguments
    return call("select", y, x, ONE, ZERO), call("select", y, x, ZERO, ONE)


def select_partials(arguments: Arguments, node: Node) -> tuple[Node, ...]:
    x, y = arguments[:2]
    return ZERO, ZERO, call("select", x, y, ONE, ZERO), call("select", x, y, ZERO, ONE)


def lower_smooth_step(arguments: Arguments) -> Node:
    x, p = arguments
    return call("soft_step", multiply(p, x))


def smooth_max_partials(arguments: Arguments, node: Node) -> tuple[Node, ...]:
    """Returns, for x = p*(a - b): s(x) + x/2*sech(x)**2, the same of -x, and (a - b)**2/2*sech(x)**2."""
    a, b, p = arguments
    difference = subtract(a, b)
    x = multiply(p, difference)
    steepness = call("sech_squared", x)
    bump = multiply(call("product", x, steepness), HALF)
    by_p = call("product", call("product", difference, steepness), difference)
    return add(call("soft_step", x), bump), subtract(call("soft_step", negate(x)), bump), multiply(by_p, HALF)


def lower_saturating(arguments: Arguments) -> Node:
    n, a, b, c, a2, c2, n_sat = arguments
    return call("select", n, n_sat, add(multiply(a, power(n, b)), c), add(multiply(a2, n), c2))


def lower_group_utilization(arguments: Arguments) -> Node:
    """Returns the published sum as x/ceil(x) with x = n_groups/n_units, as floor(x) plus the rest is x; no groups
    utilize 0."""
    x = divide(*arguments)
    return divide(x, call("maximum", call("ceil", x), ONE))


def lower_overlap(arguments: Arguments) -> Node:
    largest, _, powers, p = _overlap_parts(arguments)
    return multiply(largest, power(powers, divide(ONE, p)))


def overlap_partials(arguments: Arguments, node: Node) -> tuple[Node, ...]:
    """Returns the partial derivatives, relative to the largest resource, so that nothing overflows however large p is.

    The p-norm has no gradient where all resources are 0; there each counts as equal to the largest.
    """
    _, ratios, powers, p = _overlap_parts(arguments)
    scale = power(powers, divide(subtract(ONE, p), p))
    logs = _total([call("power_log", ratio, p) for ratio in ratios])
    slope = subtract(divide(logs, powers), divide(call("log", powers), p))
    by_resource = [multiply(power(ratio, subtract(p, ONE)), scale) for ratio in ratios]
    return (*by_resource, divide(multiply(node, slope), p))


def _overlap_parts(arguments: Arguments) -> tuple[Node, list[Node], Node, Node]:
    """Returns the maximum, each resource relative to it, the sum of their p-th powers (at least 1), and p."""
    *resources, p = arguments
    largest = chain("maximum", tuple(resources))
    ratios = [call("ratio", resource, largest) for resource in resources]
    return largest, ratios, _total([power(ratio, p) for ratio in ratios]), p


def _total(summands: list[Node]) -> Node:
    result = summands[0]
    for summand in summands[1:]:
        result = add(result, summand)
    return result
