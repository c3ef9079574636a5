"""The HTML report: one file, no script, nothing loaded from anywhere, light and dark."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from string import Template

from perfmodel.calibration import Calibration
from perfmodel.outcome import Outcome
from perfmodel.predictor import Predictor
from perfmodel.report.tables import (
    PUBLISHED_NOTE,
    comparison,
    contest_table,
    is_compared,
    label_table,
    ranking_table,
    seconds,
    verdict,
)


def page(outcome: Outcome, plot: bytes) -> str:
    """The report as a complete HTML document; `plot` is a PNG."""
    template = Template((files("perfmodel.report") / "page.html").read_text())
    return template.substitute(
        title=escape(f"{outcome.recipe.name} on {outcome.device.get('name', 'unknown device')}"),
        summary=escape(outcome.recipe.summary),
        notes="".join(f"<p>Note: {escape(note)}.</p>" for note in outcome.notes),
        labels=_labels(outcome),
        verdict=escape(verdict(outcome)),
        plot=base64.b64encode(plot).decode(),
        ranking=_ranking(outcome),
        comparison=escape(comparison(outcome)),
        models="\n".join(_model(name, calibration) for name, calibration in outcome.calibrations.items()),
        baselines="\n".join(_baseline(baseline) for baseline in outcome.baselines.values()),
        conditions=_table(["", ""], [[k, str(v)] for k, v in _conditions(outcome).items()]),
    )


def _labels(outcome: Outcome) -> str:
    if not is_compared(outcome):
        return ""
    header, lines = label_table(outcome)
    table = _table(header, lines, "figures with-total")
    return f"{table}<p class=foot>{PUBLISHED_NOTE}</p>" if outcome.recipe.published else table


def _ranking(outcome: Outcome) -> str:
    contests = contest_table(outcome)
    if not contests:
        return ""
    over_all = _table(*ranking_table(outcome), "figures")
    return f"<h2>Which variant is the fastest</h2>{over_all}{_table(*contests, 'figures')}"


def _baseline(baseline: Predictor) -> str:
    return f"<h3>{escape(baseline.name)}</h3><pre>{escape(chr(10).join(baseline.parameter_lines()))}</pre>"


def _model(name: str, calibration: Calibration) -> str:
    rows = [
        [p, f"{value:.4g}", f"{calibration.stderr[p]:.2g}".replace("nan", "-"), calibration.units[p]]
        for p, value in calibration.parameters.items()
    ]
    notes = "".join(f"<p>Undetermined: {escape(sentence)}.</p>" for sentence in calibration.undetermined)
    notes += "".join(f"<p>Left out: {escape(str(row))}.</p>" for row in calibration.left_out)
    source = escape(calibration.model.string.source.strip())
    table = _table(["parameter", "value", "standard error", "unit"], rows)
    fit = f"<details><summary>the fit</summary><pre>{escape(calibration.report)}</pre></details>"
    return f"<h3>{escape(name)}</h3><pre>{source}</pre>{table}{notes}{fit}"


def _conditions(outcome: Outcome) -> dict[str, object]:
    wanted = ("name", "platform", "driver", "opencl_version", "compute_units", "clock_mhz", "key")
    first = next(iter(outcome.calibrations.values()))
    return {
        "command": outcome.command,
        **{key: outcome.device[key] for key in wanted if key in outcome.device},
        "protocol": ", ".join(f"{k} {v}" for k, v in outcome.protocol.items() if v is not None),
        "versions": ", ".join(f"{k} {v}" for k, v in first.versions.items()),
        "calibrated": first.created,
        "this run took": ", ".join(f"{seconds(s)} for {step}" for step, s in outcome.steps.items()),
    }


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], kind: str = "") -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<div class=wide><table class='{kind}'><tr>{head}</tr>{body}</table></div>"
