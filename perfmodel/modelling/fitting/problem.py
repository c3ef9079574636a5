"""One fit as a checked, self-contained problem: model, measurements, weights, bounds and magnitudes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.errors import FitError, nearest
from perfmodel.expression import CompiledString, ModelString
from perfmodel.modelling.fitting.declared import Declared, Given, Ties, declared
from perfmodel.modelling.fitting.structure import (
    absent_parameters,
    edge_parameters,
    exponent_parameters,
    natural_scales,
    typical,
)

Array = NDArray[np.float64]
Residuals = Literal["relative", "absolute", "logarithmic"]

OUTLYING = 0.1
"""Logarithmic residuals beyond this count by their root: what a model cannot explain must not bend the rest of it."""

EXPONENT_BOUNDS = (1.0, 64.0)
"""An `overlap` of two equal times is 1.1 % above their maximum at 64: full overlap, for any measurement."""

EDGE_MARGIN = 1e3
"""An edge may lie beyond the reciprocal of the shortest output by no more than this factor.

Downwards it may reach the reciprocal of the median output. A softer edge would turn the maximum into a mean of its
arguments for most measurements, and back into a maximum for longer times than those: no basis for extrapolation.
"""


LARGEST = 100
"""Outputs beyond ten to this power, or below its reciprocal, are no measurements, and squares of them no numbers."""


@dataclass(frozen=True)
class Problem:
    """A model and its N measurements, ready to be minimised over the free parameters.

    Attributes:
        model: Over the parameters that are not tied.
        ties: What the others follow from.
        weights: Shape (N,); a residual is weight * (predicted - measured), of order one for a bad prediction.
        is_logarithmic: residuals are ln(predicted / measured) instead, under a soft L1 loss.
        scales: A natural magnitude for every parameter.
        bounds: Lower and upper bound of every parameter, infinite where there is none.
        fixed: Parameters that are not fitted: pinned by equal bounds, or absent.
        absent: Parameters that no measurement shows, each with the all-zero features to blame.
        starts: Where the search for free parameters begins, as far as the user says so.
    """

    model: ModelString
    ties: Ties
    compiled: CompiledString
    features: Mapping[str, Array]
    output: Array
    weights: Array
    is_logarithmic: bool
    labels: tuple[str, ...]
    scales: Mapping[str, float]
    bounds: Mapping[str, tuple[float, float]]
    fixed: Mapping[str, float]
    absent: Mapping[str, tuple[str, ...]]
    starts: Mapping[str, float]

    @property
    def free(self) -> tuple[str, ...]:
        return tuple(name for name in self.model.parameters if name not in self.fixed)

    @property
    def flat(self) -> tuple[str, ...]:
        """Free parameters whose derivative is zero everywhere (thresholds): only trying values can fit them."""
        return tuple(name for name in self.free if getattr(self.model.derivative(name), "value", 1.0) == 0.0)

    @property
    def is_absolute(self) -> bool:
        """True where all residuals have one weight."""
        return not self.is_logarithmic and bool(np.all(self.weights == self.weights[0])) and len(self.weights) > 1

    @property
    def is_direct(self) -> bool:
        """True where the problem is a linear one, which has one solution that needs no search."""
        return self.model.is_linear and not self.is_logarithmic

    def predict(self, values: Mapping[str, float]) -> Array:
        """Returns outputs in seconds, shape (N,), for values of the free parameters."""
        predicted = self.compiled({**values, **self.fixed}, self.features)
        return np.array(np.broadcast_to(predicted, self.output.shape), dtype=np.float64)

    def residuals(self, values: Mapping[str, float]) -> Array:
        """Returns weighted residuals, shape (N,)."""
        if not self.is_logarithmic:
            return self.weights * (self.predict(values) - self.output)
        ratio = np.log(self.predict(values) / self.output) / OUTLYING
        return np.asarray(OUTLYING * np.sign(ratio) * np.sqrt(2 * (np.hypot(1, ratio) - 1)), dtype=np.float64)

    def cost(self, values: Mapping[str, float]) -> float:
        """Returns the sum of squared weighted residuals, infinite where the model has no finite value."""
        cost = float(np.sum(self.residuals(values) ** 2))
        return cost if np.isfinite(cost) else np.inf

    def jacobian(self, values: Mapping[str, float]) -> Array:
        """Returns derivatives of the weighted residuals by the free parameters, shape (N, free)."""
        rows = self.compiled.jacobian({**values, **self.fixed}, self.features)
        chosen = [self.model.parameters.index(name) for name in self.free]
        slopes = np.asarray(rows, dtype=np.float64)[chosen].T
        if not self.is_logarithmic:
            return slopes * self.weights[:, None]
        predicted = self.predict(values)
        ratio = np.log(predicted / self.output) / OUTLYING
        root = np.sqrt(2 * (np.hypot(1, ratio) - 1))
        flattened = np.divide(np.abs(ratio), np.hypot(1, ratio) * root, out=np.ones_like(root), where=root > 1e-8)
        return np.asarray(slopes * (flattened / predicted)[:, None], dtype=np.float64)


def pose(
    model: ModelString,
    features: Mapping[str, Array],
    output: Array,
    *,
    parameters: Given | None,
    nonnegative: bool,
    residuals: Residuals,
    labels: Sequence[str] | None,
) -> Problem:
    """Checks the measurements and puts the problem together; see `perfmodel.modelling.fitting.fit` for the arguments.

    Raises:
        FitError: The measurements cannot serve; the message names the measurement and the remedy.
    """
    if residuals not in get_args(Residuals):
        raise FitError(f"there are no residuals {residuals!r:.40}; give {', '.join(map(repr, get_args(Residuals)))}")
    output = np.asarray(output, dtype=np.float64)
    if output.ndim != 1:
        raise FitError(f"the outputs have shape {output.shape}; give one time per measurement, shape (N,)")
    if output.size == 0:
        raise FitError("there is no measurement to fit to; check the tags that select the measurement set")
    names = _row_names(labels, output.size)
    _check_outputs(output, names, residuals)
    said = declared(parameters, model)
    ties = Ties.of(said, model)
    model = ties.without(model)
    columns = {name: _column(name, features, names) for name in model.features}
    root = model.value
    zeros = frozenset(name for name, column in columns.items() if not column.any())
    scales = natural_scales(root, columns, typical(output))
    limits = _limits(model, scales, output, nonnegative)
    limits |= {name: each.bounds for name, each in said.items() if each.bounds}
    pinned = {name: lower for name, (lower, upper) in limits.items() if lower == upper}
    absent = {name: told for name, told in absent_parameters(root, zeros).items() if name not in pinned}
    fixed = pinned | {name: float(np.clip(0.0, *limits[name])) for name in absent}
    _check_counts(model, fixed, output.size)
    weights = np.full(output.shape, 1 / _root_mean_square(output)) if residuals == "absolute" else 1 / output
    is_log = residuals == "logarithmic"
    starts = _starts(said, limits, fixed)
    return Problem(
        model=model,
        ties=ties,
        compiled=model.compile(),
        features=columns,
        output=output,
        weights=weights,
        is_logarithmic=is_log,
        labels=names,
        scales=scales,
        bounds=limits,
        fixed=fixed,
        absent=absent,
        starts=starts,
    )


def _starts(
    said: Mapping[str, Declared], limits: Mapping[str, tuple[float, float]], fixed: Mapping[str, float]
) -> dict[str, float]:
    """Returns the starts of the parameters that are fitted; raises FitError for one outside its bounds."""
    found = {name: each.start for name, each in said.items() if each.start is not None}
    for name, value in found.items():
        lower, upper = limits[name]
        if not lower <= value <= upper:
            raise FitError(
                f"the start of {name!r} is {value:g}, outside its bounds [{lower:g}, {upper:g}]; move either"
            )
    return {name: value for name, value in found.items() if name not in fixed}


def _root_mean_square(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2))) or 1.0


def _row_names(labels: Sequence[str] | None, count: int) -> tuple[str, ...]:
    if labels is None:
        return tuple(f"row {row}" for row in range(count))
    if len(labels) != count:
        raise FitError(f"there are {len(labels)} labels for {count} measurements; give one label per measurement")
    return tuple(map(str, labels))


def _check_outputs(output: Array, names: tuple[str, ...], residuals: Residuals) -> None:
    wrong = ~np.isfinite(output)
    if residuals != "absolute":
        wrong |= output <= 0
    far = np.flatnonzero(~wrong & (output != 0) & (np.abs(np.log10(np.abs(np.where(output, output, 1)))) > LARGEST))
    if far.size:
        row = int(far[0])
        raise FitError(
            f"the output of measurement {names[row]!r} is {output[row]:g}, which no kernel takes; give times in seconds"
        )
    if wrong.any():
        row = int(np.argmax(wrong))
        wanted = "a finite value" if residuals == "absolute" else "a positive finite time"
        raise FitError(
            f"the output of measurement {names[row]!r} is {output[row]:g} where {residuals} residuals need {wanted};"
            " measure it again or leave it out"
        )


def _column(name: str, features: Mapping[str, Array], names: tuple[str, ...]) -> Array:
    if name not in features:
        raise FitError(
            f"the measurements have no column for feature {name!r}{nearest(name, features) or '; gather it first'}"
        )
    column = np.asarray(features[name], dtype=np.float64)
    if column.shape != (len(names),):
        raise FitError(
            f"feature {name!r} has shape {column.shape} where the outputs have shape ({len(names)},);"
            " give one value per measurement"
        )
    wrong = ~np.isfinite(column)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise FitError(
            f"feature {name!r} of measurement {names[row]!r} is {column[row]:g};"
            " gather it again or leave the measurement out"
        )
    return column


def _limits(
    model: ModelString, scales: Mapping[str, float], output: Array, nonnegative: bool
) -> dict[str, tuple[float, float]]:
    magnitudes = np.abs(output[output != 0]) if output.any() else np.ones(1)
    middle = float(np.median(magnitudes))
    highest = middle / magnitudes.min() * EDGE_MARGIN
    edges, exponents = edge_parameters(model.value), exponent_parameters(model.value)
    limits = {}
    for name in model.parameters:
        if name in exponents:
            limits[name] = EXPONENT_BOUNDS
        elif name in edges:
            limits[name] = (scales[name], scales[name] * highest)
        else:
            limits[name] = (0.0 if nonnegative else -np.inf, np.inf)
    return limits


def _check_counts(model: ModelString, fixed: Mapping[str, float], measurements: int) -> None:
    if not model.parameters:
        raise FitError("the model has no parameter to fit; evaluate it as it is")
    free = len(model.parameters) - len(fixed)
    if measurements < free:
        raise FitError(
            f"{measurements} measurement{'s' * (measurements != 1)} cannot fix {free} parameters;"
            " add measurements or take parameters out of the model"
        )
