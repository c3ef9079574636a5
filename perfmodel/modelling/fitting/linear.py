"""Linear least squares within bounds, on columns of any magnitude."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.errors import FitError
from perfmodel.modelling.fitting.problem import Problem

RANK_TOLERANCE = 1e-11
"""Singular values of unit-norm columns below this fraction of the largest are rounding, not information."""


def solve_linear(
    design: NDArray[np.float64],
    target: NDArray[np.float64],
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Returns the x within bounds that minimises the norm of design @ x - target.

    Args:
        design: Shape (N, M); columns of any magnitude, zero and collinear columns included.
        target: Shape (N,).
        lower: Shape (M,), -inf where free.
        upper: Shape (M,), inf where free; above `lower` everywhere.

    Returns:
        Shape (M,). Columns are scaled to unit norm first; directions that the columns leave open take the smallest
        norm in that scale.

    The active-set method is that of Stark and Parker, "Bounded-Variable Least-Squares: an Algorithm and
    Applications", 1995. Here it sees the problem reduced by a singular value decomposition to its numerical rank,
    so that rounding in collinear columns is not mistaken for information.

    Raises:
        FitError: The active set did not settle.
    """
    from scipy.optimize import lsq_linear  # slow to import

    norms = np.linalg.norm(design, axis=0)
    scales = np.divide(1.0, norms, out=np.ones_like(norms), where=norms > 0)
    left, singular, right = np.linalg.svd(design * scales, full_matrices=False)
    kept = singular > RANK_TOLERANCE * singular[0]
    if not kept.any():
        return np.clip(np.zeros_like(lower), lower, upper)
    reduced = singular[kept, None] * right[kept]
    projected = left[:, kept].T @ target
    low, high = lower / scales, upper / scales
    solution = lsq_linear(reduced, projected, (low, high), method="bvls", tol=1e-13, max_iter=50 * len(scales))
    if solution.status <= 0:
        raise FitError(
            "the bounded linear fit did not settle on which parameters are at their bounds; widen the bounds"
        )
    # At a bound the bound itself, not what rounding in the scaling leaves of it.
    return np.where(solution.x <= low, lower, np.where(solution.x >= high, upper, solution.x * scales))


def solve_directly(problem: Problem) -> dict[str, float]:
    """Returns every parameter of the solution of a linear problem.

    Raises:
        FitError: The model has no finite value for a measurement, or the bounds leave no solution.
    """
    zeros = dict.fromkeys(problem.free, 0.0)
    target, design = -problem.residuals(zeros), problem.jacobian(zeros)
    wrong = ~(np.isfinite(target) & np.isfinite(design).all(axis=1))
    if wrong.any():
        row = problem.labels[int(np.argmax(wrong))]
        raise FitError(f"the model has no finite value for measurement {row!r}; check the features it divides by")
    lower, upper = np.array([problem.bounds[name] for name in problem.free]).reshape(-1, 2).T
    values = solve_linear(design, target, lower, upper) if problem.free else np.empty(0)
    return {**dict(zip(problem.free, map(float, values), strict=True)), **problem.fixed}
