"""Learns from measured times by how much predictions of a kernel's configurations are off.

The logarithm of measured / predicted is a Gaussian process over the configurations. Its covariance has three parts: one
factor for all configurations; errors of the model's parameters, which configurations share as far as their times depend
on the same ones; and what is left, which configurations with like parameters share. How large each part is and how far
it reaches is not chosen: all combinations of a few values are tried, and count as much as they explain the times.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

Floats = NDArray[np.float64]

FACTOR = 3.0
"""Standard deviation of the logarithm of the factor that all configurations share: next to nothing is known of it."""
REACHES = (0.3, 0.6, 1.2)
"""Distances at which configurations are alike, as parts of the usual distance between two."""
SPREADS = (0.05, 0.1, 0.2, 0.4, 0.8)
USUAL, WORTH = 0.3, 3
"""Before anything is measured, predictions are taken to differ from times by 30 %, as if so many times had shown it: a
few that happen to fit do not make all others sure."""
PARAMETERS = (0.0, 0.3)
"""Standard deviations of the logarithms of the model's parameters."""
NOISES = (0.02, 0.08)
LEAST = 1e-9


@dataclass(frozen=True)
class CovarianceChoice:
    """One choice of covariance."""

    reach: float
    spread: float
    parameters: float
    noise: float


@dataclass(frozen=True)
class Corrected:
    """Holds the logarithms of the times of all configurations, as they are expected after some were measured.

    Attributes:
        mean, std: of each, shape (N,).
        told: which were measured.
        parts: what each choice of covariance says: its weight, and its mean, shape (N,).
    """

    mean: Floats
    std: Floats
    told: NDArray[np.intp]
    parts: tuple[tuple[CovarianceChoice, float, Floats], ...]


class Correction:
    """Tells what N configurations take, from predictions and from the times that were measured of some.

    Args:
        logs: logarithms of the predicted seconds, shape (N,).
        descriptors: of each configuration, numbers whose differences tell how unlike two are, shape (N, D).
        elasticities: relative change of each predicted time by relative change of each of the model's parameters, shape
            (N, P).
    """

    def __init__(self, logs: Floats, descriptors: Floats, elasticities: Floats) -> None:
        self.logs, self.elasticities = logs, elasticities
        spread = descriptors.std(axis=0)
        varying = spread > 0
        places = (descriptors[:, varying] - descriptors[:, varying].mean(axis=0)) / spread[varying]
        self.places = places / np.sqrt(max(2 * places.shape[1], 1))

    def corrected(self, told: Sequence[int], logs: Floats) -> Corrected:
        """Returns all times after those of `told` turned out to be `logs`."""
        places = np.asarray(told, dtype=np.intp)
        everything = np.arange(len(self.logs))
        off = logs - self.logs[places]
        choices, likelihoods, means, variances = [], [], [], []
        for choice, prior in self._priors(places, everything):
            root, explained = self._explained(choice, prior[:, places], prior)
            unlikely = solve_triangular(root, off, lower=True)
            own = FACTOR**2 + choice.spread**2 + choice.parameters**2 * (self.elasticities**2).sum(axis=1)
            usual = -WORTH * (np.log(choice.spread) + (USUAL / choice.spread) ** 2 / 2)
            choices.append(choice)
            likelihoods.append(usual - 0.5 * unlikely @ unlikely - np.log(np.diag(root)).sum())
            means.append(self.logs + explained.T @ unlikely)
            variances.append(np.maximum(own - (explained**2).sum(axis=0), LEAST) + choice.noise**2)
        weights = np.exp(np.array(likelihoods) - max(likelihoods))
        weights /= weights.sum()
        each, variance = np.array(means), np.array(variances)
        mean = weights @ each
        std = np.sqrt(np.maximum(weights @ (variance + each**2) - mean**2, LEAST))
        return Corrected(mean, std, places, tuple(zip(choices, weights.tolist(), means, strict=True)))

    def draws(self, corrected: Corrected, of: NDArray[np.intp], count: int, seed: int) -> Floats:
        """Returns random times of some configurations together, logarithms, shape (count, len(of))."""
        random = np.random.default_rng(seed)
        numbers = random.multinomial(count, [weight for _, weight, _ in corrected.parts])
        wanted = {each[0]: (n, each[2]) for n, each in zip(numbers.tolist(), corrected.parts, strict=True) if n}
        between = dict(self._priors(corrected.told, of))
        among, known = dict(self._priors(of, of)), dict(self._priors(corrected.told, corrected.told))
        drawn = []
        for choice, (number, mean) in wanted.items():
            _, explained = self._explained(choice, known[choice], between[choice])
            values, vectors = np.linalg.eigh(among[choice] - explained.T @ explained)
            root = vectors * np.sqrt(np.maximum(values, 0))
            drawn.append(mean[of] + random.standard_normal((number, len(of))) @ root.T)
        return np.concatenate(drawn)

    def _explained(self, choice: CovarianceChoice, known: Floats, prior: Floats) -> tuple[Floats, Floats]:
        """Returns the root of what measured times vary by, and the part of it that others share."""
        root: Floats = np.asarray(np.linalg.cholesky(known + choice.noise**2 * np.eye(len(known))), np.float64)
        return root, np.asarray(solve_triangular(root, prior, lower=True))

    def _priors(self, of: NDArray[np.intp], to: NDArray[np.intp]) -> Iterator[tuple[CovarianceChoice, Floats]]:
        """Yields the covariance of some configurations with others, for each choice, shape (len(of), len(to))."""
        near = {reach: self._near(of, to, reach) for reach in REACHES}
        shared = self.elasticities[of] @ self.elasticities[to].T
        for values in product(REACHES, SPREADS, PARAMETERS if self.elasticities.any() else (0.0,), NOISES):
            choice = CovarianceChoice(*values)
            yield choice, FACTOR**2 + choice.spread**2 * near[choice.reach] + choice.parameters**2 * shared

    def _near(self, of: NDArray[np.intp], to: NDArray[np.intp], reach: float) -> Floats:
        apart = (self.places[of] ** 2).sum(axis=1)[:, np.newaxis] + (self.places[to] ** 2).sum(axis=1)
        apart = apart - 2 * self.places[of] @ self.places[to].T
        return np.asarray(np.exp(-np.maximum(apart, 0) / (2 * reach**2)))
