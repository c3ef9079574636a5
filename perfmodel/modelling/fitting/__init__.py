"""Fits a model's parameters to measurements: least squares on relative errors, with an honest account of it.

Linear models are solved directly, non-linear ones by lmfit from several deterministic starting points. Both see
parameters and columns scaled to order one, so that times per operation of 1e-14 s and launch overheads of 1e-5 s
fit together.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.errors import FitError
from perfmodel.expression import ModelString
from perfmodel.modelling.fitting.diagnostics import assess
from perfmodel.modelling.fitting.linear import solve_directly
from perfmodel.modelling.fitting.nonlinear import solve_nonlinear
from perfmodel.modelling.fitting.poor_fit import poor_fit
from perfmodel.modelling.fitting.problem import Bounds, Problem, Residuals, check_parameter, pose
from perfmodel.modelling.fitting.result import FitResult, FitWarning, Solution, Undetermined

__all__ = ["FitResult", "FitWarning", "Undetermined", "fit"]


def fit(
    model: ModelString,
    features: Mapping[str, NDArray[np.float64]],
    output: NDArray[np.float64],
    *,
    bounds: Bounds | None = None,
    nonnegative: bool = True,
    start: Mapping[str, float] | None = None,
    residuals: Residuals = "relative",
    strict: bool = False,
    labels: Sequence[str] | None = None,
) -> FitResult:
    """Fits the parameters of a model to N measurements.

    Args:
        model: The parsed model string.
        features: A column of shape (N,) for every feature of the model; others are ignored.
        output: Measured outputs in seconds, shape (N,); positive for relative residuals.
        bounds: (lower, upper) by parameter, None where open; equal bounds fix a parameter.
        nonnegative: Whether parameters without `bounds` are at least zero. The exponent of an `overlap` is always
            within [1, 64], the edge of a `smooth_max` or `smooth_step` at least the reciprocal of the median output
            (or of the argument's typical size), so that it is a maximum (a step) for most measurements.
        start: Starting values for a non-linear model; without them they are derived from model and measurements.
        residuals: "relative", (predicted - measured) / measured; "absolute", predicted - measured; or "logarithmic",
            ln(predicted / measured) under a soft L1 loss, for models of many different kernels, of which it cannot
            explain some.
        strict: Raise instead of warn where the measurements leave parameters undetermined, or the fit is a poor one.
        labels: Name of each measurement for messages and the report.

    Returns:
        Values, standard errors, covariance and diagnostics. An undetermined parameter is zero (or its nearest
        bound) where its features are absent from the measurements; collinear ones take the smallest values, each in
        units of its feature's typical contribution.

    Raises:
        FitError: The measurements cannot serve, the fit does not converge, or (strict) parameters are undetermined.

    Warns:
        FitWarning: Parameters are undetermined, or the model does not explain the measurements.
    """
    problem = pose(
        model, features, output, bounds=bounds or {}, nonnegative=nonnegative, residuals=residuals, labels=labels
    )
    given = _checked_start(problem, start or {})
    if problem.is_direct:
        solution = Solution(solve_directly(problem), 0, 0, "solved within bounds")
    else:
        solution = solve_nonlinear(problem, given)
    unit = float(1 / problem.weights[0]) if residuals == "absolute" else 1.0
    found = assess(problem, solution.parameters, unit)
    free = {name: solution.parameters[name] for name in problem.free}
    predicted = problem.predict(free)
    _tell([_undetermined_sentence(found.undetermined), *poor_fit(problem, predicted, found.degrees_of_freedom)], strict)
    return FitResult(
        parameters={name: solution.parameters[name] for name in model.parameters},
        stderr=found.stderr,
        covariance=found.covariance,
        predicted=predicted,
        measured=problem.output,
        labels=problem.labels,
        fixed=found.fixed,
        at_bound=found.at_bound,
        limits=found.limits,
        undetermined=found.undetermined,
        method="linear" if problem.is_direct else "nonlinear",
        residuals=residuals,
        starts=solution.starts,
        nfev=solution.evaluations,
        chi_square=found.chi_square,
        degrees_of_freedom=found.degrees_of_freedom,
        message=solution.message,
    )


def _checked_start(problem: Problem, start: Mapping[str, float]) -> dict[str, float]:
    for name, value in start.items():
        check_parameter(name, problem.model, "a start is given")
        lower, upper = problem.bounds[name]
        if not lower <= value <= upper:
            raise FitError(
                f"the start of {name!r} is {value:g}, outside its bounds [{lower:g}, {upper:g}]; move either"
            )
    return {name: float(value) for name, value in start.items() if name not in problem.fixed}


def _tell(sentences: Sequence[str], strict: bool) -> None:
    for sentence in filter(None, sentences):
        if strict:
            raise FitError(sentence)
        warnings.warn(sentence, FitWarning, stacklevel=3)


def _undetermined_sentence(undetermined: Sequence[Undetermined]) -> str:
    if not undetermined:
        return ""
    return (
        f"the measurements do not determine {'; '.join(map(str, undetermined))};"
        " add measurements that do, fix the parameters by bounds, or take them out of the model"
    )
