"""The HTML report: one file, no script, nothing loaded from anywhere, light and dark."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from string import Template

from perfmodel.calibration import Calibration
from perfmodel.recipe import Outcome
from perfmodel.report.tables import comparison, verdict


def page(outcome: Outcome, plot: bytes) -> str:
    """The report as a complete HTML document; `plot` is a PNG."""
    template = Template((files("perfmodel.report") / "page.html").read_text())
    return template.substitute(
        title=escape(f"{outcome.recipe.name} on {outcome.device.get('name', 'unknown device')}"),
        summary=escape(outcome.recipe.summary),
        verdict=escape(verdict(outcome)),
        plot=base64.b64encode(plot).decode(),
        comparison=escape(comparison(outcome)),
        models="\n".join(_model(name, calibration) for name, calibration in outcome.calibrations.items()),
        conditions=_table(["", ""], [[k, str(v)] for k, v in _conditions(outcome).items()]),
    )


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
    }


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<div class=wide><table><tr>{head}</tr>{body}</table></div>"
