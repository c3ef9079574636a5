"""Non-linear least squares by lmfit, in coordinates of order one and from several starting points."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.errors import FitError
from perfmodel.modelling.fitting.problem import Array, Problem
from perfmodel.modelling.fitting.result import Solution
from perfmodel.modelling.fitting.starts import Values, starting_points, switched

_SEARCH_TOLERANCE = 1e-8
_FINAL_TOLERANCE = 1e-14
_SEARCH_EVALUATIONS = 200
_FINAL_EVALUATIONS = 2000
_NEAR_BOUND = 1e-2
_TELLING = 1e-2
"""A relative offset below this can't be told from none: all parameters together are a small part of a standard error
away from the minimum."""
_SMALL = 1e-3
"""A parameter is scaled by its value, or where that is next to zero by this fraction of its natural scale."""


@dataclass(frozen=True)
class Coordinates:
    """The free parameters as the solver sees them: divided by their magnitude, logarithms where bounded above zero.

    The solver's tolerances and trust region then mean the same whatever the units; lmfit's bounds on parameters of
    1e-12 are silently wrong.
    """

    names: tuple[str, ...]
    scales: Array
    logarithmic: NDArray[np.bool_]
    lower: Array
    upper: Array

    @classmethod
    def of(cls, problem: Problem, magnitudes: Mapping[str, float]) -> Coordinates:
        names = problem.free
        scales = np.array([magnitudes[name] for name in names])
        lower, upper = np.array([problem.bounds[name] for name in names]).T / scales
        logarithmic = lower > 0
        lower, upper = (np.where(logarithmic, np.log(np.where(logarithmic, b, 1.0)), b) for b in (lower, upper))
        return cls(names, scales, logarithmic, lower, upper)

    def inner(self, values: Mapping[str, float]) -> Array:
        ratios = np.array([values[name] for name in self.names]) / self.scales
        return np.where(self.logarithmic, np.log(np.where(self.logarithmic, ratios, 1.0)), ratios)

    def outer(self, inner: Array) -> Values:
        return dict(zip(self.names, map(float, self.scales * self._ratios(inner)), strict=True))

    def slopes(self, inner: Array) -> Array:
        """Returns the derivatives of the parameters by the coordinates."""
        return self.scales * np.where(self.logarithmic, self._ratios(inner), 1.0)

    def _ratios(self, inner: Array) -> Array:
        return np.where(self.logarithmic, np.exp(np.where(self.logarithmic, inner, 0.0)), inner)


@dataclass(frozen=True)
class Minimum:
    """The point at which one run ended; the cost is the sum of squared weighted residuals."""

    values: Values
    cost: float
    evaluations: int
    converged: bool
    message: str


@np.errstate(all="ignore")  # starts may lie anywhere; what is not finite is judged by its cost
def solve_nonlinear(problem: Problem, given: Mapping[str, float]) -> Solution:
    """Returns the best of the local minima reached from all starting points.

    Raises:
        FitError: No starting point gives a finite model, or the best minimum does not converge.
    """
    minima = _search(problem, starting_points(problem, given))
    minima += _search(problem, switched(problem, _best(minima).values))
    best = _best(minima)
    refined = _minimise(problem, best.values, _FINAL_TOLERANCE, _FINAL_EVALUATIONS)
    evaluations = sum(minimum.evaluations for minimum in (*minima, refined))
    settled = _best([refined, best])
    if not (refined.converged or best.converged or _relative_offset(problem, settled.values) < _TELLING):
        raise FitError(
            f"the fit did not converge from any of {len(minima)} starting points in {evaluations} evaluations"
            f" ({refined.message}); give a start near the solution or narrower bounds"
        )
    settled = _settled_on_bounds(problem, settled)
    message = (refined if refined.converged else best).message
    return Solution({**settled.values, **problem.fixed}, len(minima), evaluations, message)


@np.errstate(all="ignore")
def local_minimum(problem: Problem, start: Mapping[str, float]) -> Values:
    """Returns the free parameters of the local minimum that is reached from one starting point."""
    return _minimise(problem, dict(start), _SEARCH_TOLERANCE, _SEARCH_EVALUATIONS).values


def _search(problem: Problem, points: list[Values]) -> list[Minimum]:
    return [_minimise(problem, point, _SEARCH_TOLERANCE, _SEARCH_EVALUATIONS) for point in points]


def _best(minima: list[Minimum]) -> Minimum:
    return min(minima, key=lambda minimum: minimum.cost)


def _settled_on_bounds(problem: Problem, minimum: Minimum) -> Minimum:
    """Returns the minimum with every parameter that the solver left just inside a bound put exactly on it, if none is
    worse."""
    low, high = _pressed(problem, minimum.values)
    snapped = {name: problem.bounds[name][0] for name, near in zip(problem.free, low, strict=True) if near}
    snapped |= {name: problem.bounds[name][1] for name, near in zip(problem.free, high, strict=True) if near}
    if not snapped:
        return minimum
    pinned = replace(problem, fixed={**problem.fixed, **snapped})
    inside = {name: minimum.values[name] for name in pinned.free}
    moved = _minimise(pinned, inside, _FINAL_TOLERANCE, _FINAL_EVALUATIONS)
    tolerated = minimum.cost * (1 + 1e-9)
    return replace(moved, values=moved.values | snapped) if moved.cost <= tolerated else minimum


def _pressed(problem: Problem, values: Values) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Returns which free parameters are next to their lower bound, and to their upper one, and would go beyond it."""
    coordinates = _coordinates(problem, values)
    inner = coordinates.inner(values)
    gradient = problem.jacobian(values).T @ problem.residuals(values) * coordinates.slopes(inner)
    low = (inner - coordinates.lower < _NEAR_BOUND) & (gradient > 0)
    high = (coordinates.upper - inner < _NEAR_BOUND) & (gradient < 0)
    return low, high


