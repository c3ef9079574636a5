"""Plots an outcome by matplotlib, without a display."""

from __future__ import annotations

import io
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from perfmodel.basics.tables import short_labels
from perfmodel.modelling.rows import CALIBRATION, Row
from perfmodel.recipes.outcome import Outcome

BANDS = (0.1, 0.3)
PANELS_A_LINE, PANEL_INCHES = 3, 4.6
LETTERS_AN_INCH = 13
"""An inch of the legend has room for so many letters."""
COLOURS, MARKS = 10, "sDv^o"
FEWEST = 100
"""A histogram needs so many kernels of a label."""


def measured_against_predicted(outcome: Outcome) -> bytes:
    """Plots one panel a model, log-log: hollow marks took part in the fit, filled ones did not; bands at 10 and 30 %.

    Returns:
        A PNG file.
    """
    from matplotlib.figure import Figure  # slow to import

    models = outcome.models
    columns = 2 if len(models) == 4 else min(len(models), PANELS_A_LINE)
    lines = math.ceil(len(models) / columns)
    names = short_labels(dict.fromkeys(row.label for row in outcome.evaluation(models[0])))
    width = PANEL_INCHES * columns
    entries_a_line = max(1, int(width * LETTERS_AN_INCH / (8 + max(map(len, names.values()), default=0))))
    legend_lines = math.ceil((len(names) + 1) / entries_a_line)
    figure = Figure(figsize=(width, 4.4 * lines + 0.3 + 0.2 * legend_lines), layout="constrained")
    axes = figure.subplots(lines, columns, squeeze=False).ravel()
    limits = _limits(outcome.rows)
    for axis, model in itertools.zip_longest(axes, models):
        if model is None:
            axis.set_axis_off()
        else:
            _panel(axis, [row for row in outcome.rows if row.model == model], names, limits)
            axis.set_title(model)
    marks, labels = axes[0].get_legend_handles_labels()
    figure.legend(
        marks, labels, loc="outside lower center", ncols=min(entries_a_line, len(labels)), fontsize=8, frameon=False
    )
    figure.suptitle(f"{outcome.recipe.name} on {outcome.device.get('name', 'unknown device')}", fontsize=11)
    return png(figure)


def ratios(outcome: Outcome) -> bytes | None:
    """Plots histograms of predicted by measured time, a panel a label and model, with the band of 30 %.

    Returns:
        A PNG file; None where a label has too few kernels for one.
    """
    from matplotlib.figure import Figure  # slow to import

    labels = short_labels(dict.fromkeys(row.label for row in outcome.evaluation(outcome.models[0])))
    found = {
        (label, model): [
            row.predicted_s / row.measured_s
            for row in outcome.evaluation(model)
            if row.label == label and row.predicted_s and row.measured_s
        ]
        for label in labels
        for model in outcome.models
    }
    shown = [label for label in labels if all(len(found[label, model]) >= FEWEST for model in outcome.models)]
    if not shown:
        return None
    size = (3.3 * len(outcome.models), 2.5 * len(shown) + 0.4)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(len(shown), len(outcome.models), squeeze=False, sharex=True, sharey="row")
    edges = np.linspace(0, 2, 41)
    for line, label in zip(axes, shown, strict=True):
        for axis, model in zip(line, outcome.models, strict=True):
            values = np.array(found[label, model])
            axis.axvspan(1 - BANDS[-1], 1 + BANDS[-1], color="0.5", alpha=0.15, lw=0)
            axis.hist(np.clip(values, 0, 2), edges, color="C0")
            within = np.mean(np.abs(values - 1) <= BANDS[-1])
            axis.set_title(f"{model}, {labels[label]}: {within:.1%} within", fontsize=9)
        line[0].set_ylabel("kernels")
    for axis in axes[-1]:
        axis.set_xlabel("predicted / measured (2: or more)")
    figure.suptitle(f"{outcome.recipe.name} on {outcome.device.get('name', 'unknown device')}", fontsize=11)
    return png(figure)


def png(figure: Any, dpi: int = 110) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi)
    return buffer.getvalue()


def _limits(rows: Sequence[Row]) -> tuple[float, float]:
    """Returns the limits that all panels share on both axes."""
    times = [t for row in rows if row.measured_s for t in (row.measured_s, row.predicted_s) if t]
    return (min(times) / 1.5, max(times) * 1.5) if times else (1e-6, 1.0)


def _panel(axis: Any, rows: Sequence[Row], names: Mapping[str, str], limits: tuple[float, float]) -> None:
    line = np.array(limits)
    for band in BANDS:
        axis.fill_between(line, line * (1 - band), line * (1 + band), color="0.5", alpha=0.12, lw=0)
    axis.plot(line, line, "-", color="0.4", lw=0.8)
    fitted = [row for row in rows if row.role == CALIBRATION]
    _points(axis, fitted, "in the fit", marker="o", mfc="none", mec="0.6", ms=4)
    for i, (label, name) in enumerate(names.items()):
        judged = [row for row in rows if row.role != CALIBRATION and row.label == label]
        # From the eleventh on, colours return with other marks.
        mark = MARKS[(i + i // COLOURS) % len(MARKS)]
        _points(axis, judged, name, marker=mark, color=f"C{i % COLOURS}", ms=5.5, mec="white", mew=0.4)
    axis.set(xscale="log", yscale="log", xlabel="measured (s)", ylabel="predicted (s)", xlim=limits, ylim=limits)


def _points(axis: Any, rows: Sequence[Row], label: str, **style: Any) -> None:
    both = [row for row in rows if row.measured_s and row.predicted_s]
    axis.plot([r.measured_s for r in both], [r.predicted_s for r in both], linestyle="none", label=label, **style)
