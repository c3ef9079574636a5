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
from perfmodel.modelling.fitting.declared import Given
from perfmodel.modelling.fitting.diagnostics import Assessment, assess
from perfmodel.modelling.fitting.linear import solve_directly
from perfmodel.modelling.fitting.nonlinear import solve_nonlinear
from perfmodel.modelling.fitting.poor_fit import poor_fit
from perfmodel.modelling.fitting.problem import Problem, Residuals, pose
from perfmodel.modelling.fitting.result import FitResult, FitWarning, Solution, Undetermined


def fit(
    model: ModelString,
    features: Mapping[str, NDArray[np.float64]],
    output: NDArray[np.float64],
    *,
    parameters: Given | None = None,
    nonnegative: bool = True,
    residuals: Residuals = "relative",
    strict: bool = False,
    labels: Sequence[str] | None = None,
) -> FitResult:
    """Fits the parameters of a model to N measurements.

    Args:
        model: The parsed model string.
        features: A column of shape (N,) for every feature of the model; others are ignored.
        output: Measured outputs in seconds, shape (N,); positive for relative residuals.
        parameters: What is said of parameters, by name: a number holds one, (lower, upper) bounds it (None where open),
            a text such as ``"2 * p_a"`` ties it to others; see `perfmodel.modelling.fitting.declared`.
        nonnegative: Whether parameters without bounds are at least zero. The exponent of an `overlap` is always
            within [1, 64], the edge of a `smooth_max` or `smooth_step` at least the reciprocal of the median output
            (or of the argument's typical size), so that it is a maximum (a step) for most measurements.
        residuals: "relative", (predicted - measured) / measured; "absolute", predicted - measured; or "logarithmic",
            ln(predicted / measured) under a soft L1 loss, for models of many different kernels, of which it cannot
            explain some.
        strict: Raise instead of warn where the measurements leave parameters undetermined, or the fit is a poor one.
        labels: Name of each measurement for messages and the report.

    Returns:
        Values, standard errors, covariance and diagnostics. An undetermined parameter is zero (or its nearest
        bound) where its features are absent from the measurements; collinear ones take the smallest values, each in
        units of its feature's typical contribution. Standard errors of tied parameters follow from those of the
        others.

    Raises:
        FitError: The measurements cannot serve, the fit does not converge, or (strict) parameters are undetermined.

    Warns:
        FitWarning: Parameters are undetermined, or the model does not explain the measurements.
    """
    problem = pose(
        model, features, output, parameters=parameters, nonnegative=nonnegative, residuals=residuals, labels=labels
    )
    if problem.is_direct:
        solution = Solution(solve_directly(problem), 0, 0, "solved within bounds")
    else:
        solution = solve_nonlinear(problem, problem.starts)
    unit = float(1 / problem.weights[0]) if residuals == "absolute" else 1.0
    found = assess(problem, solution.parameters, unit)
    free = {name: solution.parameters[name] for name in problem.free}
    slopes = problem.ties.slopes(solution.parameters) if problem.ties.nodes else None
    covariance = found.covariance if slopes is None else _propagated(found.covariance, slopes)
    predicted = problem.predict(free)
    _tell([_undetermined_sentence(found.undetermined), *poor_fit(problem, predicted, found.degrees_of_freedom)], strict)
    return FitResult(
        parameters=problem.ties.completed(solution.parameters),
        stderr=found.stderr if slopes is None else _stderr(found, problem, slopes, covariance),
        covariance=covariance,
        predicted=predicted,
        measured=problem.output,
        labels=problem.labels,
        fixed=found.fixed,
        at_bound=found.at_bound,
        limits=found.limits,
        undetermined=found.undetermined,
        ties=dict(problem.ties.texts),
        method="linear" if problem.is_direct else "nonlinear",
        residuals=residuals,
        starts=solution.starts,
        nfev=solution.evaluations,
        chi_square=found.chi_square,
        degrees_of_freedom=found.degrees_of_freedom,
        message=solution.message,
    )


def _propagated(covariance: NDArray[np.float64], slopes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the covariance of all parameters, to first order, from that of those that are not tied."""
    known = np.where(np.isfinite(slopes), slopes, 0.0)
    return np.asarray(known @ covariance @ known.T)


def _stderr(
    found: Assessment, problem: Problem, slopes: NDArray[np.float64], covariance: NDArray[np.float64]
) -> dict[str, float]:
    """Returns the standard errors of all parameters.

    A tied parameter has none where all that it follows has none, where one of these is undetermined, or where it has
    no slope, as a square root at zero.
    """
    deviations = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    open_ = {name for item in found.undetermined for name in item.parameters}
    stderr = {}
    for name, deviation, by in zip(problem.ties.names, deviations, slopes, strict=True):
        behind = [other for other, slope in zip(problem.model.parameters, by, strict=True) if slope]
        is_known = np.isfinite(by).all() and any(np.isfinite(found.stderr[other]) for other in behind)
        stderr[name] = float(deviation) if is_known and not open_ & set(behind) else np.nan
    return {**stderr, **found.stderr}


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
        " add measurements that do, hold parameters at a value, or take them out of the model"
    )
