"""Prediction intervals from the errors of kernels that were left out of the fit.

Whole families of kernels are left out of the fit in turn and predicted from the others. How far these predictions
are off, as logarithms of measured / predicted, is what an interval may promise for a kernel that no fit has seen
(cross-conformal prediction: Vovk, "Cross-conformal predictors", 2015; intervals that are wider where predictions are
harder: Papadopoulos, Gammerman, Vovk, "Normalized nonconformity measures for regression conformal prediction", 2008).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.brief import brief
from perfmodel.expression import ModelString
from perfmodel.modelling.fitting.left_out import leave_out

Floats = NDArray[np.float64]

FEWEST_GROUPS = 4
"""Fewer families, or variants of one family, than these say nothing of others."""
MOSTLY = 0.5
"""The part of all measurements that must be predictable from other groups than their own."""
MOST_ROWS_LEFT_OUT = 40
"""Single measurements are left out one by one up to so many, and beyond in so many parts."""
LEVELS = {"68": 0.68, "90": 0.9}
MOST_NEIGHBOURS = 300
"""So many measurements are kept to tell how far a kernel is from all that was measured."""
SCORES = 401
"""So many quantiles of the scaled errors are kept."""
SLOPES = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
USUAL_SLOPE = 0.3
"""The growth of errors with distance that fits best where 30 families were left out in turn (unified-plus on an NVIDIA
H200)."""
PER_DOUBLING = 0.05
"""The distance that each doubling of the largest amount of something in a second adds."""
MOST_DOUBLINGS = 6.0
LEAST_SCALE = 0.005
"""Errors of less than half a per cent are those of the clock."""
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
        elasticities: relative change of a predicted time by relative change of each parameter, shape (R, P).
        most_per_second: of each feature, the largest number in a predicted second of any measurement.
    """

    parameters: tuple[str, ...]
    elasticities: Floats
    most_per_second: Mapping[str, float]

    def unpriced(self, per_second: Mapping[str, Floats]) -> NDArray[np.bool_]:
        """Returns a mask of kernels with something that no measurement had, so that the model has no price for it;
        shape (K,)."""
        found = [(per_second[name] > 0) & (most == 0) for name, most in self.most_per_second.items()]
        return np.asarray(np.any(found, axis=0))

    def distance(self, elasticities: Mapping[str, Floats], per_second: Mapping[str, Floats]) -> Floats:
        """Returns how far predictions are from all measurements, shape (K,); 0 where one is like them.

        It is the Euclidean distance of the elasticities to those of the nearest measurement, and what the doublings of
        the feature add of which there is most per second, beyond what any measurement has.

        Args:
            elasticities: by parameter, shape (K,) each.
            per_second: by feature, its number divided by the predicted seconds, shape (K,) each.
        """
        points = np.array([elasticities[name] for name in self.parameters]).T
        squares = np.sum(points**2, axis=1)[:, None] + np.sum(self.elasticities**2, axis=1)
        nearest = np.min(squares - 2 * points @ self.elasticities.T, axis=1)
        doublings = np.zeros(len(points))
        with np.errstate(all="ignore"):
            for name, most in self.most_per_second.items():
                beyond = np.log2(per_second[name] / most)
                doublings = np.fmax(doublings, np.where(per_second[name] > 0, beyond, 0.0))
        return np.asarray(np.sqrt(np.maximum(nearest, 0)) + PER_DOUBLING * np.minimum(doublings, MOST_DOUBLINGS))


