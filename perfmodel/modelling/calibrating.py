"""Fits a model to a feature table: which of its rows take part, and the calibration that comes of it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from perfmodel.basics.errors import FitError
from perfmodel.basics.provenance import versions
from perfmodel.measuring.isolation.reference import DISTURBED
from perfmodel.measuring.protocol import NOISY
from perfmodel.modelling.fitted import Fitted
from perfmodel.modelling.fitting import FitResult, FitWarning, fit
from perfmodel.modelling.formula import Formula
from perfmodel.modelling.intervals import HeldOutErrors, held_out_errors, left_out_errors
from perfmodel.modelling.rows import Row

if TYPE_CHECKING:
    import pandas as pd


NAMED = 5
"""So many kernels that take no part in a fit are named in a warning."""


FittedT = TypeVar("FittedT", bound=Fitted)


def calibrate(kind: type[FittedT], model: Formula, table: pd.DataFrame, **options: Any) -> FittedT:
    """Fits a model to a feature table; see `Model.fit`.

    Args:
        kind: of what holds the fitted values.
    """
    model = model.with_parameters(options.pop("parameters", None) or {})
    options["parameters"] = model.declared
    table = _normalized(table, model)
    chosen = _usable(table, len(model.parameters))
    used = table[chosen]
    columns = {name: used[column].to_numpy(dtype=np.float64) for name, column in model.columns.items()}
    times = used[model.output_name].to_numpy(dtype=np.float64)
    # Matrices of a fit are tall and narrow: several threads wait for each other, on a busy machine most of the time.
    with threadpool_limits(1, "blas"):
        result = fit(model.string, columns, times, labels=[str(label) for label in used.index], **options)
        rows = tuple(_rows(table, model.output_name, dict(zip(np.flatnonzero(chosen), result.predicted, strict=True))))
        fitted = [row for row in rows if row.predicted_s is not None]
        held_out = _held_out(model, columns, times, fitted, result, options)
    return kind(
        model=model,
        parameters=result.parameters,
        stderr=result.stderr,
        covariance=result.covariance,
        residual_std=_residual_std(result),
        ranges={name: (float(column.min()), float(column.max())) for name, column in columns.items()},
        device=dict(table.attrs.get("device", {})),
        protocol=dict(table.attrs.get("protocol", {})),
        rows=rows,
        report=result.report(),
        undetermined=tuple(str(u) for u in result.undetermined),
        marks={name: mark for name in model.parameters if (mark := result.mark(name))},
        held_out=held_out,
        versions=versions(),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        nonnegative=bool(options.get("nonnegative", True)),
    )


def _normalized(table: Any, model: Formula) -> pd.DataFrame:
    """Returns the table with times as numbers and flags as tuples, however it was edited, or written to a file and
    read.

    Raises:
        FitError: for what is no table, has not got the model's columns, or has a time that is no number.
    """
    import pandas as pd  # slow to import

    if not isinstance(table, pd.DataFrame):
        raise FitError(
            f"a {type(table).__name__} is no feature table; give the DataFrame that perfmodel.measure returns"
        )
    for name in (model.output_name, *model.columns.values()):
        if name not in table.columns:
            raise FitError(f"the table has no column {name!r}; measure the kernels for this model")
    result = table.copy()
    for label, value in zip(table.index, table[model.output_name], strict=True):
        if isinstance(value, str | bool) or not isinstance(value, int | float | np.integer | np.floating):
            raise FitError(f"the time of {label!r} is {value!r}, which is no number; give it in seconds")
    for name in model.columns.values():
        if not (
            pd.api.types.is_numeric_dtype(table[name]) or pd.to_numeric(table[name], errors="coerce").notna().all()
        ):
            raise FitError(f"the table's column {name!r} has values that are no numbers; measure the kernels again")
    result["flags"] = [_flags(value) for value in table["flags"]] if "flags" in table.columns else [()] * len(table)
    return result


def _flags(value: Any) -> tuple[str, ...]:
    """Reads flags as a table holds them, or as text: ``noisy``, ``('noisy', 'disturbed')``, nothing."""
    if isinstance(value, str):
        return tuple(word for word in (part.strip(" '\"") for part in value.strip("()[] ").split(",")) if word)
    return tuple(map(str, value)) if isinstance(value, tuple | list) else ()


def _usable(table: pd.DataFrame, parameters: int) -> NDArray[np.bool_]:
    """Returns a mask of the rows that take part in a fit: all without a flag; a warning names the others.

    Rows that are flagged for nothing but a restless device take part as well where too few would be left: where most
    are, that is the state of the device and not of a few rows, and a fit to a few lucky ones would seem exact.
    """
    clean = np.array([not flags for flags in table["flags"]], dtype=bool)
    restless = np.array([bool(flags) and set(flags) <= {NOISY, DISTURBED} for flags in table["flags"]], dtype=bool)
    if restless.sum() > clean.sum() or (restless.any() and clean.sum() <= parameters):
        chosen = np.asarray(clean | restless)
        _warn(
            f"{restless.sum()} of {len(table)} times are noisy or disturbed, and take part in the fit all the same, as "
            f"{'most are' if restless.sum() > clean.sum() else 'too few are left without them'}; measure again while "
            "nothing else runs"
        )
    elif clean.any():
        chosen = clean
    else:
        raise FitError(f"none of the {len(table)} measurements can be used; see the column 'flags' for why")
    if left := [f"{label} ({', '.join(flags)})" for label, flags in table["flags"][~chosen].items()]:
        more = f", and {len(left) - NAMED} others" if len(left) > NAMED else ""
        _warn(f"{len(left)} of {len(table)} measurements take no part in the fit: {'; '.join(left[:NAMED])}{more}")
    return chosen


def _warn(sentence: str) -> None:
    warnings.warn(sentence, FitWarning, stacklevel=5)


def _held_out(
    model: Formula,
    columns: Mapping[str, NDArray[np.float64]],
    times: NDArray[np.float64],
    rows: Sequence[Row],
    result: FitResult,
    options: Mapping[str, Any],
) -> HeldOutErrors | None:
    """Returns how far the model is off on kernels that are left out of the fit; None for times that have no ratios."""
    if np.any(times <= 0):
        return None
    posed = {  # each fit begins at the fitted values
        "parameters": {name: replace(said, start=None) for name, said in model.declared.items()},
        "nonnegative": options.get("nonnegative", True),
        "residuals": options.get("residuals", "relative"),
    }
    families, variants = [row.kernel for row in rows], [row.variant for row in rows]
    return held_out_errors(
        left_out_errors(model.string, columns, times, families, variants, result.parameters, **posed)
    )


def _residual_std(result: FitResult) -> float:
    if result.degrees_of_freedom < 1:
        return float("nan")
    return float(np.sqrt(np.sum(result.relative_errors**2) / result.degrees_of_freedom))


def _rows(table: pd.DataFrame, output: str, predicted: Mapping[int, float]) -> Iterable[Row]:
    """Yields one `Row` for each row of the table; `predicted` are the fitted values by the row's
    position."""
    for position, (label, row) in enumerate(table.iterrows()):
        measured, sizes = float(row[output]), row.get("sizes", {})
        yield Row(
            kernel=str(row.get("kernel", label)),
            variant=str(row.get("variant", "")),
            sizes=dict(sizes) if isinstance(sizes, Mapping) else {},
            key=str(row.get("key", "")),
            measured_s=measured if math.isfinite(measured) else None,
            predicted_s=float(predicted[position]) if position in predicted else None,
            flags=row["flags"],
        )
