"""Writes outcomes: text tables, plots, results.json and a self-contained HTML page."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from perfmodel.basics import files, json_values
from perfmodel.basics.errors import PerfmodelError
from perfmodel.basics.version import VERSION
from perfmodel.recipes.outcome import Outcome
from perfmodel.report.page import page
from perfmodel.report.plots import measured_against_predicted, ratios
from perfmodel.report.tables import comparison, text, verdict, weights

__all__ = ["comparison", "prepared", "text", "verdict", "weights", "write"]


ROW = (
    *("model", "kernel", "variant", "sizes", "role", "measured_s", "predicted_s", "predicted_std_s", "flags", "label"),
    *("interval_68_s", "interval_90_s"),
)
"""results.json holds this of each kernel under each model."""


def write(outcome: Outcome, folder: str | os.PathLike[str]) -> list[Path]:
    """Writes an outcome: results.json, calibration-<model>.json, table.txt, predicted.png and report.html.

    Where many kernels were predicted, also ratios.png: histograms of predicted by measured time.

    Returns:
        The files written.

    Raises:
        PerfmodelError: if the folder cannot be made or written.
    """
    target = prepared(folder)
    written = []
    try:
        for name, calibration in outcome.calibrations.items():
            written.append(target / f"calibration-{name}.json")
            calibration.save(written[-1])
        plot = measured_against_predicted(outcome)
        for name, content in (
            ("results.json", json_values.document(results(outcome)).encode()),
            ("table.txt", f"{text(outcome)}\n\n{weights(outcome)}\n".encode()),
            ("predicted.png", plot),
            *([("ratios.png", histograms)] if (histograms := ratios(outcome)) else []),
            ("report.html", page(outcome).encode()),
        ):
            written.append(target / name)
            files.write(written[-1], content)
    except OSError as error:
        raise PerfmodelError(
            f"results cannot be written to {target} ({error.strerror}); give another folder"
        ) from error
    return written


def prepared(folder: str | os.PathLike[str]) -> Path:
    """Returns the folder, made where it is not there. Raises PerfmodelError where it can't be."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PerfmodelError(f"folder {folder} cannot be made ({error.strerror}); give another one") from error
    return Path(folder)


def results(outcome: Outcome) -> dict[str, Any]:
    """Returns the outcome as the one format of results files (docs/architecture.md); every summary figure follows from
    rows."""
    return {
        "recipe": outcome.recipe.name,
        "perfmodel": VERSION,
        "command": outcome.command,
        "device": outcome.device,
        "protocol": outcome.protocol,
        "rows": [row.values(ROW) for row in outcome.rows],
        "parameters": {
            name: {p: [value, json_values.plain(c.stderr[p])] for p, value in c.parameters.items()}
            for name, c in outcome.calibrations.items()
        },
        "intervals": {n: c.held_out.figures() if c.held_out else None for n, c in outcome.calibrations.items()},
        "summary": outcome.summary,
        "published": outcome.recipe.published,
        "notes": outcome.notes,
        "cost_s": asdict(outcome.cost) if outcome.cost else None,
        "steps_s": outcome.steps,
    }
