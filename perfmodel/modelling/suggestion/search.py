"""Searches stepwise for terms with non-negative weights, scored on kernels that the fit has not seen."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Rows = NDArray[np.bool_]
Terms = tuple[int, ...]

LEAST_PENALTY = 0.02
"""One more term has to lower the error by at least this fraction of it."""
PATIENCE = 3
"""The search ends after so many terms more without a better model."""
SHORTLIST = 8
"""So many candidates are cross-validated for each term: those that fit best."""
NEGLIGIBLE = 1e-9
"""Differences of errors below this fraction are rounding."""
WORST = float(np.log(10))
"""An error counts as no more than this, the logarithm of a ratio: a kernel without any of the terms is predicted to
take 0 s."""
OVERHEAD, MEMORY, ON_CHIP = range(3)
RISING = (1.0, 1.5, 2.0, 3.0)
"""Exponents on the way to sharper ones: a maximum hides terms that a sum shows."""
REPEATS = 3


def folds(groups: Sequence[Hashable], most: int) -> list[Rows]:
    """Returns the rows to hold out at a time: each group by itself, or several together where there are too many
    groups.

    The largest groups are dealt out first, each to the fold that has the fewest rows.
    """
    members = {name: np.array([group == name for group in groups]) for name in dict.fromkeys(groups)}
    dealt = [np.zeros(len(groups), dtype=bool) for _ in range(min(most, len(members)))]
    for rows in sorted(members.values(), key=lambda rows: -int(rows.sum())):
        smallest = min(dealt, key=lambda fold: int(fold.sum()))
        smallest |= rows
    return dealt


def typical_error(ratios: Array) -> float:
    """Returns the factor by which predictions are typically off, less 1: exp(mean |log(predicted / measured)|) - 1.

    Unlike the geometric mean of relative errors, it is not small where half of the predictions are very good and the
    other half useless.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        logarithms = np.abs(np.log(ratios))
    return float(np.expm1(np.mean(np.where(logarithms < WORST, logarithms, WORST))))


def penalty(features: int, rows: int) -> float:
    """Returns the fraction of the error that one more term has to take off.

    By chance alone, the best of M useless columns takes 2 log(M) times the variance off N squared residuals (Foster and
    George, "The Risk Inflation Criterion for Multiple Regression", 1994), which lowers the error by log(M)/N of it.
    """
    return max(LEAST_PENALTY, float(np.log(features) / rows))


@dataclass(frozen=True)
class Found:
    """A set of terms with its cross-validated error.

    Attributes:
        ratios: predicted / measured of each row while its fold was held out.
        error: `typical_error` of these.
        penalized: the same, higher by the penalty for each term.
    """

    terms: Terms
    ratios: Array
    error: float
    penalized: float

    @property
    def size(self) -> int:
        return len(self.terms)