def _relative_offset(problem: Problem, values: Values) -> float:
    """Returns how far values are from the minimum, as a part of what noise would move the minimum by.

    This is the criterion of Bates and Watts (1981): the residuals that parameters could still take up, by those that
    they can't, each by its degrees of freedom. A solver that asks for less and less crawls along flat valleys, at whose
    bottom no measurement could tell one place from another.
    """
    low, high = _pressed(problem, values)
    columns, residuals = problem.jacobian(values)[:, ~(low | high)], problem.residuals(values)
    if not (np.isfinite(columns).all() and np.isfinite(residuals).all()):
        return np.inf
    columns = columns / np.maximum(np.linalg.norm(columns, axis=0), np.finfo(float).tiny)
    step, _, rank, _ = np.linalg.lstsq(columns, residuals)
    taken = columns @ step
    left = residuals - taken
    return float(np.sqrt((taken @ taken / rank) / (left @ left / (len(residuals) - rank))))


def _coordinates(problem: Problem, start: Mapping[str, float]) -> Coordinates:
    magnitudes = {name: max(abs(start[name]), _SMALL * problem.scales[name]) for name in problem.free}
    return Coordinates.of(problem, magnitudes)


def _minimise(problem: Problem, start: Values, tolerance: float, evaluations: int) -> Minimum:
    """Returns one local minimum; thresholds stay fixed, for a column of zeros slows the solver down tenfold."""
    held = {name: start[name] for name in problem.flat}
    moving = {name: value for name, value in start.items() if name not in held}
    pinned = replace(problem, fixed={**problem.fixed, **held})
    if not moving:
        return Minimum(
            values=held,
            cost=pinned.cost({}),
            evaluations=1,
            converged=True,
            message="there is nothing to minimise over",
        )
    minimum = _descend(pinned, moving, tolerance, evaluations)
    return replace(minimum, values=minimum.values | held)


def _descend(problem: Problem, start: Values, tolerance: float, evaluations: int) -> Minimum:
    """Runs scipy's trust-region reflective method, driven by lmfit with the analytic Jacobian."""
    import lmfit  # slow to import

    coordinates = _coordinates(problem, start)
    parameters = lmfit.Parameters()
    for name, value, lower, upper in zip(
        coordinates.names, coordinates.inner(start), coordinates.lower, coordinates.upper, strict=True
    ):
        parameters.add(name, value=value, min=lower, max=upper)

    def residuals(point: lmfit.Parameters) -> Array:
        return problem.residuals(coordinates.outer(_array(point)))

    def jacobian(point: lmfit.Parameters) -> Array:
        inner = _array(point)
        return problem.jacobian(coordinates.outer(inner)) * coordinates.slopes(inner)

    options = {"jac": jacobian, "x_scale": "jac", "ftol": tolerance, "xtol": tolerance, "gtol": tolerance}
    try:
        result = lmfit.minimize(
            residuals, parameters, "least_squares", nan_policy="propagate", max_nfev=evaluations, **options
        )
    except (ValueError, np.linalg.LinAlgError) as error:  # the model left its domain on the way
        return Minimum(values=start, cost=np.inf, evaluations=0, converged=False, message=str(error))
    values = coordinates.outer(_array(result.params))
    return Minimum(
        values=values,
        cost=problem.cost(values),
        evaluations=int(result.nfev),
        converged=bool(result.success),
        message=str(result.message),
    )


def _array(point: Mapping[str, Any]) -> Array:
    return np.array([parameter.value for parameter in point.values()])
