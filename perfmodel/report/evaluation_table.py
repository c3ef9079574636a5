"""Writes an evaluation as text: a line a kernel, a line a family, and what one must know."""

from __future__ import annotations

import math

from perfmodel.basics.statistics import Errors
from perfmodel.basics.tables import grid, kernel_text, percent, seconds, told_apart
from perfmodel.modelling.evaluation import FITTED, Evaluation
from perfmodel.modelling.rows import Row


def as_text(evaluation: Evaluation) -> str:
    over_all = evaluation.over_all
    labels = [kernel_text(each.kernel, each.variant, each.sizes) for each in evaluation.kernels]
    common, names = told_apart(labels)
    lines = [_line(each, names[label]) for each, label in zip(evaluation.kernels, labels, strict=True)]
    parts = [*filter(None, [common]), grid(["kernel", "measured", "predicted", "error", "remark"], lines)]
    if over_all:
        lines = [_errors(name, errors) for name, errors in (*evaluation.by_family.items(), ("all", over_all))]
        header = ["error", "geometric mean", "mean", "maximum", "within ±10 %", "within ±30 %", "kernels"]
        parts.append(grid(header, lines))
    if evaluation.notes:
        parts.append("\n".join(f"note: {note}" for note in evaluation.notes))
    return "\n\n".join(parts)


def _line(each: Row, name: str) -> list[str]:
    remark = "fitted to it" if each.left_out == FITTED else each.left_out or ", ".join(each.flags)
    return [
        name,
        seconds(each.measured_s),
        seconds(each.predicted_s),
        "-" if math.isnan(each.error) else percent(each.error),
        remark,
    ]


def _errors(name: str, errors: Errors) -> list[str]:
    shares = (errors.geometric_mean, errors.mean, errors.maximum, errors.within_10_percent, errors.within_30_percent)
    return [name, *map(percent, shares), str(errors.count)]
