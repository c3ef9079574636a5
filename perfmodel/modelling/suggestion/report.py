"""Writes a suggestion as text: for people, and as a file for `perfmodel calibrate @FILE`."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.statistics import Errors, geometric_mean
from perfmodel.basics.tables import grid, percent, seconds
from perfmodel.modelling.rows import Row
from perfmodel.modelling.suggestion import Suggestion


def as_text(suggestion: Suggestion) -> str:
    """Returns the path of sums, the comparison of forms, the chosen form on what was held out, and the model."""
    left_out = len(suggestion.calibration.left_out)
    sections = [
        f"{len(suggestion.groups)} kernels in {len(suggestion.error_by_group)} groups, each held out in its turn; "
        f"{len(suggestion.candidates)} features"
        + (f"; {left_out} kernels are flagged and left out" if left_out else ""),
        _path(suggestion),
        _forms(suggestion),
        grid(
            ["chosen form on", "typical error"],
            [[group, percent(error)] for group, error in suggestion.error_by_group.items()],
        ),
        "suggested model:\n" + textwrap.indent(suggestion.model.string.source, "    "),
        "\n".join(suggestion.calibration.parameter_lines()),
    ]
    if suggestion.evaluation:
        sections.append(_evaluation(suggestion.evaluation))
    return "\n\n".join(sections)


def as_file(suggestion: Suggestion, command: str) -> str:
    """Returns the model string with a comment that says where it comes from."""
    chosen = suggestion.chosen
    comment = [
        command,
        f"typical error {percent(chosen.error)} on groups of kernels that were held out of the fit,"
        f" {len(suggestion.groups)} kernels in {len(suggestion.error_by_group)} groups",
    ]
    plain = [line.encode("ascii", "replace").decode().replace("\n", " ") for line in comment]
    return "".join(f"# {line}\n" for line in plain) + suggestion.model.string.source + "\n"


def _path(suggestion: Suggestion) -> str:
    lines = []
    for step in suggestion.path:
        changes = [*(f"+ {name}" for name in step.added), *(f"- {name}" for name in step.removed)]
        lines.append([changes[0], str(len(step.terms)), percent(step.error), _error(step.ratios)])
        lines += [[change, "", "", ""] for change in changes[1:]]
    return grid(["best sums", "terms", "typical error", "geometric mean"], lines)


def _forms(suggestion: Suggestion) -> str:
    lines = [
        [
            ("* " if form is suggestion.chosen else "  ") + form.last_line,
            form.chosen_for,
            str(form.parameters),
            percent(form.error),
            _error(form.ratios),
        ]
        for form in suggestion.forms
    ]
    header = ["forms (* is suggested)", "terms chosen for", "parameters", "typical error", "geometric mean"]
    return grid(header, lines)


def _evaluation(rows: Sequence[Row]) -> str:
    lines = [[r.label, *_times(r)] for r in rows]
    known = np.array([r.predicted_s / r.measured_s for r in rows if r.predicted_s is not None and r.measured_s])
    table = grid(["evaluation, never in a fit", "measured", "predicted", "error"], lines)
    errors = Errors.of(np.abs(known - 1).tolist())
    if errors is None:
        return table
    mean, largest, within = map(percent, (errors.mean, errors.maximum, errors.within_30_percent))
    shown = f"geometric mean of {errors.count} errors: {percent(errors.geometric_mean)}"
    return f"{table}\n{shown}, mean {mean}, maximum {largest}; {within} within ±30 %"


def _times(row: Row) -> list[str]:
    if row.predicted_s is None:
        return [seconds(row.measured_s), "not defined", "-"]
    return [seconds(row.measured_s), seconds(row.predicted_s), percent(row.error)]


def _error(ratios: NDArray[np.float64]) -> str:
    return percent(geometric_mean(np.abs(ratios - 1).tolist()))
