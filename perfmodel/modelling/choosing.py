"""Says how sure it is which of several predictions is the shortest time, and which of them are ties."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.errors import KernelError
from perfmodel.modelling.intervals import HeldOutErrors

POINTS = 4001
"""Points of the quadrature that gives the probability of being the fastest."""
DRAWS = 4000
MOST_NUMBERS = 8_000_000
SEED = 20180807
TIE = 1e-3
"""Predictions that differ by less than a thousandth are equal: clocks tell no more apart."""


def probability_fastest(seconds: Sequence[float], std_s: Sequence[float]) -> float:
    """Returns the probability that the first of several predictions is of the fastest, if their errors are log-normal.

    Args:
        seconds, std_s: what is predicted, and its standard deviation; predictions err independently.
    """
    from scipy.special import ndtr  # slow to import

    if not all(each > 0 and std >= 0 for each, std in zip(seconds, std_s, strict=True)):
        raise KernelError("a time that is not above 0 has no probability of being the shortest; check the model")
    mean = np.log(np.asarray(seconds))
    # Without any doubt there is no density to integrate: a millionth is none either.
    spread = np.maximum(np.sqrt(np.log1p((np.asarray(std_s) / np.asarray(seconds)) ** 2)), 1e-6)
    points = np.linspace(-8, 8, POINTS)
    at = mean[0] + spread[0] * points
    others = 1 - ndtr((at[:, np.newaxis] - mean[1:]) / spread[1:])
    density = np.exp(-(points**2) / 2) / math.sqrt(2 * math.pi)
    return float(min(1.0, np.trapezoid(density * others.prod(axis=1), points)))


def probabilities_first(
    seconds: Sequence[float], scales: Sequence[float], families: Sequence[str], known: HeldOutErrors
) -> NDArray[np.float64]:
    """Returns the probability of each of K predictions to be of the fastest kernel, shape (K,); drawn, with a fixed
    seed.

    Errors are drawn from those of kernels that were left out of the fit. Kernels of one family share a part of them,
    which therefore does not matter between these.

    Args:
        seconds: what is predicted.
        scales: of each prediction's logarithmic error, see `perfmodel.modelling.intervals.HeldOutErrors`.
        families: of each kernel.
    """
    random = np.random.default_rng(SEED)
    scores = np.array(known.scores)
    draws = max(200, min(DRAWS, MOST_NUMBERS // len(seconds)))
    names = {family: place for place, family in enumerate(dict.fromkeys(families))}
    common = random.choice(scores, (draws, len(names)))[:, [names[family] for family in families]]
    own = random.choice(scores, (draws, len(seconds)))
    middle = float(np.median(scores))
    errors = math.sqrt(known.shared) * (common - middle) + math.sqrt(1 - known.shared) * (own - middle) + middle
    times = np.log(np.asarray(seconds, dtype=np.float64)) + np.asarray(scales) * errors
    shortest = times == times.min(axis=1, keepdims=True)
    return np.asarray((shortest / shortest.sum(axis=1, keepdims=True)).mean(axis=0))


def places(seconds: Sequence[float]) -> list[int]:
    """Returns the rank of each of rising times, from 1; times equal to the first of their rank share it."""
    found: list[int] = []
    first = math.nan
    for position, time in enumerate(seconds, start=1):
        if found and time <= first * (1 + TIE):
            found.append(found[-1])
        else:
            found.append(position)
            first = time
    return found
