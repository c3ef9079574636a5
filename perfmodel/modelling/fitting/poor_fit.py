"""Fits that say nothing: as many parameters as measurements, or a model that explains none of them."""

from __future__ import annotations

import numpy as np

from perfmodel.modelling.fitting.problem import Array, Problem

HOPELESS = np.log(2.0)
"""A model of which half of the times are off by a factor of two explains nothing."""

OTHER_UNIT = np.log(50.0)
"""A single time that is off by more is of another unit, or of a kernel that the model does not know."""

SMALL = 0.01


def poor_fit(problem: Problem, predicted: Array, freedom: int) -> list[str]:
    """Returns sentences that a reader of the fit must know; none for a fit that explains its measurements.

    Args:
        predicted: Outputs in seconds, shape (N,).
        freedom: Degrees of freedom.
    """
    found = []
    count = len(predicted)
    if not freedom:
        found.append(
            f"the model goes through {'its only measurement' if count == 1 else f'all {count} measurements'}, as it has"
            " as many parameters: its errors here, and how sure predictions are, mean nothing; add measurements"
        )
    sizes = np.abs(problem.output)
    # Under absolute residuals, what is small beside the others may be off by any factor.
    judged = sizes >= (SMALL * np.sqrt(np.mean(sizes**2)) if problem.is_absolute else 0.0)
    errors = np.where(judged, _factors(problem.output, predicted), 0.0)
    far = np.flatnonzero(errors > OTHER_UNIT)
    if np.median(errors[judged]) > HOPELESS:
        found.append(
            f"the model does not explain the measurements: half of the {count} fitted values are off by a factor of"
            f" {_factor(float(np.median(errors[judged])))} or more; check that times are in seconds, and what terms the"
            " model has"
        )
    elif far.size:
        worst = int(np.argmax(errors))
        found.append(
            f"{far.size} of {count} measurements {'is' if far.size == 1 else 'are'} off by a factor of over"
            f" {np.exp(OTHER_UNIT):.0f}, most of all {problem.labels[worst]!r} ({problem.output[worst]:.3g} s measured,"
            f" {predicted[worst]:.3g} s fitted); check that all times are in seconds, and what the model lacks for them"
        )
    return found


def _factors(measured: Array, predicted: Array) -> Array:
    """Returns absolute logarithms of predicted / measured, infinite where their signs differ, zero where both are
    zero."""
    with np.errstate(all="ignore"):
        ratios = predicted / measured
        logarithms = np.where(ratios > 0, np.abs(np.log(np.abs(ratios))), np.inf)
    return np.asarray(np.where(predicted == measured, 0.0, logarithms))


def _factor(logarithm: float) -> str:
    return f"{np.exp(logarithm):.3g}" if logarithm < 20 else "over a hundred million"
