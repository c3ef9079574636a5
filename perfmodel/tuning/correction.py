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
class Corrected:
    """Holds the logarithms of the times of all configurations, as they are expected after some were measured.

    Attributes:
        mean, std: of each, shape (N,).
        parts: what each choice of covariance says: its weight, mean (N,), and square root of the covariance that
            measurements explain (M, N), with the prior covariance's choice.
    """

    mean: Floats
    std: Floats
    parts: tuple[tuple[float, Floats, Floats, _Choice], ...]


@dataclass(frozen=True)
class _Choice:
    reach: float
    spread: float
    parameters: float
    noise: float


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
        places = np.asarray(told, dtype=int)
        found, likelihoods = [], []
        for choice, prior, own in self._priors(places):
            square = prior[:, places] + choice.noise**2 * np.eye(len(places))
            root = np.linalg.cholesky(square)
            off = np.linalg.solve(root, logs - self.logs[places])
            explained = np.linalg.solve(root, prior)
            mean = self.logs + explained.T @ off
            variance = np.maximum(own - (explained**2).sum(axis=0), LEAST) + choice.noise**2
            usual = -WORTH * (np.log(choice.spread) + (USUAL / choice.spread) ** 2 / 2)
            likelihoods.append(usual - 0.5 * off @ off - np.log(np.diag(root)).sum())
            found.append((mean, variance, explained, choice))
        weights = np.exp(np.array(likelihoods) - max(likelihoods))
        weights /= weights.sum()
        means, variances = (np.array([each[place] for each in found]) for place in (0, 1))
        mean = weights @ means
        std = np.sqrt(np.maximum(weights @ (variances + means**2) - mean**2, LEAST))
        parts = tuple((float(w), each[0], each[2], each[3]) for w, each in zip(weights, found, strict=True))
        return Corrected(mean, std, parts)

    def draws(self, corrected: Corrected, of: NDArray[np.intp], count: int, seed: int) -> Floats:
        """Returns random times of some configurations together, logarithms, shape (count, len(of))."""
        random = np.random.default_rng(seed)
        numbers = random.multinomial(count, [weight for weight, *_ in corrected.parts])
        drawn = [np.empty((0, len(of)))]
        for number, (_, mean, explained, choice) in zip(numbers, corrected.parts, strict=True):
            if number:
                prior, _ = self._prior(of, choice)
                left = prior[:, of] - explained[:, of].T @ explained[:, of]
                values, vectors = np.linalg.eigh(left)
                root = vectors * np.sqrt(np.maximum(values, 0))
                drawn.append(mean[of] + random.standard_normal((number, len(of))) @ root.T)
        return np.concatenate(drawn)

    def _priors(self, of: NDArray[np.intp]) -> Iterator[tuple[_Choice, Floats, Floats]]:
        near = {reach: self._near(of, reach) for reach in REACHES}
        shared = self.elasticities[of] @ self.elasticities.T
        own = (self.elasticities**2).sum(axis=1)
        for values in product(REACHES, SPREADS, PARAMETERS, NOISES):
            choice = _Choice(*values)
            variance = FACTOR**2 + choice.spread**2
            prior = FACTOR**2 + choice.spread**2 * near[choice.reach] + choice.parameters**2 * shared
            yield choice, prior, variance + choice.parameters**2 * own

    def _prior(self, of: NDArray[np.intp], choice: _Choice) -> tuple[Floats, Floats]:
        shared = self.elasticities[of] @ self.elasticities.T
        near = self._near(of, choice.reach)
        prior = FACTOR**2 + choice.spread**2 * near + choice.parameters**2 * shared
        return prior, np.diag(prior[:, of])

    def _near(self, of: NDArray[np.intp], reach: float) -> Floats:
        apart = (self.places[of] ** 2).sum(axis=1)[:, np.newaxis] + (self.places**2).sum(axis=1)
        apart = apart - 2 * self.places[of] @ self.places.T
        return np.asarray(np.exp(-np.maximum(apart, 0) / (2 * reach**2)))
