"""Judges what the measurements do and do not determine at a solution: bounds, open directions, standard errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perfmodel.basics.errors import FitError
from perfmodel.modelling.fitting.problem import Array, Problem
from perfmodel.modelling.fitting.resampling import Resampled, resample
from perfmodel.modelling.fitting.result import Undetermined
from perfmodel.modelling.fitting.structure import competing_parameters, edge_parameters, exponent_parameters

_NO_INFLUENCE = 1e-7
"""A parameter whose doubling changes no prediction by this fraction has no influence that a clock could see."""

_COLLINEAR = 1e-9
"""Singular values of unit-norm columns below this fraction of the largest count as zero."""

_MEMBER = 1e-4
"""Components of a unit null vector above this belong to the collinear group."""


_SUBSTANTIAL = 0.5
"""A part that is as large as this and may as well be missing is not known."""

_NOTABLE = 0.001
"""The same limit for a parameter that is not at a bound, with a standard error as large as itself."""

_TOGETHER = 0.9
"""Undetermined parameters that change with this correlation make up for each other."""

_FREER = 1.5
"""A standard error that grows by this factor once parameters may leave their bounds is that of the larger set."""

_CERTAIN = 3.0
"""A parameter is at its bound for certain if the best value beyond it is so many standard errors away."""

LEVEL = 0.95
"""The probability with which a parameter lies within its limits."""


@dataclass(frozen=True)
class Assessment:
    """Holds the attributes of the same names of `FitResult`."""

    fixed: tuple[str, ...]
    at_bound: tuple[str, ...]
    limits: dict[str, tuple[float, float]]
    undetermined: tuple[Undetermined, ...]
    covariance: Array
    stderr: dict[str, float]
    chi_square: float
    degrees_of_freedom: int


def assess(problem: Problem, parameters: Mapping[str, float], unit: float) -> Assessment:
    """Judges a solution: bounds, undetermined parameters, standard errors.

    Args:
        problem: What was fitted.
        parameters: The solution, every parameter of the model.
        unit: What one weighted residual is worth in the reported residuals' unit (1 for relative residuals).
    """
    names = problem.model.parameters
    fixed = tuple(name for name in names if name in problem.fixed and name not in problem.absent)
    at_bound = tuple(name for name in problem.free if parameters[name] in problem.bounds[name])
    undetermined = [
        Undetermined(
            (name,), f"{' and '.join(features)} {'is' if len(features) == 1 else 'are'} zero in every measurement"
        )
        for name, features in problem.absent.items()
    ]
    whole = problem.jacobian({name: parameters[name] for name in problem.free})
    steep = [name for name, column in zip(problem.free, whole.T, strict=True) if not np.isfinite(column).all()]
    if steep:
        raise FitError(
            f"the model's slope by {steep[0]!r} is not finite at the fitted {parameters[steep[0]]:g}, as of a square"
            " root at zero; bound the parameter away from there"
        )
    magnitudes = np.array([max(abs(parameters[name]), problem.scales[name]) for name in problem.free])
    influence = np.abs(whole * magnitudes).max(axis=0, initial=0.0)
    audible = [name for name, size in zip(problem.free, influence, strict=True) if size >= _NO_INFLUENCE]
    undetermined += _without_influence(problem, [n for n in problem.free if n not in audible and n not in at_bound])
    active = [name for name in audible if name not in at_bound]
    scaled = _Decomposition.of(_columns(whole, problem.free, active))
    undetermined += _collinear_groups(active, scaled, problem.model.is_linear)
    residuals = problem.residuals({name: parameters[name] for name in problem.free})
    chi_square = float(np.sum(residuals**2))
    freedom = len(residuals) - scaled.rank
    variance = chi_square / freedom if freedom else np.nan
    covariance = np.zeros((len(names), len(names)))
    rows = [names.index(name) for name in active]
    covariance[np.ix_(rows, rows)] = scaled.inverse_normal_matrix() * variance
    deviations = dict(zip(names, np.sqrt(np.diag(covariance)).tolist(), strict=True))
    limits: dict[str, tuple[float, float]] = {}
    if freedom:
        open_ = {name for item in undetermined for name in item.parameters}
        pressed = _pressed(_columns(whole, problem.free, at_bound), scaled, residuals, np.sqrt(variance))
        movable = [name for name in audible if name not in at_bound or not pressed[at_bound.index(name)]]
        samples = _resampled(problem, parameters, _columns(whole, problem.free, movable), movable, variance)
        groups = _groups(_doubtful(problem, parameters, samples, deviations, at_bound, open_), samples, open_)
        undetermined += groups
        vague = [name for group in groups for name in group.parameters]
        limits = _limits(problem, parameters, samples, [*at_bound, *vague])
        # A parameter at its bound may leave it, and others change with it then.
        freer = _freer(samples, deviations, [*at_bound, *open_])
        if vague or freer:
            _carry_into(covariance, names, samples)
        deviations |= freer
    known = set(active) - {name for item in undetermined for name in item.parameters}
    stderr = {name: deviations[name] if name in known else np.nan for name in names}
    return Assessment(
        fixed=fixed,
        at_bound=at_bound,
        limits=limits,
        undetermined=tuple(undetermined),
        covariance=covariance,
        stderr=stderr,
        chi_square=chi_square * unit**2,
        degrees_of_freedom=freedom,
    )


def _columns(matrix: Array, names: Sequence[str], wanted: Sequence[str]) -> Array:
    return matrix[:, [names.index(name) for name in wanted]]


def _pressed(columns: Array, others: _Decomposition, residuals: Array, noise: float) -> list[bool]:
    """Returns, for each parameter at a bound, whether it is there for certain: no noise would let it off.

    Args:
        columns: Derivatives of the weighted residuals by these parameters.
        others: Of the derivatives by the parameters that are free to move.
    """
    left = others.left
    beside = columns - left @ (left.T @ columns)
    norms = np.linalg.norm(beside, axis=0)
    pulls = np.abs(beside.T @ residuals)
    return [bool(pull > _CERTAIN * noise * norm) for pull, norm in zip(pulls, norms, strict=True)]


def _resampled(
    problem: Problem, parameters: Mapping[str, float], jacobian: Array, names: list[str], variance: float
) -> Resampled:
    values = np.array([parameters[name] for name in names])
    lower, upper = np.array([problem.bounds[name] for name in names]).reshape(-1, 2).T
    return resample(names, jacobian, values - lower, upper - values, float(np.sqrt(variance)))


def _doubtful(
    problem: Problem,
    parameters: Mapping[str, float],
    samples: Resampled,
    deviations: Mapping[str, float],
    at_bound: tuple[str, ...],
    known: set[str],
) -> list[str]:
    """Returns parameters with a bound, beside those that are known to be undetermined, whose error is as large as their
    value.

    A value next to nothing is determined all the same if what it may be is a small part of all times. Parameters of
    either sign have true standard errors, however large these are.
    """
    found = []
    for name, deviation, influence in zip(samples.names, samples.deviations, samples.influence, strict=True):
        value, is_bounded = abs(parameters[name]), bool(np.isfinite(problem.bounds[name]).any())
        is_large = deviation >= value and influence >= _SUBSTANTIAL
        is_vague = name not in at_bound and deviations[name] >= value and influence >= _NOTABLE
        if is_bounded and name not in known and (is_large or is_vague):
            found.append(name)
    return found


def _groups(doubtful: list[str], samples: Resampled, known: set[str]) -> list[Undetermined]:
    """Returns the doubtful parameters, each together with those that make up for it."""
    found, left = [], list(doubtful)
    correlation = np.abs(samples.correlation)
    while left:
        row = correlation[samples.names.index(left[0])]
        grouped = {name for name, size in zip(samples.names, row, strict=True) if size >= _TOGETHER} - known
        group = tuple(name for name in samples.names if name in grouped | {left[0]})
        left = [name for name in left if name not in group]
        known = known | set(group)
        if len(group) > 1:
            reason = "they are nearly collinear: the measurements fix what they add up to, and none of them by itself"
        else:
            reason = "its standard error is as large as its value"
        found.append(Undetermined(group, reason))
    return found


def _freer(samples: Resampled, deviations: Mapping[str, float], without: list[str]) -> dict[str, float]:
    """Returns standard errors that are much larger once parameters at their bounds may leave them."""
    found = zip(samples.names, samples.deviations.tolist(), strict=True)
    return {name: size for name, size in found if name not in without and size > _FREER * deviations[name]}


def _limits(
    problem: Problem, parameters: Mapping[str, float], samples: Resampled, wanted: list[str]
) -> dict[str, tuple[float, float]]:
    found = {}
    changes = dict(zip(samples.names, samples.limits(LEVEL).T.tolist(), strict=True))
    for name in wanted:
        if name in changes:
            low, high = (float(np.clip(parameters[name] + c, *problem.bounds[name])) for c in changes[name])
            found[name] = (low, high)
    return found


def _carry_into(covariance: Array, names: tuple[str, ...], samples: Resampled) -> None:
    """Writes the samples' covariances of all their parameters into a covariance."""
    places = [names.index(name) for name in samples.names]
    covariance[np.ix_(places, places)] = samples.changes.T @ samples.changes / len(samples.changes)


