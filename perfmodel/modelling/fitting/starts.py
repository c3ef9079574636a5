"""Chooses where the search for a non-linear fit begins: a deterministic, ranked list of starting points."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np

from perfmodel.basics.errors import FitError
from perfmodel.expression import compile_nodes
from perfmodel.modelling.fitting.linear import solve_linear
from perfmodel.modelling.fitting.problem import Array, Problem
from perfmodel.modelling.fitting.structure import (
    edge_parameters,
    exponent_parameters,
    linear_parameters,
    surrogate,
    thresholds,
)

Values = dict[str, float]

_SEED = 20261120
_MAX_SHAPES = 128
_MAX_THRESHOLDS = 64
_RANKED_STARTS = 8
_PERTURBED_STARTS = 6
_EXPONENTS = (1.1, 2.0, 6.0, 24.0)
_FLOOR = 0.01
"""A cost that the surrogate puts at zero starts at this fraction of the most it could be, so that it can grow."""


def starting_points(problem: Problem, given: Mapping[str, float]) -> list[Values]:
    """Returns starting values of the free parameters, most promising first.

    Shape parameters are tried at several magnitudes around their natural scale. For each combination the costs come
    from the linear surrogate (sums instead of maxima), once by least squares and once as the largest that no
    measurement contradicts, which is right where each branch dominates somewhere. The combinations that predict best
    are kept, and the best is perturbed. Values in `given` replace estimates.

    Raises:
        FitError: The model has no finite value at any starting point.
    """
    random = np.random.default_rng(_SEED)
    estimates = [
        {name: given.get(name, values.get(name, problem.scales[name])) for name in problem.free}
        for values in _estimates(problem, given, random)
    ]
    costs = [problem.cost(values) for values in estimates]
    order = [index for index in np.argsort(costs, kind="stable") if np.isfinite(costs[index])]
    if not order:
        raise _no_finite_value(problem, estimates[0])
    ranked = _varied(problem, [estimates[index] for index in order])
    perturbed = [_perturbed(problem, ranked[0], random) for _ in range(_PERTURBED_STARTS)]
    return [dict(values) for values in dict.fromkeys(tuple(values.items()) for values in ranked + perturbed)]


def switched(problem: Problem, values: Mapping[str, float]) -> list[Values]:
    """Returns copies of the point with one edge, exponent or threshold at a time at each of its other levels.

    A switch that is too soft or too hard is a local minimum of its own; with the costs of a good fit the right level
    is within reach.
    """
    return [{**values, name: level} for name in _switches(problem) for level in _levels(problem, name)]


def _switches(problem: Problem) -> tuple[str, ...]:
    root = problem.model.value
    switches = edge_parameters(root) | exponent_parameters(root) | set(problem.flat)
    return tuple(name for name in problem.free if name in switches)


def _varied(problem: Problem, ordered: list[Values]) -> list[Values]:
    """Returns the first few points, and the first with each level of every switch: minima differ most by their
    switches."""
    switches = _switches(problem)
    seen: set[tuple[str, float]] = set()
    chosen: list[Values] = []
    for values in ordered:
        levels = {(name, values[name]) for name in switches}
        if len(chosen) < _RANKED_STARTS or not levels <= seen:
            chosen.append(values)
            seen |= levels
    return chosen


def _estimates(problem: Problem, given: Mapping[str, float], random: np.random.Generator) -> Iterator[Values]:
    if set(problem.free) <= set(given):
        yield {}
        return
    tree = surrogate(problem.model.value)
    costs = [name for name in problem.free if name in linear_parameters(tree)]
    evaluate = compile_nodes([tree])

    def total(values: Mapping[str, float]) -> Array:
        (column,) = evaluate({**values, **problem.fixed}, problem.features)
        return np.array(np.broadcast_to(column, problem.output.shape), dtype=np.float64)

    for shapes in _shape_points(problem, given, costs, random):
        yield from (shapes | estimate for estimate in _cost_estimates(problem, total, shapes, costs))


def _shape_points(
    problem: Problem, given: Mapping[str, float], costs: list[str], random: np.random.Generator
) -> Iterator[Values]:
    names = [name for name in problem.free if name not in costs]
    levels = [(given[name],) if name in given else _levels(problem, name) for name in names]
    points: Iterable[tuple[float, ...]] = itertools.product(*levels)
    if math.prod(map(len, levels)) > _MAX_SHAPES:
        points = (tuple(map(float, map(random.choice, levels))) for _ in range(_MAX_SHAPES))
    yield from (dict(zip(names, point, strict=True)) for point in points)


def _levels(problem: Problem, name: str) -> tuple[float, ...]:
    scale, (lower, upper) = problem.scales[name], problem.bounds[name]
    root = problem.model.value
    levels: tuple[float, ...]
    if name in (features := thresholds(root)):
        levels = _between(problem.features[features[name]])
    elif name in exponent_parameters(root):
        levels = _EXPONENTS
    elif name in edge_parameters(root):
        magnitudes = np.abs(problem.output[problem.output != 0])
        shortest = float(np.median(magnitudes) / magnitudes.min()) if magnitudes.size else 1.0
        levels = (0.1 * scale, scale, 10 * scale, 10 * scale * shortest)
    else:
        levels = tuple(scale * np.logspace(-3, 3, 13))
        levels += tuple(-level for level in levels if lower < 0)
    return tuple(sorted({float(np.clip(level, lower, upper)) for level in levels}))


def _between(column: Array) -> tuple[float, ...]:
    """Returns the middles between neighbouring values of a feature, at most 64 of them."""
    values = np.unique(column)
    middles = (values[1:] + values[:-1]) / 2 if values.size > 1 else values
    chosen = np.linspace(0, middles.size - 1, min(middles.size, _MAX_THRESHOLDS)).round().astype(int)
    return tuple(map(float, middles[chosen]))


def _cost_estimates(
    problem: Problem, total: Callable[[Values], Array], shapes: Values, costs: list[str]
) -> Iterator[Values]:
    zeros = shapes | dict.fromkeys(costs, 0.0)
    offset = total(zeros)
    scales = np.array([problem.scales[name] for name in costs])
    columns = [total(zeros | {name: scale}) - offset for name, scale in zip(costs, scales, strict=True)]
    design = problem.weights[:, None] * np.stack(columns, axis=1) if costs else np.empty((len(offset), 0))
    target = problem.weights * (problem.output - offset)
    if not costs or not np.isfinite(np.sum(design**2) + np.sum(target**2)):
        yield dict(zip(costs, scales, strict=True))
        return
    lower, upper = np.array([problem.bounds[name] for name in costs]).T / scales
    most = np.array([_largest_consistent(column, target) for column in design.T])
    fitted = solve_linear(design, target, lower, upper)
    for estimate in (np.where(fitted == 0, _FLOOR * most, fitted), most):
        yield dict(zip(costs, np.clip(estimate, lower, upper) * scales, strict=True))


def _largest_consistent(column: Array, target: Array) -> float:
    """Returns the largest factor with which the column alone exceeds no target, 1 where nothing limits it."""
    limiting = (column > 0) & (target > 0)
    return float(np.min(target[limiting] / column[limiting])) if limiting.any() else 1.0


def _perturbed(problem: Problem, values: Values, random: np.random.Generator) -> Values:
    factors = np.exp(random.normal(0.0, 0.7, len(values)))
    moved = zip(values.items(), factors, strict=True)
    return {name: float(np.clip(value * factor, *problem.bounds[name])) for (name, value), factor in moved}


def _no_finite_value(problem: Problem, values: Values) -> FitError:
    row = int(np.argmax(~np.isfinite(problem.predict(values))))
    return FitError(
        f"the model has no finite value for measurement {problem.labels[row]!r} at any starting point;"
        " give a start or bounds that keep its functions inside their domains"
    )