class Search:
    """Searches models that are overhead plus the `exponent`-norm of the costs of memory and on chip; for 1, that is the
    sum of all terms.

    Weights are found by least squares of relative residuals. As the norm is homogeneous in the weights, each step of
    Gauss and Newton is a linear problem: columns times the derivative by their resource.

    Args:
        relative: shape (N, M): columns divided by the measured times.
        resources: of each column: OVERHEAD, MEMORY or ON_CHIP.
        held_out: rows of each fold.
    """

    def __init__(
        self, relative: Array, resources: Sequence[int], held_out: Iterable[Rows], exponent: float = 1.0
    ) -> None:
        self.design = relative / np.linalg.norm(relative, axis=0)
        self.resources = np.array(resources, dtype=np.int64)
        self.held_out = list(held_out)
        self.penalty = penalty(relative.shape[1], len(relative))
        self.exponents = [p for p in RISING if p < exponent] + [exponent] * REPEATS if exponent > 1 else [1.0]
        self._known: dict[Terms, Found] = {}

    def found(self, terms: Iterable[int]) -> Found:
        """Returns these terms with their cross-validated error, infinite where the fit to all rows has no use for
        one."""
        key = tuple(sorted(terms))
        if key not in self._known:
            ratios = np.zeros(len(self.design))
            useful = bool(np.all(self._weights(key, self.design[:, key]) > 0))
            for rows in self.held_out if useful else ():
                chosen = self.design[:, key]
                ratios[rows] = self._ratios(key, chosen[rows], self._weights(key, chosen[~rows]))
            error = typical_error(ratios) if useful else np.inf
            self._known[key] = Found(key, ratios, error, error * (1 + self.penalty) ** len(key))
        return self._known[key]

    def path(self, most: int, known: Iterable[Terms] = ((),)) -> list[Found]:
        """Returns the best set found of each number of terms, by floating forward selection from the best of the known
        sets.

        After each addition, terms are exchanged and taken away again as long as that gives a better set of its number
        of terms than was known.
        """
        best = {len(terms): self.found(terms) for terms in known}
        current = min(best.values(), key=_penalized)
        while True:
            while better := self._exchanged(current, best) or self._pruned(current, best):
                current = best[better.size] = better
            size = current.size + 1
            if size > min(most, self.design.shape[1]) or size - min(best.values(), key=_penalized).size > PATIENCE:
                break
            added = self._added(current.terms)
            if not added:
                break
            current = best[size] = min([*added, *([best[size]] if size in best else [])], key=_error)
            if not np.isfinite(current.error):
                break
        return [best[size] for size in sorted(best) if size and np.isfinite(best[size].error)]

    def _added(self, terms: Terms) -> list[Found]:
        """Returns sets of terms with one more term: those that fit best."""
        others = [c for c in range(self.design.shape[1]) if c not in terms]
        residuals = [self._residual((*terms, c)) for c in others]
        return [self.found((*terms, others[i])) for i in np.argsort(residuals, kind="stable")[:SHORTLIST]]

    def _exchanged(self, current: Found, best: Mapping[int, Found]) -> Found | None:
        rests = [tuple(t for t in current.terms if t != term) for term in current.terms]
        return _better([found for rest in rests for found in self._added(rest)], best)

    def _pruned(self, current: Found, best: Mapping[int, Found]) -> Found | None:
        rests = [tuple(t for t in current.terms if t != term) for term in current.terms]
        return _better([self.found(rest) for rest in rests if len(rest) in best], best)

    def _residual(self, terms: Terms) -> float:
        chosen = self.design[:, terms]
        return float(np.linalg.norm(self._ratios(terms, chosen, self._weights(terms, chosen)) - 1))

    def _weights(self, terms: Terms, design: Array) -> Array:
        from scipy.optimize import nnls  # slow to import

        memory, onchip = self._shares(terms)
        slopes, ones, weights = design, np.ones(len(design)), np.zeros(len(terms))
        is_sum = not (memory.any() and onchip.any())
        for exponent in [1.0] * bool(terms) if is_sum else self.exponents:
            if exponent > 1:
                by_memory, by_chip = _derivatives(design @ (memory * weights), design @ (onchip * weights), exponent)
                slopes = design * (1 + np.outer(by_memory - 1, memory) + np.outer(by_chip - 1, onchip))
            try:
                weights = nnls(slopes, ones)[0]
            except RuntimeError:  # its active set did not settle: as bad as a set of no use
                return np.zeros(len(terms))
        return np.asarray(weights)

    def _ratios(self, terms: Terms, design: Array, weights: Array) -> Array:
        memory, onchip = self._shares(terms)
        overhead = design @ (weights * (1 - memory - onchip))
        return np.asarray(
            overhead + _norm(design @ (weights * memory), design @ (weights * onchip), self.exponents[-1])
        )

    def _shares(self, terms: Terms) -> tuple[Array, Array]:
        """Returns which of the terms are memory's, and which the chip's own: 1 or 0, as two arrays."""
        resources = self.resources[list(terms)]
        return (resources == MEMORY).astype(np.float64), (resources == ON_CHIP).astype(np.float64)


def _norm(a: Array, b: Array, exponent: float) -> Array:
    if exponent == 1:
        return a + b
    larger = np.maximum(a, b)
    ratio = np.minimum(a, b) / np.where(larger > 0, larger, 1.0)
    return np.asarray(larger * (1 + ratio**exponent) ** (1 / exponent))


def _derivatives(a: Array, b: Array, exponent: float) -> tuple[Array, Array]:
    """Returns the norm's derivatives by a and by b; 1 where both are 0, so that a row without any costs yet can get
    some."""
    total = _norm(a, b, exponent)
    divisor = np.where(total > 0, total, 1.0)
    by_a, by_b = (np.where(total > 0, part / divisor, 1.0) ** (exponent - 1) for part in (a, b))
    return by_a, by_b


def _better(tried: Sequence[Found], best: Mapping[int, Found]) -> Found | None:
    found = min(tried, key=_error, default=None)
    return found if found and found.error < best[found.size].error * (1 - NEGLIGIBLE) else None


def _error(found: Found) -> float:
    return found.error


def _penalized(found: Found) -> float:
    return found.penalized