def _without_influence(problem: Problem, names: list[str]) -> list[Undetermined]:
    root = problem.model.value
    edges, competing = edge_parameters(root) | exponent_parameters(root), competing_parameters(root)
    found = []
    for name in names:
        if name in edges:
            reason = "no measurement lies where its arguments are of similar size, so that its value does not show"
        elif name in problem.flat:
            reason = "it is a threshold, and any value within the same gap between measurements fits as well"
        elif name in competing:
            reason = "at the fitted values its term is hidden behind a larger one"
        else:
            reason = "it has no influence at the fitted values"
        found.append(Undetermined((name,), reason))
    return found


@dataclass(frozen=True)
class _Decomposition:
    """The singular value decomposition of a Jacobian with columns scaled to unit norm."""

    scales: Array
    left: Array
    singular: Array
    right: Array
    rank: int

    @classmethod
    def of(cls, jacobian: Array) -> _Decomposition:
        scales = 1 / np.linalg.norm(jacobian, axis=0)
        if not scales.size:
            return cls(scales, np.empty((len(jacobian), 0)), np.empty(0), np.empty((0, 0)), 0)
        left, singular, right = np.linalg.svd(jacobian * scales, full_matrices=False)
        rank = int(np.sum(singular > _COLLINEAR * singular[0]))
        return cls(scales, left[:, :rank], singular, right, rank)

    def inverse_normal_matrix(self) -> Array:
        """Returns (J^T J)^-1 in the parameters' units, without the directions that the measurements leave open."""
        factor = self.scales[:, None] * self.right[: self.rank].T / self.singular[: self.rank]
        return np.asarray(factor @ factor.T)

    def open_directions(self) -> Array:
        """Returns a basis of the null space with few members in each vector, one row each, in units of the scales."""
        return _sparse_basis(self.right[self.rank :])


