"""Plots of an outcome, drawn by matplotlib without a display."""

from __future__ import annotations

import io

import numpy as np

from perfmodel.recipe import CALIBRATION, Outcome
from perfmodel.report.tables import short_variants

BANDS = (0.1, 0.3)


def measured_against_predicted(outcome: Outcome) -> bytes:
    """One panel a model, log-log: hollow marks took part in the fit, filled ones did not; bands at 10 and 30 %.

    Returns:
        A PNG file.
    """
    from matplotlib.figure import Figure

    models = list(outcome.calibrations)
    figure = Figure(figsize=(4.6 * len(models), 4.6), layout="constrained")
    axes = figure.subplots(1, len(models), squeeze=False)[0]
    for axis, model in zip(axes, models, strict=True):
        _panel(axis, outcome, model)
    figure.suptitle(f"{outcome.recipe.name} on {outcome.device.get('name', 'unknown device')}", fontsize=11)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    return buffer.getvalue()


def _panel(axis: object, outcome: Outcome, model: str) -> None:
    rows = [r for r in outcome.rows if r.model == model and r.measured_s and r.predicted_s]
    fitted = [r for r in rows if r.role == CALIBRATION]
    axis.plot(  # type: ignore[attr-defined]
        [r.measured_s for r in fitted],
        [r.predicted_s for r in fitted],
        "o",
        mfc="none",
        mec="0.55",
        ms=5,
        label="in the fit",
    )
    held_out = outcome.evaluation(model)
    names = short_variants(held_out)
    for marker, (variant, name) in zip("sDv^", names.items(), strict=False):
        chosen = [r for r in held_out if r.variant == variant and r.measured_s]
        axis.plot([r.measured_s for r in chosen], [r.predicted_s for r in chosen], marker, ms=6, label=name)  # type: ignore[attr-defined]
    times = [t for r in rows for t in (r.measured_s, r.predicted_s) if t]
    line = np.array([min(times) / 1.5, max(times) * 1.5]) if times else np.array([1e-6, 1.0])
    axis.plot(line, line, "-", color="0.4", lw=0.8)  # type: ignore[attr-defined]
    for band in BANDS:
        axis.fill_between(line, line * (1 - band), line * (1 + band), color="C0", alpha=0.08, lw=0)  # type: ignore[attr-defined]
    axis.set(xscale="log", yscale="log", xlabel="measured (s)", ylabel="predicted (s)", title=model)  # type: ignore[attr-defined]
    axis.legend(fontsize=8, frameon=False)  # type: ignore[attr-defined]