@dataclass(frozen=True)
class HeldOutErrors:
    """Holds how far a calibration is off on kernels that were left out of its fit.

    Attributes:
        held_out: what was left out at a time: ``families``, ``variants`` or ``sizes``.
        groups: how many of them.
        count: measurements that were predicted so.
        base: scale of the logarithmic errors next to the measurements, dimensionless.
        slope: by how much the scale grows with a distance of one.
        shared: the part of the scaled errors' variance that kernels left out together have in common.
        scores: sorted quantiles of ln(measured / predicted) / scale.
        covered: the part of these measurements that lies in the intervals of 68 and 90 %, each made from the errors of
            the other groups.
        neighbourhood: of all measurements.
    """

    held_out: str
    groups: int
    count: int
    base: float
    slope: float
    shared: float
    scores: tuple[float, ...]
    covered: Mapping[str, float]
    neighbourhood: Neighbourhood

    def scale(self, distance: Floats) -> Floats:
        """Returns the scale of logarithmic errors at some distances."""
        return np.asarray(self.base + self.slope * distance)

    def quantile(self, probability: float) -> float:
        """Returns the scaled logarithmic error that a new kernel's is below with this probability."""
        return _quantile(np.array(self.scores), self.count, self.groups, probability)

    def interval(self, seconds: Floats, distance: Floats, level: float) -> tuple[Floats, Floats]:
        """Returns times between which a measured one is expected to lie with the probability `level`."""
        return between(seconds, self.scale(distance), self.quantile, level)

    def figures(self) -> dict[str, Any]:
        """Returns what was left out, how many times could be predicted so, and which parts of them the intervals
        hold."""
        return {"held_out": self.held_out, "groups": self.groups, "count": self.count, "covered": dict(self.covered)}

    def as_json(self) -> dict[str, Any]:
        """Returns the errors as values that JSON can hold."""
        near = self.neighbourhood
        return self.figures() | {
            "base": self.base,
            "slope": self.slope,
            "shared": self.shared,
            "scores": list(self.scores),
            "parameters": list(near.parameters),
            "elasticities": near.elasticities.tolist(),
            "most_per_second": dict(near.most_per_second),
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> HeldOutErrors:
        """Makes held-out errors of what `as_json` gave.

        Raises:
            KeyError, TypeError, ValueError: for anything else.
        """
        names = tuple(map(str, content["parameters"]))
        elasticities = np.array(content["elasticities"], dtype=np.float64).reshape(-1, len(names))
        scores = np.array(content["scores"], dtype=np.float64)
        most = {str(name): float(value) for name, value in content["most_per_second"].items()}
        numbers = (float(content["base"]), float(content["slope"]), float(content["shared"]))
        if not (np.isfinite(elasticities).all() and np.isfinite(scores).all() and np.isfinite(numbers).all()):
            raise ValueError("a number of the held-out errors is not finite")
        if min(numbers) < 0 or scores.ndim != 1 or not scores.size or np.any(np.diff(scores) < 0):
            raise ValueError("the held-out errors are not sorted, or have a negative scale")
        if not len(elasticities) or not np.isfinite([*most.values()]).all():
            raise ValueError("the held-out errors have no measurements")
        return cls(
            held_out=str(content["held_out"]),
            groups=int(content["groups"]),
            count=int(content["count"]),
            base=numbers[0],
            slope=numbers[1],
            shared=numbers[2],
            scores=tuple(scores.tolist()),
            covered={level: float(content["covered"][level]) for level in LEVELS},
            neighbourhood=Neighbourhood(names, elasticities, most),
        )

    def __repr__(self) -> str:
        return brief(
            self, f"{self.groups} {self.held_out} left out", f"{self.count} measurements", f"scale {self.base:.3g}"
        )


def between(seconds: Floats, scale: Floats, quantile: Callable[[float], float], level: float) -> tuple[Floats, Floats]:
    """Returns the ends of an interval around some seconds, by the quantiles of scaled logarithmic errors."""
    low, high = (quantile(p) for p in ((1 - level) / 2, (1 + level) / 2))
    with np.errstate(all="ignore"):
        return seconds * np.exp(np.maximum(low * scale, -WORST)), seconds * np.exp(high * scale)


@dataclass(frozen=True)
class LeftOutErrors:
    """Holds the errors of N measurements, each predicted by a fit to other groups than its own.

    Attributes:
        groups: of each measurement, shape (N,).
        logarithms: ln(measured / predicted), shape (N,); NaN where the other groups allow no fit.
        distances: of each measurement from those of all other groups, shape (N,).
    """

    held_out: str
    groups: NDArray[Any]
    logarithms: Floats
    distances: Floats

    @property
    def known(self) -> NDArray[np.bool_]:
        """A mask of the measurements that could be predicted so, shape (N,)."""
        return np.isfinite(self.logarithms)


def sensitivities(
    model: ModelString, parameters: Mapping[str, float], features: Mapping[str, Floats], count: int
) -> tuple[dict[str, Floats], dict[str, Floats], Floats]:
    """Returns what distances are computed from: elasticities by parameter, features per second, and seconds; each of K
    kernels.

    Args:
        features: a column of shape (K,) for every feature of the model, which may have none.
        count: K.
    """
    compiled = model.compile()
    with np.errstate(all="ignore"):
        seconds = np.broadcast_to(np.asarray(compiled(parameters, features), dtype=np.float64), (count,))
        slopes = np.asarray(compiled.jacobian(parameters, features), dtype=np.float64).reshape(len(parameters), -1)
        ratios = np.array(list(parameters.values()))[:, None] * slopes / seconds
        bounded = np.clip(np.nan_to_num(ratios, nan=FARTHEST, posinf=FARTHEST, neginf=-FARTHEST), -FARTHEST, FARTHEST)
        elasticities = np.broadcast_to(bounded, (len(parameters), count))
        per_second = {
            name: np.nan_to_num(np.broadcast_to(column, (count,)) / np.abs(seconds))
            for name, column in features.items()
        }
    return dict(zip(parameters, elasticities, strict=True)), per_second, seconds


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
    logarithms, distances = (np.full(len(output), np.nan) for _ in range(2))
    for left in leave_out(model, features, output, groups, fitted, **options):
        of_all = sensitivities(model, left.parameters, features, len(output))
        near = _neighbourhood(of_all, ~left.rows)
        elasticities, per_second, _ = of_all
        own = _chosen(per_second, left.rows)
        distances[left.rows] = near.distance(_chosen(elasticities, left.rows), own)
        logarithms[left.rows] = np.where(near.unpriced(own), np.nan, _logarithms(output[left.rows], left.predicted))
    return LeftOutErrors(held_out, groups, logarithms, distances)


def held_out_errors(
    found: LeftOutErrors,
    model: ModelString,
    features: Mapping[str, Floats],
    output: Floats,
    fitted: Mapping[str, float],
    freedom: int,
) -> HeldOutErrors | None:
    """Returns the errors that intervals are made of; None where nothing could be left out.

    Args:
        fitted: parameters fitted to all measurements.
        freedom: degrees of freedom of that fit.
    """
    known = found.known
    if known.sum() < 2:
        return None
    of_all = sensitivities(model, fitted, features, len(output))
    inside = _logarithms(output, of_all[2])
    base = _base(inside, freedom)
    slope = _slope(np.abs(found.logarithms[known]), found.distances[known], base)
    scaled = found.logarithms[known] / (base + slope * found.distances[known])
    scores = np.sort(scaled)
    kept = np.quantile(scores, np.linspace(0, 1, SCORES)) if scores.size > SCORES else scores
    groups = len(set(found.groups[known].tolist()))
    near = _neighbourhood(of_all, np.ones(len(output), dtype=bool), MOST_NEIGHBOURS)
    return HeldOutErrors(
        held_out=found.held_out,
        groups=groups,
        count=int(known.sum()),
        base=base,
        slope=slope,
        shared=_shared(scaled, found.groups[known]),
        scores=tuple(np.round(kept, 6).tolist()),
        covered={name: float(coverage(found, base, slope, level).mean()) for name, level in LEVELS.items()},
        neighbourhood=near,
    )


def coverage(found: LeftOutErrors, base: float, slope: float, level: float) -> NDArray[np.bool_]:
    """Returns, for each measurement that could be left out, whether it lies in its interval, made from all other
    groups.

    Returns:
        One value for each of `found.known`, shape (K,).
    """
    groups = found.groups[found.known]
    scores = found.logarithms[found.known] / (base + slope * found.distances[found.known])
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


def _base(inside: Floats, freedom: int) -> float:
    """Returns the scale of a Laplace distribution of the errors of the fit itself, for the parameters that it has."""
    spread = float(np.mean(np.abs(inside)))
    return max(spread * np.sqrt(len(inside) / freedom) if freedom > 0 else LEAST_SCALE, LEAST_SCALE)


def _slope(errors: Floats, distances: Floats, base: float) -> float:
    """Returns the likeliest growth of a Laplace distribution's scale with distance; what is usual where nothing shows
    it."""

    def surprise(slope: float) -> float:
        scale = base + slope * distances
        likelihood = len(errors) * (np.mean(np.log(scale)) + np.log(np.mean(errors / scale) + 1e-12))
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
    from scipy.stats import t  # slow to import

    spread = float(np.sqrt(np.mean(scores**2)))
    drawn = float(t.ppf(probability, max(count - 1, 1))) * spread
    return min(drawn, float(scores[0])) if probability < 0.5 else max(drawn, float(scores[-1]))


def _neighbourhood(
    of_all: tuple[Mapping[str, Floats], Mapping[str, Floats], Floats],
    chosen: NDArray[np.bool_],
    most: int | None = None,
) -> Neighbourhood:
    elasticities, per_second, _ = of_all
    names = tuple(name for name, values in elasticities.items() if np.any(values[chosen] != 0)) or tuple(elasticities)
    points = np.array([elasticities[name][chosen] for name in names]).T
    if most is not None and len(points) > most:
        points = points[_spread_out(points, most)]
    points = np.round(points, 3) + 0.0
    return Neighbourhood(names, points, {name: float(np.max(values[chosen])) for name, values in per_second.items()})


def _spread_out(points: Floats, count: int) -> NDArray[np.intp]:
    """Returns so many of the points, each the farthest from those before it."""
    chosen = [0]
    distance = np.linalg.norm(points - points[0], axis=1)
    while len(chosen) < count:
        chosen.append(int(np.argmax(distance)))
        distance = np.minimum(distance, np.linalg.norm(points - points[chosen[-1]], axis=1))
    return np.array(chosen)


def _chosen(values: Mapping[str, Floats], rows: NDArray[np.bool_]) -> dict[str, Floats]:
    return {name: each[rows] for name, each in values.items()}