def _sparse_basis(basis: Array) -> Array:
    """Returns the reduced row echelon form of a basis, pivoting on the largest entries."""
    rows = np.array(basis)
    for row in range(len(rows)):
        pivot = int(np.argmax(np.abs(rows[row])))
        rows[row] /= rows[row, pivot]
        others = np.arange(len(rows)) != row
        rows[others] -= np.outer(rows[others, pivot], rows[row])
    return rows


def _collinear_groups(names: list[str], scaled: _Decomposition, is_linear: bool) -> list[Undetermined]:
    groups = []
    for direction in scaled.open_directions():
        members = [i for i in range(len(names)) if abs(direction[i]) > _MEMBER * np.abs(direction).max()]
        involved = tuple(names[i] for i in members)
        steps = direction[members] * scaled.scales[members]
        groups.append(Undetermined(involved, _collinearity(involved, steps, is_linear)))
    return groups


def _collinearity(names: tuple[str, ...], steps: Array, is_linear: bool) -> str:
    """Returns a sentence about parameters that can move together by `steps` without changing any prediction."""
    where = "" if is_linear else " near the fitted values"
    fixed = "combinations of them" if len(names) > 2 else _fixed_combination(names, steps)
    choice = "the smallest choice" if is_linear else "one choice"
    return f"they are collinear{where}: the measurements fix only {fixed}, of which {choice} is given"


def _fixed_combination(names: tuple[str, ...], steps: Array) -> str:
    factor = -steps[0] / steps[1]
    sign, size = ("-" if factor < 0 else "+"), abs(factor)
    return f"{names[0]} {sign} {'' if abs(size - 1) < 1e-6 else f'{size:.6g} '}{names[1]}"
