"""Writes what notebooks show of calibrations, explanations and comparisons: small tables, everything escaped."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perfmodel.modelling.calibration import Calibration
    from perfmodel.modelling.explanation import Comparison, Explanation

MOST_ROWS = 12


def calibration_html(calibration: Calibration) -> str:
    """Returns the model, its parameters, and how well it fits, as HTML."""
    rows = [
        [name, f"{value:.4g}", _error(calibration.stderr[name]), calibration.units[name]]
        for name, value in calibration.parameters.items()
    ]
    used = [row for row in calibration.rows if row.predicted_s is not None]
    device = calibration.device.get("name", "no device")
    fitted = f"{len(used)} kernels" if used else "measurements that are not kept here"
    lines = [
        f"<p><b>{escape(calibration.model.output_name)}</b> on <b>{escape(str(device))}</b>, fitted to {fitted}; "
        f"{_percent(calibration.residual_std)} is left unexplained</p>",
        f"<pre>{escape(calibration.model.string.source.strip())}</pre>",
        _table(["parameter", "value", "standard error", "unit"], rows),
    ]
    left = [str(row) for row in calibration.left_out]
    if left:
        more = f"<li>and {len(left) - MOST_ROWS} more</li>" if len(left) > MOST_ROWS else ""
        listed = "".join(f"<li>{escape(row)}</li>" for row in left[:MOST_ROWS])
        lines.append(f"<details><summary>{len(left)} left out</summary><ul>{listed}{more}</ul></details>")
    lines += [f"<p>undetermined: {escape(sentence)}</p>" for sentence in calibration.undetermined]
    return "\n".join(lines)


def explanation_html(explanation: Explanation) -> str:
    """Returns the costs, what changes with size, and how far to trust the explanation, as HTML."""
    rows = [[cost.name, f"{cost.seconds:.4g} s", f"{cost.share:.1%}"] for cost in explanation.notable]
    sentences = "".join(f"<li>{escape(sentence)}</li>" for sentence in explanation.sentences())
    return (
        f"<p><b>{escape(explanation.title)}</b>: {explanation.seconds:.4g} s{explanation.sureness}, limited by "
        f"<b>{escape(explanation.bottleneck)}</b></p>\n"
        f"{_table(['cost', 'by itself', 'share'], rows)}\n<ul>{sentences}</ul>"
    )


def comparison_html(comparison: Comparison) -> str:
    """Returns what each cost adds to the two times, as HTML."""
    rows = [
        [each.name, f"{each.first_s:.4g} s", f"{each.second_s:.4g} s", f"{each.seconds:+.4g} s"]
        for each in comparison.notable
    ]
    first, second = comparison.first, comparison.second
    rows.append(
        ["all", f"{first.seconds:.4g} s", f"{second.seconds:.4g} s", f"{second.seconds - first.seconds:+.4g} s"]
    )
    return (
        f"<p>first: {escape(first.title)}<br>second: {escape(second.title)}, which takes {comparison.ratio:.3g} times "
        f"as long</p>\n{_table(['cost', 'first', 'second', 'difference'], rows)}"
    )


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _error(value: float) -> str:
    return f"{value:.2g}" if math.isfinite(value) else "-"


def _percent(value: float) -> str:
    return f"{value:.1%}" if math.isfinite(value) else "an unknown part"
