"""The file that a calibration is saved in: what it is called, and whether what was read from one can be true."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from perfmodel.basics.documents import DocumentKind
from perfmodel.basics.errors import CalibrationError
from perfmodel.modelling.fitted import ROW
from perfmodel.modelling.intervals import HeldOutErrors
from perfmodel.modelling.rows import Row

FILE = DocumentKind(
    name="calibration",
    refusal="not a calibration",
    writer="Calibration.save",
    mend="calibrate again or restore the file",
    again="calibrate again",
    format="perfmodel-calibration",
    version=1,
    error=CalibrationError,
)


def checked_fields(content: dict[str, Any]) -> dict[str, Any]:
    """Returns the saved fields with their types; anything else raises ValueError, TypeError or KeyError."""
    parameters = {str(name): _number(value) for name, value in content["parameters"].items()}
    stderr = {name: _number(content["stderr"][name]) for name in parameters}
    rows = [[_number(entry) for entry in row] for row in content["covariance"]]
    covariance = np.array(rows, dtype=np.float64).reshape(len(parameters), len(parameters))
    residual_std = _number(content["residual_std"])
    if not np.isfinite([*parameters.values()]).all() or np.isinf(covariance).any() or math.isinf(residual_std):
        raise ValueError("a parameter is not a finite number")
    if (np.diag(covariance) < 0).any() or residual_std < 0:
        raise ValueError("a variance is negative")
    return {
        "parameters": parameters,
        "stderr": stderr,
        "covariance": covariance,
        "residual_std": residual_std,
        "ranges": {name: (float(low), float(high)) for name, (low, high) in _described(content["ranges"]).items()},
        "device": _described(content["device"]),
        "protocol": _described(content["protocol"]),
        "report": str(content["report"]),
        "undetermined": tuple(map(str, listed(content["undetermined"]))),
        "marks": {name: str(mark) for name, mark in _described(content.get("marks", {})).items()},
        "held_out": HeldOutErrors.from_json(content["held_out_errors"]) if content.get("held_out_errors") else None,
        "versions": _described(content["versions"]),
        "created": str(content["created"]),
        "nonnegative": _yes_or_no(content.get("nonnegative", True)),
    }


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | None):
        raise TypeError(f"{value!r} is no number")
    return float("nan") if value is None else float(value)


def _yes_or_no(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{value!r} is neither true nor false")
    return value


def listed(value: Any) -> list[Any]:
    """Returns a saved list; raises TypeError for anything else."""
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is no list")
    return value


def _described(value: Any) -> dict[str, Any]:
    """Returns a device's description: a dict whose name, key and kind are texts; raises TypeError for anything else."""
    if not isinstance(value, dict):
        raise TypeError(f"{value!r} is no object")
    for name in ("name", "key", "kind"):
        if not isinstance(value.get(name, ""), str):
            raise TypeError(f"{name} {value[name]!r} is no text")
    return dict(value)


def checked_row(row: Mapping[str, Any]) -> Row:
    """Returns a saved row with its types; anything else raises ValueError, TypeError or KeyError."""
    for name in ("kernel", "variant", "key"):
        if not isinstance(row[name], str):
            raise TypeError(f"{name} {row[name]!r} of a row is no text")
    for name in ("measured_s", "predicted_s"):
        if _number(row[name]) < 0:
            raise ValueError(f"{name} of {row['kernel']} is negative")
    flags = tuple(map(str, listed(row["flags"])))
    sizes = {name: _whole(name, value) for name, value in _described(row["sizes"]).items()}
    return Row(**{name: row[name] for name in ROW} | {"sizes": sizes, "flags": flags})


def _whole(name: str, value: Any) -> int:
    if not _number(value).is_integer():
        raise ValueError(f"size {name} is {value!r}, no whole number")
    return int(value)
