"""Prediction intervals from the errors of kernels that were left out of the fit.

Whole families of kernels are left out of the fit in turn and predicted from the others. How far these predictions
are off, as logarithms of measured / predicted, is what an interval may promise for a kernel that no fit has seen
(cross-conformal prediction: Vovk, "Cross-conformal predictors", 2015; intervals that are wider where predictions are
harder: Papadopoulos, Gammerman, Vovk, "Normalized nonconformity measures for regression conformal prediction", 2008).
How hard a prediction is follows from kernels whose time depends on the same parameters: a kernel that waits for memory
is as uncertain as others that do (weights that fall with distance: Guan, "Localized conformal prediction", 2023).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.brief import brief
from perfmodel.expression import ModelString
from perfmodel.modelling.unpriced import unpriced

Floats = NDArray[np.float64]

FEWEST_GROUPS = 4
"""Fewer families, or variants of one family, than these say nothing of others."""
MOSTLY = 0.5
"""The part of all measurements that must be predictable from other groups than their own."""
MOST_ROWS_LEFT_OUT = 40
"""Single measurements are left out one by one up to so many, and beyond in so many parts."""
LEVELS = {"68": 0.68, "90": 0.9}
MOST_NEIGHBOURS = 300
"""So many measurements are kept to tell how far a kernel is from all that was measured, and what it is like."""
LIKE = 0.2
"""Measurements at this distance count 0.6 times as much as the nearest when an error is guessed from theirs."""
USUAL_WEIGHT = 3.0
"""The usual error of all measurements counts as much as that of so many measurements like a kernel."""
SCORES = 401
"""So many quantiles of the scaled errors are kept."""
SLOPES = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
USUAL_SLOPE = 0.3
"""The growth of errors with distance that fits best where 50 families were left out in turn (the GPU model on an NVIDIA
H200)."""
LEAST_SCALE = 0.005
"""Errors of less than half a per cent are those of the clock."""
OF_OTHERS, OF_MACHINE_CODE = 1.45, 0.75
"""Kernels that no generator made are off by so many times more than generators' that a fit has not seen; those that are
counted by machine code by fewer. 90 % intervals hold 88 % of the times of 238 kernels of public repositories on two
cores of an AMD EPYC so, and 94 % of those of 241 that are counted by machine code on an NVIDIA H100 and an H200: the
thirteenth exam, which had been looked at, and the fourteenth, which had not (docs/gpu-accuracy.md). By machine code,
they hold 97 % of 141 programs and 93 % of 68 public kernels on an EPYC (docs/cpu-accuracy.md)."""
FARTHEST = 10.0
"""Elasticities beyond this are those of a sum that all but cancels; the distance is as large as it gets."""
WORST = np.log(1e3)
"""Larger errors count as this: a prediction of nothing, or less, is not infinitely wrong."""


@dataclass(frozen=True)
class Neighbourhood:
    """Describes what a calibration's measurements are like, so that a kernel's distance from them can be told.

    Two kernels are near each other if their times depend on the same parameters to the same degree.

    Attributes:
        parameters: those that any of the measurements depends on.
        elasticities: relative change of a predicted time by relative change of each parameter, of R measurements that
            stand for all, shape (R, P).
        counts: how many of the left-out measurements each of them stands for, shape (R,).
        errors: the sum of their |ln(measured / predicted)|, shape (R,).
    """

    parameters: tuple[str, ...]
    elasticities: Floats
    counts: Floats
    errors: Floats

    def distance(self, elasticities: Mapping[str, Floats]) -> Floats:
        """Returns how far predictions are from all measurements, shape (K,); 0 where one is like them.

        It is the Euclidean distance of the elasticities to those of the nearest measurement.

        Args:
            elasticities: by parameter, shape (K,) each.
        """
        return np.asarray(np.min(self._distances(elasticities), axis=1))

    def scale(self, elasticities: Mapping[str, Floats], usual: float, slope: float) -> Floats:
        """Returns the scale of the logarithmic errors of some predictions, shape (K,): what measurements like them had,
        and more the farther they are from all.

        Args:
            elasticities: by parameter, shape (K,) each.
            usual: the mean of |ln(measured / predicted)| of all measurements.
            slope: by how much the scale grows with a distance of one.
        """
        distances = self._distances(elasticities)
        return _scale(_like(distances, self.counts, self.errors, usual), slope, np.min(distances, axis=1))

    def _distances(self, elasticities: Mapping[str, Floats]) -> Floats:
        return _distances(np.array([elasticities[name] for name in self.parameters]).T, self.elasticities)


@dataclass(frozen=True)
class HeldOutErrors:
    """Holds how far a calibration is off on kernels that were left out of its fit.

    Attributes:
        held_out: what was left out at a time: ``families``, ``variants`` or ``sizes``.
        groups: how many of them.
        count: measurements that were predicted so.
        usual: mean of |ln(measured / predicted)| of all of them, dimensionless.
        slope: by how much the scale of logarithmic errors grows with a distance of one.
        shared: the part of the scaled errors' variance that kernels left out together have in common.
        scores: sorted quantiles of ln(measured / predicted) / scale.
        covered: the part of these measurements that lies in the intervals of 68 and 90 %, each made from the errors of
            the other groups.
        neighbourhood: of all measurements.
    """

    held_out: str
    groups: int
    count: int
    usual: float
    slope: float
    shared: float
    scores: tuple[float, ...]
    covered: Mapping[str, float]
    neighbourhood: Neighbourhood

    def scale(self, elasticities: Mapping[str, Floats]) -> Floats:
        """Returns the scale of the logarithmic errors of some predictions, see `Neighbourhood.scale`."""
        return self.neighbourhood.scale(elasticities, self.usual, self.slope)

    def quantile(self, probability: float) -> float:
        """Returns the scaled logarithmic error that a new kernel's is below with this probability."""
        return _quantile(np.array(self.scores), self.count, self.groups, probability)

    def figures(self) -> dict[str, Any]:
        """Returns what was left out, how many times could be predicted so, and which parts of them the intervals
        hold."""
        return {"held_out": self.held_out, "groups": self.groups, "count": self.count, "covered": dict(self.covered)}

    def as_json(self) -> dict[str, Any]:
        """Returns the errors as values that JSON can hold."""
        near = self.neighbourhood
        return self.figures() | {
            "usual": self.usual,
            "slope": self.slope,
            "shared": self.shared,
            "scores": list(self.scores),
            "parameters": list(near.parameters),
            "elasticities": near.elasticities.tolist(),
            "counts": near.counts.tolist(),
            "errors": near.errors.tolist(),
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> HeldOutErrors:
        """Makes held-out errors of what `as_json` gave.

        Raises:
            KeyError, TypeError, ValueError: for anything else.
        """
        names = tuple(map(str, content["parameters"]))
        elasticities = np.array(content["elasticities"], dtype=np.float64).reshape(-1, len(names))
        scores, counts, errors = (np.array(content[n], dtype=np.float64) for n in ("scores", "counts", "errors"))
        numbers = (float(content["usual"]), float(content["slope"]), float(content["shared"]))
        if not all(np.isfinite(each).all() for each in (elasticities, scores, counts, errors, numbers)):
            raise ValueError("a number of the held-out errors is not finite")
        if min(numbers) < 0 or scores.ndim != 1 or not scores.size or np.any(np.diff(scores) < 0):
            raise ValueError("the held-out errors are not sorted, or have a negative scale")
        if not len(elasticities) or not counts.shape == errors.shape == (len(elasticities),):
            raise ValueError("the held-out errors have no measurements, or not one error for each")
        if np.any(counts < 0) or np.any(errors < 0):
            raise ValueError("a held-out error is negative")
        return cls(
            held_out=str(content["held_out"]),
            groups=int(content["groups"]),
            count=int(content["count"]),
            usual=numbers[0],
            slope=numbers[1],
            shared=numbers[2],
            scores=tuple(scores.tolist()),
            covered={level: float(content["covered"][level]) for level in LEVELS},
            neighbourhood=Neighbourhood(names, elasticities, counts, errors),
        )

    def __repr__(self) -> str:
        return brief(
            self,
            f"{self.groups} {self.held_out} left out",
            f"{self.count} measurements",
            f"usually {self.usual:.1%} off",
        )


def between(
    seconds: Floats,
    scale: Floats,
    quantile: Callable[[float], float],
    level: float,
    deviation: Floats | float = 0.0,
) -> tuple[Floats, Floats]:
    """Returns the ends of an interval around some seconds, by two errors of the logarithm that are independent.

    Args:
        scale: of the errors that quantiles are known of.
        quantile: of these, scaled.
        deviation: the standard deviation of normal errors beside.
    """
    low, high = (quantile(p) for p in ((1 - level) / 2, (1 + level) / 2))
    middle, half = (low + high) / 2 * scale, (high - low) / 2 * scale
    width = np.hypot(half, NormalDist().inv_cdf((1 + level) / 2) * np.asarray(deviation))
    with np.errstate(all="ignore"):
        return seconds * np.exp(np.maximum(middle - width, -WORST)), seconds * np.exp(middle + width)


@dataclass(frozen=True)
class LeftOutErrors:
    """Holds the errors of N measurements, each predicted by a fit to other groups than its own.

    Attributes:
        groups: of each measurement, shape (N,).
        logarithms: ln(measured / predicted), shape (N,); NaN where the other groups allow no fit.
        elasticities: relative change of each predicted time by relative change of a parameter, by parameter, shape
            (N,) each; of the fit to all measurements.
        expected: |ln(measured / predicted)| to be expected from measurements of other groups that are like each, shape
            (N,).
        distances: of each measurement from those of all other groups, shape (N,).
    """

    held_out: str
    groups: NDArray[Any]
    logarithms: Floats
    elasticities: Mapping[str, Floats]
    expected: Floats
    distances: Floats

    @classmethod
    def of(
        cls, held_out: str, groups: NDArray[Any], logarithms: Floats, elasticities: Mapping[str, Floats]
    ) -> LeftOutErrors:
        """Makes them of what each measurement's error is, with what measurements of other groups let expect of it."""
        expected, distances = (np.full(len(groups), np.nan) for _ in range(2))
        known, errors = np.isfinite(logarithms).astype(np.float64), np.nan_to_num(np.abs(logarithms))
        points = np.array(list(elasticities.values())).T
        for group in set(groups.tolist()):
            own, others = groups == group, groups != group
            if (number := known[others].sum()) > 0:
                apart = _distances(points[own], points[others])
                expected[own] = _like(apart, known[others], errors[others], errors[others].sum() / number)
                distances[own] = np.min(apart, axis=1)
        return cls(
            held_out=held_out,
            groups=groups,
            logarithms=logarithms,
            elasticities=elasticities,
            expected=expected,
            distances=distances,
        )

    @property
    def known(self) -> NDArray[np.bool_]:
        """A mask of the measurements that could be predicted so, shape (N,)."""
        return np.isfinite(self.logarithms)


def sensitivities(
    model: ModelString, parameters: Mapping[str, float], features: Mapping[str, Floats], count: int
) -> dict[str, Floats]:
    """Returns what distances are computed from: elasticities of K kernels, by parameter.

    Args:
        features: a column of shape (K,) for every feature of the model, which may have none.
        count: K.
    """
    compiled = model.compile()
    values = {name: parameters[name] for name in model.parameters}
    with np.errstate(all="ignore"):
        seconds = np.broadcast_to(np.asarray(compiled(values, features), dtype=np.float64), (count,))
        slopes = np.asarray(compiled.jacobian(values, features), dtype=np.float64).reshape(len(values), -1)
        ratios = np.array(list(values.values()))[:, None] * slopes / seconds
        bounded = np.clip(np.nan_to_num(ratios, nan=FARTHEST, posinf=FARTHEST, neginf=-FARTHEST), -FARTHEST, FARTHEST)
    return dict(zip(values, np.broadcast_to(bounded, (len(values), count)), strict=True))


def left_out_errors(
    model: ModelString,
    features: Mapping[str, Floats],
    output: Floats,
    families: Sequence[str],
    variants: Sequence[str],
    fitted: Mapping[str, float],
    **options: Any,
) -> LeftOutErrors:
    """Returns the errors of measurements that are left out of the fit in groups.

    Whole families are left out. Where the others have not got what most of the measurements have, as each family shows
    parameters of its own, variants of kernels are left out instead, or else sizes.

    Args:
        families, variants: of each measurement, shape (N,).
        options: as for `perfmodel.modelling.fitting.left_out.leave_out`.
    """
    both = [f"{family} {variant}" for family, variant in zip(families, variants, strict=True)]
    ranks = np.argsort(np.argsort(output, kind="stable"), kind="stable")
    ways = {"families": np.array(families), "variants": np.array(both), "sizes": ranks % MOST_ROWS_LEFT_OUT}
    for held_out, groups in ways.items():
        if len(set(groups.tolist())) >= FEWEST_GROUPS or held_out == "sizes":
            found = _left_out(held_out, groups, model, features, output, fitted, **options)
            if len(set(groups[found.known].tolist())) >= FEWEST_GROUPS and found.known.mean() >= MOSTLY:
                break
    return found


def _left_out(
    held_out: str,
    groups: NDArray[Any],
    model: ModelString,
    features: Mapping[str, Floats],
    output: Floats,
    fitted: Mapping[str, float],
    **options: Any,
) -> LeftOutErrors:
    from perfmodel.modelling.fitting.left_out import leave_out  # no prediction needs it

    logarithms = np.full(len(output), np.nan)
    for left in leave_out(model, features, output, groups, fitted, **options):
        own = {name: column[left.rows] for name, column in features.items()}
        unseen = [name for name, column in features.items() if not np.any(column[~left.rows] > 0)]
        found = _logarithms(output[left.rows], left.predicted)
        for without_price in unpriced(model, left.parameters, own, unseen).values():
            found[without_price] = np.nan
        logarithms[left.rows] = found
    return LeftOutErrors.of(held_out, groups, logarithms, sensitivities(model, fitted, features, len(output)))


def held_out_errors(found: LeftOutErrors) -> HeldOutErrors | None:
    """Returns the errors that intervals are made of; None where nothing could be left out."""
    known = found.known
    if known.sum() < 2:
        return None
    errors = np.abs(found.logarithms[known])
    groups = len(set(found.groups[known].tolist()))
    slope = _slope(errors, found.expected[known], found.distances[known], groups)
    scaled = found.logarithms[known] / _scale(found.expected[known], slope, found.distances[known])
    scores = np.sort(scaled)
    kept = np.quantile(scores, np.linspace(0, 1, SCORES)) if scores.size > SCORES else scores
    return HeldOutErrors(
        held_out=found.held_out,
        groups=groups,
        count=int(known.sum()),
        usual=float(np.mean(errors)),
        slope=slope,
        shared=_shared(scaled, found.groups[known]),
        scores=tuple(np.round(kept, 6).tolist()),
        covered={name: float(coverage(found, slope, level).mean()) for name, level in LEVELS.items()},
        neighbourhood=_neighbourhood(found),
    )


def coverage(found: LeftOutErrors, slope: float, level: float) -> NDArray[np.bool_]:
    """Returns, for each measurement that could be left out, whether it lies in its interval, made from all other
    groups.

    Returns:
        One value for each of `found.known`, shape (K,).
    """
    groups = found.groups[found.known]
    scores = (found.logarithms / _scale(found.expected, slope, found.distances))[found.known]
    inside = np.zeros(len(scores), dtype=bool)
    for group in set(groups.tolist()):
        own = groups == group
        others = np.sort(scores[~own])
        left = len(set(groups.tolist())) - 1
        low, high = (_quantile(others, len(others), left, p) for p in ((1 - level) / 2, (1 + level) / 2))
        inside[own] = (scores[own] >= low) & (scores[own] <= high)
    return inside


def _logarithms(measured: Floats, predicted: Floats) -> Floats:
    with np.errstate(all="ignore"):
        ratios = np.where(predicted > 0, np.log(measured / predicted), WORST)
    return np.asarray(np.clip(np.nan_to_num(ratios, nan=WORST, posinf=WORST, neginf=-WORST), -WORST, WORST))


def _scale(expected: Floats, slope: float, distance: Floats) -> Floats:
    return np.asarray(np.maximum(expected + slope * distance, LEAST_SCALE))


def _slope(errors: Floats, expected: Floats, distances: Floats, groups: int) -> float:
    """Returns the likeliest growth of a Laplace distribution's scale with distance; about what is usual where few
    groups show it, as the errors of one resemble each other."""

    def surprise(slope: float) -> float:
        scale = _scale(expected, slope, distances)
        likelihood = groups * (np.mean(np.log(scale)) + np.log(np.mean(errors / scale) + 1e-12))
        return float(likelihood + np.log((slope + 0.1) / (USUAL_SLOPE + 0.1)) ** 2)

    return min(SLOPES, key=surprise)


def _shared(scaled: Floats, groups: NDArray[Any]) -> float:
    """Returns the part of the errors' variance that all of a group share; 0 where each group is one measurement."""
    members = [scaled[groups == group] for group in set(groups.tolist())]
    freedom = sum(len(each) - 1 for each in members)
    total = float(np.var(scaled))
    if not freedom or not total:
        return 0.0
    within = sum(float(np.sum((each - each.mean()) ** 2)) for each in members) / freedom
    return float(np.clip(1 - within / total, 0.0, 1.0))


def _quantile(scores: Floats, count: int, groups: int, probability: float) -> float:
    """Returns a quantile of sorted scores for a value of another group; a Student's t where there are too few for it.

    The errors of one group resemble each other, so that few groups show less of the tails than so many values would.
    """
    tail = min(probability, 1 - probability) * (groups - 1) / (groups + 1)
    probability = tail if probability < 0.5 else 1 - tail
    if tail * (count + 1) >= 1:
        # Conformal: the rank among one more than these.
        rank = probability * (count + 1) - 1
        return float(np.interp(rank / max(count - 1, 1), np.linspace(0, 1, len(scores)), scores))
    from scipy.special import stdtrit  # slow to import, but a quarter of scipy.stats

    spread = float(np.sqrt(np.mean(scores**2)))
    drawn = float(stdtrit(max(count - 1, 1), probability)) * spread
    return min(drawn, float(scores[0])) if probability < 0.5 else max(drawn, float(scores[-1]))


def _neighbourhood(found: LeftOutErrors) -> Neighbourhood:
    """Returns some measurements, each with the errors of those that are nearest to it."""
    elasticities = found.elasticities
    names = tuple(name for name, values in elasticities.items() if np.any(values != 0)) or tuple(elasticities)
    points = np.array([elasticities[name] for name in names]).T
    chosen = points[_spread_out(points, MOST_NEIGHBOURS)] if len(points) > MOST_NEIGHBOURS else points
    chosen = np.round(chosen, 3) + 0.0
    nearest = np.argmin(_distances(points[found.known], chosen), axis=1)
    counts, errors = (
        np.bincount(nearest, weights, minlength=len(chosen)).astype(np.float64)
        for weights in (None, np.abs(found.logarithms[found.known]))
    )
    return Neighbourhood(names, chosen, counts, np.round(errors, 6))


def _distances(points: Floats, others: Floats) -> Floats:
    """Returns Euclidean distances of points of shape (K, P) from others of shape (R, P), shape (K, R)."""
    squares = np.sum(points**2, axis=1)[:, None] + np.sum(others**2, axis=1)
    return np.asarray(np.sqrt(np.maximum(squares - 2 * points @ others.T, 0)))


def _like(distances: Floats, counts: Floats, errors: Floats, usual: float) -> Floats:
    """Returns the mean error of measurements at distances of shape (K, R), the nearer the more it counts (Nadaraya and
    Watson's estimator), among them some of the usual error."""
    weights = np.exp(-0.5 * (distances / LIKE) ** 2)
    return np.asarray((weights @ errors + USUAL_WEIGHT * usual) / (weights @ counts + USUAL_WEIGHT))


def _spread_out(points: Floats, count: int) -> NDArray[np.intp]:
    """Returns so many of the points, each the farthest from those before it."""
    chosen = [0]
    distance = np.linalg.norm(points - points[0], axis=1)
    while len(chosen) < count:
        chosen.append(int(np.argmax(distance)))
        distance = np.minimum(distance, np.linalg.norm(points - points[chosen[-1]], axis=1))
    return np.array(chosen)
