"""Writes the report page: one HTML file with its data, style and script in it, and nothing loaded from anywhere."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from perfmodel.basics.json_values import plain
from perfmodel.basics.statistics import geometric_mean
from perfmodel.basics.version import VERSION
from perfmodel.kernels.kernel import Kernel
from perfmodel.measuring.store import StoredEvaluation
from perfmodel.recipes.outcome import Outcome
from perfmodel.report.chart_data import Charts, as_json
from perfmodel.report.device_comparison import DeviceComparison, comparisons
from perfmodel.report.history import as_html
from perfmodel.report.history import as_json as history_json
from perfmodel.report.html_parts import chart, described, details, paragraph, section, table
from perfmodel.report.model_sections import model_article, seconds
from perfmodel.report.reported import ReportedModel, of_outcome
from perfmodel.report.sample import sample
from perfmodel.report.tables import (
    MOST_LINES,
    PUBLISHED_NOTE,
    comparison,
    contest_table,
    is_compared,
    label_table,
    ranking_table,
    verdict,
)
from perfmodel.report.verdicts import judged_rows, sentences


def report_page(
    models: Sequence[ReportedModel], kernels: Sequence[Kernel] = (), history: Sequence[StoredEvaluation] = ()
) -> str:
    """Returns models side by side, as a complete HTML document.

    Args:
        kernels: those of the models' rows that no installed generator makes, to explain and predict them anew.
        history: evaluations of the models from version to version.
    """
    devices = list(dict.fromkeys(model.device_name for model in models))
    return _page(
        title=" and ".join(names) if len(names := [model.name for model in models]) < 4 else f"{len(names)} models",
        lead=f"How well predicted times are those measured on {', '.join(devices)}, and why.",
        models=models,
        outcome=as_html(history),
        kernels=kernels,
    )


def report_json(
    models: Sequence[ReportedModel], kernels: Sequence[Kernel] = (), history: Sequence[StoredEvaluation] = ()
) -> dict[str, Any]:
    """Returns what a report page shows of models, as values that JSON can hold.

    Args:
        kernels, history: as for `report_page`.
    """
    drawn = sample([row for model in models for row in model.rows], given=kernels)
    charts = [Charts.of(model, drawn) for model in models]
    return {
        "models": [
            {
                "name": each.model.name,
                "device": each.model.device.get("key"),
                "verdict": sentences(each),
                "rows": [plain(asdict(row)) for row in each.model.rows],
                **as_json(each),
            }
            for each in charts
        ],
        "comparisons": [
            {"names": [m.name for m in each.models], "kernels": each.kernels} for each in comparisons(models)
        ],
        "evaluations": history_json(history),
    }


def page(outcome: Outcome) -> str:
    """Returns a recipe's models and baselines as a complete HTML document, with the recipe's own tables."""
    return _page(
        title=f"{outcome.recipe.name} on {outcome.device.get('name', 'unknown device')}",
        lead=f"{outcome.recipe.summary}.",
        models=of_outcome(outcome),
        notes="".join(paragraph(f"Note: {note}.") for note in outcome.notes),
        outcome=_tables(outcome),
    )


def _page(
    title: str,
    lead: str,
    models: Sequence[ReportedModel],
    notes: str = "",
    outcome: str = "",
    kernels: Sequence[Kernel] = (),
) -> str:
    rows = [row for model in models for row in model.rows]
    drawn, compared = sample(rows, given=kernels), comparisons(models)
    charts = [Charts.of(model, drawn) for model in models]
    parts = {name: (files("perfmodel.report") / f"page.{name}").read_text(encoding="utf-8") for name in ("css", "js")}
    template = Template((files("perfmodel.report") / "page.html").read_text(encoding="utf-8"))
    return template.substitute(
        title=escape(title),
        lead=escape(lead),
        version=escape(VERSION),
        style=parts["css"],
        style_hash=_hash(parts["css"]),
        script=parts["js"],
        script_hash=_hash(parts["js"]),
        notes=notes,
        models="\n".join(model_article(i, each) for i, each in enumerate(charts)),
        comparison=_comparisons(models, compared),
        outcome=outcome,
        data=_data(charts, compared),
    )


def _hash(content: str) -> str:
    """Returns the hash by which the page's policy knows its own style and script."""
    return f"sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}"


