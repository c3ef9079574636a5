"""Loads what a report page is of: models with the rows that they are judged by, from files, folders and outcomes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from perfmodel.basics import json_values
from perfmodel.basics.errors import PerfmodelError
from perfmodel.kernels.kernel import Kernel
from perfmodel.modelling.calibration import Calibration, calibration_called
from perfmodel.modelling.evaluation import FITTED, evaluate
from perfmodel.modelling.rows import CALIBRATION, EVALUATION, Row
from perfmodel.recipes.outcome import Outcome

RESULTS = "results.json"


@dataclass(frozen=True)
class ReportedModel:
    """One model on one device: what was measured, what it predicts, and how it was fitted.

    Attributes:
        name: what the page calls it.
        rows: times in seconds, measured and predicted; those of the fit and those that it has not seen.
        calibration: None for a baseline, and where a folder has no file of it.
        command: what was run, where that is known.
    """

    name: str
    device: Mapping[str, Any]
    protocol: Mapping[str, Any]
    rows: tuple[Row, ...]
    calibration: Calibration | None = None
    command: str = ""
    notes: tuple[str, ...] = field(default=())

    @property
    def device_name(self) -> str:
        return str(self.device.get("name", "unknown device"))

    def std(self, row: Row) -> float | None:
        """Returns the standard deviation of a row's prediction in seconds; what the fit leaves unexplained, if nothing
        more.

        None where not even that is known.
        """
        if row.predicted_std_s is not None or row.predicted_s is None or self.calibration is None:
            return row.predicted_std_s
        unexplained = self.calibration.residual_std * row.predicted_s
        return unexplained if math.isfinite(unexplained) else None


def reported(names: Iterable[str]) -> list[ReportedModel]:
    """Returns the models of files of calibrations, of MODEL@DEVICE names of shipped ones, and of folders of
    `reproduce`.

    Raises:
        PerfmodelError: for what is none of these, or is damaged.
    """
    models: list[ReportedModel] = []
    for name in names:
        models += _of_folder(Path(name)) if Path(name).is_dir() else [_of_calibration(name)]
    return _told_apart(models)


def with_held_out(models: Iterable[ReportedModel], kernels: Sequence[Kernel], **conditions: Any) -> list[ReportedModel]:
    """Returns models with the times of kernels that they were not fitted to, as `perfmodel.evaluate` judges them.

    Args:
        conditions: of `perfmodel.evaluate`: device, store, protocol.

    Raises:
        PerfmodelError: for a model without a calibration, and as `perfmodel.evaluate` does.
    """
    return [_with_held_out(model, kernels, conditions) for model in models]


def _with_held_out(model: ReportedModel, kernels: Sequence[Kernel], conditions: Mapping[str, Any]) -> ReportedModel:
    if model.calibration is None:
        raise PerfmodelError(f"{model.name} has no calibration to evaluate; leave it out, or reproduce it again")
    found = evaluate(model.calibration, kernels, **conditions).kernels
    rows = [
        replace(row, model=model.name, role=EVALUATION, label=row.kernel) for row in found if row.left_out != FITTED
    ]
    return replace(model, rows=(*model.rows, *rows))


def of_outcome(outcome: Outcome) -> list[ReportedModel]:
    """Returns a recipe's models and its baselines."""
    return [
        ReportedModel(
            name=name,
            device=outcome.device,
            protocol=outcome.protocol,
            rows=_as_fitted([row for row in outcome.rows if row.model == name], outcome.calibrations.get(name)),
            calibration=outcome.calibrations.get(name),
            command=outcome.command,
        )
        for name in outcome.models
    ]


def _of_calibration(name: str) -> ReportedModel:
    calibration = calibration_called(name)
    stem = Path(name).stem if name.endswith(".json") else name
    called = stem.removeprefix("calibration-").partition("@")[0]
    rows = tuple(replace(row, model=called, role=CALIBRATION, label=row.kernel) for row in calibration.rows)
    return ReportedModel(
        name=called, device=calibration.device, protocol=calibration.protocol, rows=rows, calibration=calibration
    )


def _of_folder(folder: Path) -> list[ReportedModel]:
    """Returns the models of a results file in their order, each with its calibration, if that lies beside it."""
    results = _read(folder)
    try:
        rows = [_row(row) for row in results["rows"]]
        models = []
        for name in dict.fromkeys(row.model for row in rows):
            file = folder / f"calibration-{name}.json"
            calibration = Calibration.load(file) if file.exists() else None
            missing = calibration is None and name in results["parameters"]
            notes = (f"{folder.name} has no {file.name}: parameters and what follows from them are missing",)
            models.append(
                ReportedModel(
                    name=name,
                    device=dict(results["device"]),
                    protocol=dict(results["protocol"]),
                    rows=_as_fitted([row for row in rows if row.model == name], calibration),
                    calibration=calibration,
                    command=str(results["command"]),
                    notes=notes if missing else (),
                )
            )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise PerfmodelError(
            f"{RESULTS} of {folder} is damaged ({json_values.reason(error)}); reproduce it again"
        ) from error
    if not models:
        raise PerfmodelError(f"{RESULTS} of {folder} has no rows; reproduce it again")
    return models


def _as_fitted(rows: Iterable[Row], calibration: Calibration | None) -> tuple[Row, ...]:
    """Returns rows without predictions for those that a fit left out for their flags, as in the calibration itself."""
    left_out = {_named(row) for row in calibration.left_out} if calibration else set()
    return tuple(
        replace(row, predicted_s=None) if row.role == CALIBRATION and _named(row) in left_out else row for row in rows
    )


def _named(row: Row) -> tuple[str, str, tuple[int, ...]]:
    return row.kernel, row.variant, tuple(row.sizes.values())


def _read(folder: Path) -> Any:
    packed = folder / f"{RESULTS}.gz"
    try:
        return json_values.read(packed if packed.exists() else folder / RESULTS)
    except FileNotFoundError:
        raise PerfmodelError(
            f"folder {folder} has no {RESULTS}; give a folder that reproduce wrote, or a calibration's file"
        ) from None
    except (OSError, ValueError) as error:
        raise PerfmodelError(
            f"{RESULTS} of {folder} cannot be read ({json_values.reason(error)}); reproduce it again"
        ) from error


def _row(content: Mapping[str, Any]) -> Row:
    ends = {name: tuple(content[name]) for name in ("interval_68_s", "interval_90_s") if content.get(name)}
    row = Row(**{**content, **ends, "flags": tuple(map(str, content["flags"]))})
    texts = (row.model, row.kernel, row.variant, row.role, row.label)
    if not all(isinstance(text, str) for text in texts):
        raise ValueError(f"{row.kernel!r} has a name that is no text")
    times = [row.measured_s, row.predicted_s, row.predicted_std_s, *(end for pair in ends.values() for end in pair)]
    if not all(time is None or _is_time(time) for time in times) or not isinstance(row.sizes, dict):
        raise ValueError(f"{row.kernel} has times or sizes that are none")
    return replace(row, sizes={str(name): int(size) for name, size in row.sizes.items()})


def _is_time(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf


def _told_apart(models: Sequence[ReportedModel]) -> list[ReportedModel]:
    """Returns models with devices in their names where there are several, and numbers where that is not enough."""
    several = len({model.device_name for model in models}) > 1
    named = [replace(m, name=f"{m.name} on {m.device_name}") if several else m for m in models]
    count: dict[str, int] = {}
    result = []
    for model in named:
        count[model.name] = count.get(model.name, 0) + 1
        number = f" ({count[model.name]})" if count[model.name] > 1 else ""
        result.append(replace(model, name=f"{model.name}{number}"))
    return result
