"""A fitted model on one device: its parameters, and all that is needed to doubt and repeat them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.notebook import MOST_ROWS, table
from perfmodel.modelling.fitting.declared import Declared
from perfmodel.modelling.formula import Formula
from perfmodel.modelling.intervals import HeldOutErrors
from perfmodel.modelling.quick import Quick
from perfmodel.modelling.rows import Row
from perfmodel.modelling.units import parameter_units

if TYPE_CHECKING:
    import pandas as pd


ROW = ("kernel", "variant", "sizes", "key", "measured_s", "predicted_s", "flags")
"""A calibration keeps this of each kernel of its fit."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """Holds the values of a model's parameters on one device; `Calibration` predicts by them.

    Attributes:
        parameters: fitted values, in the model's order.
        stderr: standard errors; NaN where the measurements give none.
        covariance: shape (P, P), in the order of `parameters`.
        residual_std: standard deviation of the relative residuals, i.e. what the model itself leaves unexplained; NaN,
            as the covariance, where there are no more measurements than parameters.
        ranges: smallest and largest value of each feature in the fit, to tell how far a prediction extrapolates.
        device, protocol: where and how the times were measured.
        rows: the kernels of the fit, with their keys in the store.
        report: the fit as text.
        undetermined: what the measurements leave open, as sentences.
        marks: why parameters have no standard error: fixed, at a bound, or undetermined, in brackets.
        held_out: how far it is off on kernels that were left out of the fit, of which intervals are made; None where
            too few were measured, and in files of an earlier perfmodel.
        nonnegative: whether parameters without declared bounds are at least zero, as the fit was told.
    """

    model: Formula
    parameters: dict[str, float]
    stderr: dict[str, float]
    covariance: NDArray[np.float64]
    residual_std: float
    ranges: dict[str, tuple[float, float]]
    device: dict[str, Any]
    protocol: dict[str, Any]
    rows: tuple[Row, ...]
    report: str
    undetermined: tuple[str, ...] = ()
    marks: dict[str, str] = field(default_factory=dict)
    held_out: HeldOutErrors | None = None
    versions: dict[str, str] = field(default_factory=dict)
    created: str = ""
    nonnegative: bool = True

    @cached_property
    def quick(self) -> Quick:
        """The memory of predictions of single sizes; it takes no part in what the calibration is."""
        return Quick()

    @cached_property
    def units(self) -> dict[str, str]:
        """Each parameter's unit, e.g. ``s/operation``; empty where there is none."""
        return parameter_units(self.model.string, self.model.features)

    @property
    def below_zero(self) -> tuple[str, ...]:
        """The parameters that are negative, where nothing lets them be: neither the fit, nor what is declared."""
        if not self.nonnegative:
            return ()
        declared = {name: self.model.declared.get(name, Declared()) for name in self.parameters}
        may_be = {name for name, each in declared.items() if each.tie or (each.bounds and each.bounds[0] < 0)}
        return tuple(name for name, value in self.parameters.items() if value < 0 and name not in may_be)

    @property
    def left_out(self) -> tuple[Row, ...]:
        """The kernels that took no part in the fit."""
        return tuple(row for row in self.rows if row.predicted_s is None)

    def mark(self, name: str) -> str:
        """Returns the reason why a parameter has no standard error, in brackets; empty where it has one."""
        return "" if math.isfinite(self.stderr[name]) else self.marks.get(name, "(at a bound, or undetermined)")

    def parameter_lines(self) -> list[str]:
        """Returns each parameter with its value, standard error and unit, as text."""
        width = max(map(len, self.parameters))
        lines = []
        for name, value in self.parameters.items():
            error = f" ± {self.stderr[name]:.2g}" if math.isfinite(self.stderr[name]) else ""
            mark = self.mark(name)
            tie = f"  = {said.tie}" if (said := self.model.declared.get(name)) and said.tie else ""
            lines.append(
                f"{name:<{width}}  {value:.4g}{error} {self.units[name]}".rstrip() + (f"  {mark}" if mark else "") + tie
            )
        return lines

    def to_frame(self) -> pd.DataFrame:
        """Returns the kernels of the fit as a DataFrame: a row each, with measured and predicted seconds and flags."""
        import pandas as pd  # slow to import

        return pd.DataFrame([row.values(ROW) for row in self.rows], columns=list(ROW))

    def parameter_frame(self) -> pd.DataFrame:
        """Returns the parameters as a DataFrame, a row each: ``value``, ``stderr`` (NaN where not known), ``unit``."""
        import pandas as pd  # slow to import

        columns = {"value": self.parameters, "stderr": self.stderr, "unit": self.units}
        return pd.DataFrame(columns, index=list(self.parameters))

    def _repr_html_(self) -> str:
        rows = [
            [name, f"{value:.4g}", _error(self.stderr[name]), self.units[name]]
            for name, value in self.parameters.items()
        ]
        used = [row for row in self.rows if row.predicted_s is not None]
        device = self.device.get("name", "no device")
        fitted = f"{len(used)} kernels" if used else "measurements that are not kept here"
        lines = [
            f"<p><b>{escape(self.model.output_name)}</b> on <b>{escape(str(device))}</b>, fitted to {fitted}; "
            f"{_percent(self.residual_std)} is left unexplained</p>",
            f"<pre>{escape(self.model.string.source.strip())}</pre>",
            table(["parameter", "value", "standard error", "unit"], rows),
        ]
        left = [str(row) for row in self.left_out]
        if left:
            more = f"<li>and {len(left) - MOST_ROWS} more</li>" if len(left) > MOST_ROWS else ""
            listed = "".join(f"<li>{escape(row)}</li>" for row in left[:MOST_ROWS])
            lines.append(f"<details><summary>{len(left)} left out</summary><ul>{listed}{more}</ul></details>")
        lines += [f"<p>undetermined: {escape(sentence)}</p>" for sentence in self.undetermined]
        return "\n".join(lines)


def _error(value: float) -> str:
    return f"{value:.2g}" if math.isfinite(value) else "-"


def _percent(value: float) -> str:
    return f"{value:.1%}" if math.isfinite(value) else "an unknown part"
