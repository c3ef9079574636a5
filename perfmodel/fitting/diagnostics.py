"""What the measurements do and do not determine at a solution: bounds, open directions, standard errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from perfmodel.fitting.problem import Array, Problem
from perfmodel.fitting.result import Undetermined
from perfmodel.fitting.structure import competing_parameters, edge_parameters, exponent_parameters

_NO_INFLUENCE = 1e-7
"""A parameter whose doubling changes no prediction by this fraction has no influence that a clock could see."""

_COLLINEAR = 1e-9
"""Singular values of unit-norm columns below this fraction of the largest count as zero."""

_MEMBER = 1e-4
"""Components of a unit null vector above this belong to the collinear group."""


@dataclass(frozen=True)
class Assessment:
    """See the attributes of the same names of `FitResult`."""

    at_bound: tuple[str, ...]
    undetermined: tuple[Undetermined, ...]
    covariance: Array
    stderr: dict[str, float]
    chi_square: float
    degrees_of_freedom: int


def assess(problem: Problem, parameters: Mapping[str, float], unit: float) -> Assessment:
    """Judge a solution.

    Args:
        problem: What was fitted.
        parameters: The solution, every parameter of the model.
        unit: What one weighted residual is worth in the reported residuals' unit (1 for relative residuals).
    """
    names = problem.model.parameters
    at_bound = tuple(name for name in names if name not in problem.absent and parameters[name] in problem.bounds[name])
    undetermined = [
        Undetermined((name,), f"{_listed(features)} {'is' if len(features) == 1 else 'are'} zero in every measurement")
        for name, features in problem.absent.items()
    ]
    candidates = [name for name in problem.free if name not in at_bound]
    jacobian = problem.jacobian({name: parameters[name] for name in problem.free})
    jacobian = jacobian[:, [problem.free.index(name) for name in candidates]]
    influence = np.abs(jacobian * _magnitudes(problem, parameters, candidates)).max(axis=0, initial=0.0)
    mute = [name for name, size in zip(candidates, influence, strict=True) if size < _NO_INFLUENCE]
    undetermined += _without_influence(problem, mute)
    active = [name for name in candidates if name not in mute]
    jacobian = jacobian[:, [candidates.index(name) for name in active]]
    scaled = _Decomposition.of(jacobian)
    undetermined += _collinear_groups(active, scaled, problem.model.is_linear)
    residuals = problem.residuals({name: parameters[name] for name in problem.free})
    chi_square = float(np.sum(residuals**2))
    freedom = len(residuals) - scaled.rank
    variance = chi_square / freedom if freedom else np.nan
    covariance = np.zeros((len(names), len(names)))
    rows = [names.index(name) for name in active]
    covariance[np.ix_(rows, rows)] = scaled.inverse_normal_matrix() * variance
    known = set(active) - {name for item in undetermined for name in item.parameters}
    deviations = np.sqrt(np.diag(covariance))
    stderr = {name: float(deviations[i]) if name in known else np.nan for i, name in enumerate(names)}
    return Assessment(at_bound, tuple(undetermined), covariance, stderr, chi_square * unit**2, freedom)


def _magnitudes(problem: Problem, parameters: Mapping[str, float], names: list[str]) -> Array:
    return np.array([max(abs(parameters[name]), problem.scales[name]) for name in names])


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
    singular: Array
    right: Array
    rank: int

    @classmethod
    def of(cls, jacobian: Array) -> _Decomposition:
        scales = 1 / np.linalg.norm(jacobian, axis=0)
        if not scales.size:
            return cls(scales, np.empty(0), np.empty((0, 0)), 0)
        _, singular, right = np.linalg.svd(jacobian * scales, full_matrices=False)
        return cls(scales, singular, right, int(np.sum(singular > _COLLINEAR * singular[0])))

    def inverse_normal_matrix(self) -> Array:
        """(J^T J)^-1 in the parameters' units, without the directions that the measurements leave open."""
        factor = self.scales[:, None] * self.right[: self.rank].T / self.singular[: self.rank]
        return np.asarray(factor @ factor.T)

    def open_directions(self) -> Array:
        """A basis of the null space with few members in each vector, one row each, in units of the scales."""
        return _sparse_basis(self.right[self.rank :])


def _sparse_basis(basis: Array) -> Array:
    """The reduced row echelon form, pivoting on the largest entries."""
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
    """A sentence about parameters that can move together by `steps` without changing any prediction."""
    where = "" if is_linear else " near the fitted values"
    fixed = "combinations of them" if len(names) > 2 else _fixed_combination(names, steps)
    choice = "the smallest choice" if is_linear else "one choice"
    return f"they are collinear{where}: the measurements fix only {fixed}, of which {choice} is given"


def _fixed_combination(names: tuple[str, ...], steps: Array) -> str:
    factor = -steps[0] / steps[1]
    sign, size = ("-" if factor < 0 else "+"), abs(factor)
    return f"{names[0]} {sign} {'' if abs(size - 1) < 1e-6 else f'{size:.6g} '}{names[1]}"


def _listed(names: tuple[str, ...]) -> str:
    return " and ".join(names)
