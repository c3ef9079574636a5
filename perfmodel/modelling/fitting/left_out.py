"""Predicts measurements that a fit has not seen: each group is left out once and predicted from the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.errors import FitError
from perfmodel.basics.side_by_side import side_by_side
from perfmodel.expression import ModelString
from perfmodel.modelling.fitting.linear import solve_directly
from perfmodel.modelling.fitting.nonlinear import local_minimum
from perfmodel.modelling.fitting.problem import Problem, pose

Array = NDArray[np.float64]

FEWEST_APART = 1000
"""Fits to fewer measurements are done in this process."""


@dataclass(frozen=True)
class LeftOut:
    """One group of measurements, and the model fitted to all others.

    Attributes:
        rows: Shape (N,), true for the group's measurements.
        parameters: Fitted to the other measurements.
        predicted: The group's outputs in seconds, by these parameters.
    """

    rows: NDArray[np.bool_]
    parameters: dict[str, float]
    predicted: Array


def leave_out(
    model: ModelString,
    features: Mapping[str, Array],
    output: Array,
    groups: NDArray[Any],
    fitted: Mapping[str, float],
    **options: Any,
) -> list[LeftOut]:
    """Leaves out each group of measurements in turn, fits to the others, and predicts it; many, in several processes.

    Args:
        model: The parsed model string.
        features: A column of shape (N,) for every feature of the model.
        output: Measured outputs in seconds, shape (N,).
        groups: The group of each measurement, shape (N,).
        fitted: Parameters fitted to all measurements, from which each non-linear fit starts.
        options: `parameters`, `nonnegative` and `residuals`, as `perfmodel.modelling.fitting.fit` takes them.

    Returns:
        The groups in sorted order, without those whose absence leaves too few measurements for a fit.
    """
    compiled = model.compile()

    def without(group: Any) -> LeftOut | None:
        inside = groups == group
        try:
            problem = pose(
                model,
                {name: column[~inside] for name, column in features.items()},
                output[~inside],
                labels=None,
                **options,
            )
            parameters = _refitted(problem, fitted)
        except FitError:
            return None
        chosen = {name: column[inside] for name, column in features.items()}
        with np.errstate(all="ignore"):
            predicted = np.broadcast_to(compiled(parameters, chosen), (int(inside.sum()),))
        return LeftOut(inside, parameters, np.array(predicted, dtype=np.float64))

    several = sorted(set(groups.tolist()))
    found = side_by_side(without, several, workers=None if len(output) >= FEWEST_APART else 1)
    return [each for each in found if each is not None]


def _refitted(problem: Problem, fitted: Mapping[str, float]) -> dict[str, float]:
    if problem.is_direct:
        return problem.ties.completed(solve_directly(problem))
    start = {name: float(np.clip(fitted[name], *problem.bounds[name])) for name in problem.free}
    return problem.ties.completed({**local_minimum(problem, start), **problem.fixed})
