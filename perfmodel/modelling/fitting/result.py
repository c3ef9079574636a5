"""Holds what a fit found, how sure it is, and what it cannot say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.brief import brief, number_of
from perfmodel.basics.errors import PerfmodelWarning

Array = NDArray[np.float64]
Method = Literal["linear", "nonlinear"]

_NOTABLE_CORRELATION = 0.5


class FitWarning(PerfmodelWarning):
    """Warns of parameters that the measurements do not fix; their values in the result are one choice among many."""


@dataclass(frozen=True)
class Undetermined:
    """Parameters that the measurements leave open, and why."""

    parameters: tuple[str, ...]
    reason: str

    def __str__(self) -> str:
        return f"{', '.join(self.parameters)}: {self.reason}"


@dataclass(frozen=True)
class Solution:
    """Parameter values as a solver returns them, before any judgement."""

    parameters: dict[str, float]
    starts: int
    evaluations: int
    message: str


@dataclass(frozen=True)
class FitResult:
    """The fitted parameters of one model on one measurement set of N rows.

    Attributes:
        parameters: Fitted values in the units of the model, in the model's order.
        stderr: Standard error of each parameter; nan where the measurements give none: fixed, at a bound (taken as
            known there), or undetermined.
        covariance: Shape (P, P), in the order of `parameters`: the inverse of J^T J times the reduced chi-square.
            Rows and columns of parameters at a bound or without influence are zero, and directions that the
            measurements leave open are left out, so that it carries only what was measured into predictions. For
            parameters that are undetermined within their bounds it holds what a bootstrap gives.
        predicted, measured: Outputs in seconds, shape (N,).
        labels: Name of each row.
        fixed: Parameters that equal bounds hold.
        at_bound: Other parameters whose value is one of their bounds.
        limits: Values between which a parameter that is at its bound, or undetermined within its bounds, lies with a
            probability of 95 %.
        undetermined: Parameters that the measurements do not fix, with reasons.
        ties: Expressions of the parameters that are tied to others.
        method: "linear" (solved directly) or "nonlinear" (the best of several starts).
        residuals: "relative" ((predicted - measured) / measured), "absolute" (seconds) or "logarithmic".
        starts: Starting points tried, 0 for a linear model.
        nfev: Evaluations of the model, 0 for a linear model.
        chi_square: Sum of squared residuals.
        degrees_of_freedom: N less the number of fitted directions.
        message: How the solver ended.
    """

    parameters: dict[str, float]
    stderr: dict[str, float]
    covariance: Array
    predicted: Array
    measured: Array
    labels: tuple[str, ...]
    fixed: tuple[str, ...]
    at_bound: tuple[str, ...]
    limits: dict[str, tuple[float, float]]
    undetermined: tuple[Undetermined, ...]
    ties: dict[str, str]
    method: Method
    residuals: Literal["relative", "absolute", "logarithmic"]
    starts: int
    nfev: int
    chi_square: float
    degrees_of_freedom: int
    message: str

    @property
    def relative_errors(self) -> Array:
        """The errors (predicted - measured) / measured, shape (N,)."""
        return (self.predicted - self.measured) / self.measured

    @property
    def correlation(self) -> Array:
        """Correlations of the parameters, shape (P, P); zero where the covariance is, one on the diagonal."""
        deviations = np.sqrt(np.diag(self.covariance))
        products = np.outer(deviations, deviations)
        correlation: Array = np.divide(self.covariance, products, out=np.zeros_like(products), where=products > 0)
        np.fill_diagonal(correlation, 1.0)
        return correlation

    @property
    def reduced_chi_square(self) -> float:
        """The chi-square per degree of freedom, nan without any."""
        return self.chi_square / self.degrees_of_freedom if self.degrees_of_freedom else float("nan")

    def mark(self, name: str) -> str:
        """Returns the reason why a parameter has no standard error, in brackets; empty where it has one."""
        if name in self.fixed:
            return "(fixed)"
        if name in self.ties:
            return "" if np.isfinite(self.stderr[name]) else "(tied to parameters without a standard error)"
        low, high = self.limits.get(name, (np.nan, np.nan))
        within = f", between {low:.3g} and {high:.3g}" if np.isfinite(low) else ""
        if any(name in item.parameters for item in self.undetermined):
            return f"(undetermined{within})"
        if name in self.at_bound:
            return f"(at its bound{within})"
        return "" if np.isfinite(self.stderr[name]) else "(no standard error: as many parameters as measurements)"

    def report(self) -> str:
        """Returns the fit as plain text: values with standard errors, correlations, every row, what is undetermined."""
        sections = (
            self._summary(),
            self._parameter_lines(),
            self._correlation_lines(),
            self._error_lines(),
            [f"undetermined {item}" for item in self.undetermined],
        )
        return "\n\n".join("\n".join(lines) for lines in sections if lines)

    def _summary(self) -> list[str]:
        errors = np.abs(self.relative_errors)
        tried = f"{self.starts} starts, {self.nfev} evaluations" if self.method == "nonlinear" else "solved directly"
        return [
            f"{self.method} least squares, {self.residuals} residuals, {tried}: {self.message}",
            f"{len(self.measured)} measurements, {self.degrees_of_freedom} degrees of freedom,"
            f" chi-square {self.chi_square:.4g}"
            + (f", reduced {self.reduced_chi_square:.4g}" if self.degrees_of_freedom else ""),
            f"relative error: mean {errors.mean():.2%}, maximum {errors.max():.2%}",
        ]

    def _parameter_lines(self) -> list[str]:
        width = max(map(len, self.parameters))
        lines = []
        for name, value in self.parameters.items():
            error = self.stderr[name]
            note = self.mark(name)
            if not note:
                note = f"+/- {error:.2e}" + (f" ({abs(error / value):.2%})" if value else "")
            tie = f", tied: {self.ties[name]}" if name in self.ties else ""
            lines.append(f"{name:<{width}} = {value: .6e} {note}{tie}")
        return lines

    def _correlation_lines(self) -> list[str]:
        names, correlation = list(self.parameters), self.correlation
        pairs = [
            (correlation[i, j], names[i], names[j])
            for i in range(len(names))
            for j in range(i)
            if abs(correlation[i, j]) > _NOTABLE_CORRELATION
        ]
        ordered = sorted(pairs, key=lambda pair: -abs(pair[0]))
        return [f"correlation({second}, {first}) = {value:+.3f}" for value, first, second in ordered]

    def _error_lines(self) -> list[str]:
        errors = self.relative_errors
        worst = np.argsort(-np.abs(errors), kind="stable")
        return ["relative errors, largest first:"] + [
            f"  {errors[row]:+8.2%}  {self.measured[row]:.4e} s measured, {self.predicted[row]:.4e} s predicted"
            f"  {self.labels[row]}"
            for row in worst
        ]

    def __repr__(self) -> str:
        error = f"mean error {np.abs(self.relative_errors).mean():.2%}"
        numbers = number_of(len(self.parameters), "parameter"), number_of(len(self.measured), "measurement")
        return brief(self, self.method, *numbers, error)