def _data(charts: Sequence[Charts], compared: Sequence[DeviceComparison]) -> str:
    """Returns JSON that cannot end the element that it is in, whatever kernels are called."""
    content: Mapping[str, Any] = {
        "chosen": _best([each.model for each in charts]),
        "models": [as_json(each) for each in charts],
        "comparisons": [{"names": [m.name for m in each.models], "kernels": each.kernels} for each in compared],
    }
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _best(models: Sequence[ReportedModel]) -> int:
    """Returns the index of the model that is shown first: of those with parameters, that with the smallest error."""

    def rank(index: int) -> tuple[bool, float]:
        errors = [row.error for row in judged_rows(models[index].rows)]
        return models[index].calibration is None, geometric_mean(errors) if errors else math.inf

    return min(range(len(models)), key=rank)


def _comparisons(models: Sequence[ReportedModel], compared: Sequence[DeviceComparison]) -> str:
    if len({model.device_name for model in models}) < 2 and not compared:
        return ""
    if not compared:
        return section(
            "Devices compared", paragraph("No two of these are calibrations of the same model string.", "none")
        )
    return "".join(
        section(f"Devices compared: {each.models[0].name.partition(' on ')[0]}", *_comparison(i, each))
        for i, each in enumerate(compared)
    )


def _comparison(index: int, compared: DeviceComparison) -> list[str]:
    calibrations = [model.calibration for model in compared.models if model.calibration is not None]
    first, others = calibrations[0], calibrations[1:]
    names = [model.name for model in compared.models]
    lines = []
    for name, value in first.parameters.items():
        line = [name, first.units[name], f"{value:.4g}"]
        for other in others:
            line += [f"{other.parameters[name]:.4g}", f"{other.parameters[name] / value:.3g}" if value else "–"]
        lines.append(line)
    header = ["parameter", "unit", names[0], *(cell for name in names[1:] for cell in (name, "ratio"))]
    parts = [
        paragraph(f"Parameters of the same model; ratios are to {names[0]}."),
        table(header, lines, texts=range(2)),
    ]
    if not compared.kernels:
        return [*parts, paragraph("No kernel was measured at the same sizes for all of them.", "none")]
    times = [
        [kernel, variant, sizes, *map(seconds, own), *(f"{time / own[0]:.3g}" for time in own[1:])]
        for kernel, variant, sizes, own in compared.kernels[:MOST_LINES]
    ]
    caption = (
        f"Measured times of the same kernels, {names[1]} against {names[0]}; on the dashed line they are equal, on a "
        "grey one they differ by a power of ten."
    )
    return [
        *parts,
        chart("devices", caption, comparison=index),
        details(
            f"Table of {len(times)} of {len(compared.kernels)} common kernels",
            table(["kernel", "variant", "sizes", *names, *("ratio" for _ in others)], times, texts=range(3)),
        ),
    ]


def _tables(outcome: Outcome) -> str:
    """Returns a recipe's tables beyond its models: their errors by label, and their choices among variants."""
    parts = []
    if is_compared(outcome):
        note = paragraph(PUBLISHED_NOTE, "foot") if outcome.recipe.published else ""
        parts.append(section("Errors by kernel", table(*label_table(outcome), "numbers with-total"), note))
    parts.append(section("How well it predicts", f"<pre>{escape(verdict(outcome))}</pre>"))
    if contests := contest_table(outcome):
        choices = details("Every choice", table(*contests))
        parts.append(section("Which variant is the fastest", table(*ranking_table(outcome)), choices))
    kernels = f"<pre>{escape(comparison(outcome))}</pre>"
    parts.append(section("Kernels that no fit has seen", details("Times of all models", kernels)))
    for baseline in outcome.baselines.values():
        told = "\n".join(baseline.parameter_lines())
        parts.append(section(f"Baseline {baseline.name}", f"<pre>{escape(told)}</pre>"))
    steps = ", ".join(f"{seconds(s)} for {step}" for step, s in outcome.steps.items())
    run = [("command", outcome.command), ("this run took", steps)]
    parts.append(section("This run", described([fact for fact in run if fact[1]])))
    return "".join(parts)
