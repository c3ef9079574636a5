"""Tells how far parameters within bounds may be from their fitted values: a parametric bootstrap of the linearised fit.

Standard errors from the curvature at a solution take a parameter that is at its bound as known there, and so, where
features are nearly collinear, all the others too. Here each sample adds the noise that the residuals show to what the
fitted model gives and solves for all parameters again, within their bounds (Efron and Tibshirani, "An Introduction to
the Bootstrap", 1993, section 9.4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from perfmodel.modelling.fitting.problem import Array

SAMPLES = 200
SEED = 20160412


@dataclass(frozen=True)
class Resampled:
    """Samples of the parameters that a fit found.

    Attributes:
        names: The parameters.
        changes: Differences from the fitted values, shape (S, P).
        influence: What the typical change of each parameter does to a weighted residual at most, shape (P,).
    """

    names: tuple[str, ...]
    changes: Array
    influence: Array

    @property
    def deviations(self) -> Array:
        """Root mean squares of the changes, shape (P,)."""
        return np.asarray(np.sqrt(np.mean(self.changes**2, axis=0)))

    @property
    def correlation(self) -> Array:
        """Correlations of the changes, shape (P, P); zero for a parameter that never changes."""
        deviations = self.deviations
        products = np.outer(deviations, deviations)
        covariance = self.changes.T @ self.changes / len(self.changes)
        return np.asarray(np.divide(covariance, products, out=np.zeros_like(products), where=products > 0))

    def limits(self, level: float) -> Array:
        """Returns changes between which parameters lie with the probability `level`, shape (2, P)."""
        return np.asarray(np.quantile(self.changes, [(1 - level) / 2, (1 + level) / 2], axis=0))


def resample(names: Sequence[str], jacobian: Array, below: Array, above: Array, noise: float) -> Resampled:
    """Samples a linearised fit of P parameters to N measurements.

    Args:
        names: The parameters.
        jacobian: Derivatives of the weighted residuals by them, shape (N, P); no column is zero.
        below, above: How far each parameter is from its bounds, shape (P,), not negative, infinite without a bound.
        noise: Standard deviation of the weighted residuals.
    """
    from scipy.optimize import nnls  # slow to import

    if not names:  # all are held, or at their bounds for certain
        return Resampled((), np.zeros((SAMPLES, 0)), np.zeros(0))
    norms = np.linalg.norm(jacobian, axis=0)
    triangle: Array = np.asarray(np.linalg.qr(jacobian / norms, mode="r"))
    low, high = below * norms, above * norms
    # In multiples of the noise, as differences of numbers that are not negative where there is no lower bound.
    open_ = np.flatnonzero(~np.isfinite(low))
    start = np.where(np.isfinite(low), low, 0.0)
    matrix: Array = np.hstack([triangle, -triangle[:, open_]])
    random = np.random.default_rng(SEED)
    changes = np.zeros((SAMPLES, len(norms)))
    for sample in range(SAMPLES):
        target = noise * random.standard_normal(len(triangle)) + triangle @ start
        found, _ = nnls(matrix, target, maxiter=30 * matrix.shape[1])
        solved = found[: len(norms)].copy()
        solved[open_] -= found[len(norms) :]
        changes[sample] = np.minimum(solved - start, high)
    influence = np.abs(jacobian / norms).max(axis=0) * np.sqrt(np.mean(changes**2, axis=0))
    return Resampled(tuple(names), changes / norms, influence)
