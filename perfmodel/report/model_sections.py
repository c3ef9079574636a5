"""Writes one model's part of a report page: its charts, each with the table behind it, in the order of reading."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

import numpy as np

from perfmodel.basics.statistics import Errors
from perfmodel.basics.tables import seconds as in_ascii
from perfmodel.basics.tables import sizes_text
from perfmodel.modelling.calibration import Calibration, Model
from perfmodel.modelling.readings import readings
from perfmodel.modelling.rows import CALIBRATION, Row
from perfmodel.report import chart_data
from perfmodel.report.chart_data import Charts
from perfmodel.report.html_parts import chart, described, details, figures, paragraph, section, table
from perfmodel.report.reported import ReportedModel
from perfmodel.report.tables import MOST_LINES
from perfmodel.report.verdicts import judged_rows, sentences

NOTABLE_CORRELATION = 0.5
NO_ROWS = (
    "There are no measurements in this calibration, so no times can be shown; calibrations that are shipped have none."
)
NO_PREDICTIONS = "No measured time has a prediction."
NO_CALIBRATION = "Only the times of this model are known here, not its parameters."


def seconds(value: float | None) -> str:
    """Returns seconds as the charts write them."""
    return "–" if value is None else in_ascii(value).replace("us", "µs")


def percent(part: float) -> str:
    return f"{part * 100:.1f}\N{NO-BREAK SPACE}%" if part == part else "–"


def model_article(index: int, charts: Charts) -> str:
    """Returns all of one model as HTML; `index` is its number in the page's data."""
    model = charts.model
    return "".join(
        [
            '<article class="model">',
            f"<h2>{escape(model.name)}</h2>",
            *(paragraph(f"{note}.") for note in model.notes),
            *(paragraph(sentence, "verdict") for sentence in sentences(charts)),
            _figures(model),
            _predicted(index, model),
            _residuals(index, model),
            _sizes(index, charts),
            _costs(index, charts),
            _parameters(index, charts),
            _roofline(index, charts),
            _conditions(model),
            "</article>",
        ]
    )


def _figures(model: ReportedModel) -> str:
    judged = judged_rows(model.rows)
    found: list[tuple[str, str, str]] = []
    if judged:
        errors = Errors.of(row.error for row in judged)
        assert errors is not None  # as all of them have both times
        of = "in the fit" if judged[0].role == CALIBRATION else "that no fit has seen"
        found += [
            ("Error", percent(errors.geometric_mean), f"geometric mean of {len(judged)} times {of}"),
            ("Mean error", percent(errors.mean), "of these times"),
            ("Within ±30 %", percent(errors.within_30_percent), "of these times"),
            ("Largest error", percent(errors.maximum), "of these times"),
        ]
    if model.calibration is not None:
        fitted = len(model.calibration.rows) - len(model.calibration.left_out)
        of = f"fitted to {fitted} times" if fitted else "fitted"
        found.append(("Parameters", str(len(model.calibration.parameters)), of))
        if math.isfinite(model.calibration.residual_std):
            found.append(("Spread", percent(model.calibration.residual_std), "that the fit leaves unexplained"))
    return figures(found)


def _predicted(index: int, model: ReportedModel) -> str:
    rows = chart_data.complete(model.rows)
    title = "Measured against predicted"
    if not rows:
        return section(title, paragraph(NO_PREDICTIONS if model.rows else NO_ROWS, "none"))
    worst = sorted(rows, key=lambda row: -row.error)
    lines = [
        [
            row.kernel,
            row.variant,
            sizes_text(row.sizes),
            "in the fit" if row.role == CALIBRATION else "not seen",
            seconds(row.measured_s),
            seconds(row.predicted_s),
            _signed(row),
            " ".join(row.flags),
        ]
        for row in worst[:MOST_LINES]
    ]
    header = ["kernel", "variant", "sizes", "fit", "measured", "predicted", "error", "flags"]
    return section(
        title,
        chart(
            "predicted", "Each mark is a kernel at a size; on the dashed line, prediction is measurement.", model=index
        ),
        details(_counted("Table of times, largest errors first", len(rows)), table(header, lines, texts=range(4))),
    )


def _residuals(index: int, model: ReportedModel) -> str:
    rows = chart_data.complete(model.rows)
    if not rows:
        return ""
    families: dict[str, list[Row]] = {}
    for row in rows:
        families.setdefault(row.kernel, []).append(row)
    lines = []
    for name, group in families.items():
        ratios = np.array([(row.predicted_s or 0.0) / (row.measured_s or 1.0) for row in group])
        errors = Errors.of(row.error for row in group)
        assert errors is not None
        lines.append(
            [
                *(name, str(len(group)), percent(errors.geometric_mean), percent(errors.mean), percent(errors.maximum)),
                *(f"{value:.3g}" for value in (ratios.min(), float(np.median(ratios)), ratios.max())),
                percent(errors.within_30_percent),
            ]
        )
    header = [
        "family",
        "times",
        "geometric mean error",
        "mean",
        "largest",
        "least ratio",
        "median",
        "largest ratio",
        "within ±30 %",
    ]
    caption = (
        "Predicted by measured time. In each family's lane short times lie at the bottom and long ones at the top; "
        "the bar is the median."
    )
    return section(
        "Residuals by family and size",
        chart("residuals", caption, model=index),
        details("Table of families", table(header, lines)),
    )


def _sizes(index: int, charts: Charts) -> str:
    title, found = "Time against size", charts.lines
    if not charts.model.rows:
        return ""
    if not found:
        return section(title, paragraph("No variant was measured at more than one size.", "none"))
    lines = [
        [
            *(line.kernel, line.variant, f"{line.size}={n}", "in the fit" if fitted else "not seen"),
            *(seconds(measured), seconds(predicted), "–" if std is None else f"± {seconds(2 * std)}"),
        ]
        for line in found
        for n, measured, predicted, std, fitted in line.points
    ]
    header = ["kernel", "variant", "size", "fit", "measured", "predicted", "95 % band"]
    caption = "Marks are measured, lines predicted, with a band of two standard deviations around them."
    if any(not line.curve for line in found):
        caption += (
            " Where a kernel was not generated again, its line goes straight from one predicted time to the next."
        )
    return section(
        title,
        chart("sizes", caption, model=index),
        details(_counted("Table of variants and sizes", len(lines)), table(header, lines[:MOST_LINES], texts=range(4))),
    )


def _costs(index: int, charts: Charts) -> str:
    title, found = "Where predicted time goes", charts.breakdowns
    if charts.model.calibration is None:
        return section(title, paragraph(NO_CALIBRATION, "none"))
    if not charts.model.rows:
        return section(title, paragraph("Without measurements there are no kernels to break down here.", "none"))
    if not found:
        sentence = (
            "A calibration holds no costs of single kernels, and none of these could be generated again from its tags."
        )
        return section(title, paragraph(sentence, "none"))
    lines = [
        [b.kernel, b.variant, sizes_text(b.sizes), name, seconds(alone), percent(share)]
        for b in found
        for name, alone, share in b.parts
    ]
    header = ["kernel", "variant", "sizes", "term", "by itself", "share"]
    limits = [[b.kernel, b.variant, sizes_text(b.sizes), b.parts[0][0], b.mechanism] for b in found if b.mechanism]
    caption = f"Each bar is the prediction of one variant at its longest measured time. {charts.sample.sentence}"
    return section(
        title,
        chart("costs", caption.strip(), model=index),
        table(["kernel", "variant", "sizes", "limited by", "which is"], limits, texts=range(5)) if limits else "",
        details(_counted("Table of terms", len(lines)), table(header, lines[:MOST_LINES], texts=range(4))),
    )


def _meanings(model: Model) -> str:
    """Returns what the terms stand for and what would help, where the model says so."""
    lines = [
        [name, meaning.words, "; ".join(text for text, _ in meaning.advised())]
        for name, meaning in model.meanings.items()
        if name in model.string.terms
    ]
    header = ["term", "stands for", "what would help"]
    return details("What the terms stand for", table(header, lines, texts=range(3))) if lines else ""


def _parameters(index: int, charts: Charts) -> str:
    calibration = charts.model.calibration
    if calibration is None:
        return ""
    rows = []
    for name, value in calibration.parameters.items():
        error = calibration.stderr[name]
        known = math.isfinite(error)
        rows.append(
            [
                *(name, calibration.units[name], f"{value:.4g}", f"{error:.2g}" if known else "–"),
                percent(abs(error / value)) if known and value else "–",
                calibration.mark(name).strip("()"),
            ]
        )
    header = ["parameter", "unit", "value", "standard error", "relative", "note"]
    return section(
        "Parameters",
        details("The model", f"<pre>{escape(calibration.model.string.source.strip())}</pre>"),
        _meanings(calibration.model),
        table(header, rows, texts=(0, 1, 5)),
        _readings(calibration),
        _correlations(index, *charts.correlations),
        *_undetermined(calibration),
        details("The fit", f"<pre>{escape(calibration.report)}</pre>"),
    )


def _readings(calibration: Calibration) -> str:
    """Returns the parameters in units that people know, beside what the device has, where the model says so."""
    if not calibration.model.meanings:
        return ""
    lines = [
        [each.parameter, each.words, each.value, each.physical, each.source, each.lacks]
        for each in readings(calibration)
        if each.words
    ]
    header = ["parameter", "stands for", "value", "physical value", "as of", "if not physical: what the model lacks"]
    return details("What the parameters stand for", table(header, lines, texts=range(6)))


def _correlations(index: int, names: Sequence[str], values: Sequence[Sequence[float]]) -> str:
    if len(names) < 2:
        return paragraph("The measurements give no correlations of parameters.", "none")
    pairs = sorted(
        ((value, names[i], names[j]) for i, row in enumerate(values) for j, value in enumerate(row[:i])),
        key=lambda pair: -abs(pair[0]),
    )
    notable = [[f"{a}, {b}", f"{value:+.2f}"] for value, a, b in pairs if abs(value) > NOTABLE_CORRELATION]
    some = f" The first {len(names)} are drawn." if len(names) == chart_data.MOST_CORRELATED else ""
    return chart(
        "correlations", f"Correlations of the fitted values, from their covariance.{some}", model=index
    ) + details(
        f"Table of correlations beyond ±{NOTABLE_CORRELATION}",
        table(["parameters", "correlation"], notable[:MOST_LINES]),
    )


def _undetermined(calibration: Calibration) -> Sequence[str]:
    if not calibration.undetermined:
        return []
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in calibration.undetermined)
    return [details(_counted("What the measurements leave open", len(calibration.undetermined)), f"<ul>{items}</ul>")]


def _roofline(index: int, charts: Charts) -> str:
    title, found = "Roofline", charts.roofline
    if charts.model.calibration is None or not charts.model.rows:
        return ""
    if found is None:
        sentence = (
            "No roofline: among this model's parameters there are not both a cost of a byte (or of an access of one "
            "width) of global memory and a cost of an operation."
        )
        return section(title, paragraph(sentence, "none"))
    if not found.points:
        return section(
            title, paragraph("No roofline: of no kernel with operations and global accesses are counts known.", "none")
        )
    lines = [
        [row.kernel, row.variant, sizes_text(row.sizes), f"{intensity:.4g}", f"{rate:.4g}", f"{rate / intensity:.4g}"]
        for row, intensity, rate in found.points
    ]
    header = ["kernel", "variant", "sizes", "FLOP a byte", "FLOP/s", "B/s"]
    roofs = [[c.parameter, f"{c.rate:.4g} B/s"] for c in found.bandwidths]
    roofs += [[c.parameter, f"{c.rate:.4g} FLOP/s"] for c in found.rates]
    caption = (
        "FLOP are floating-point operations, a multiply-add being two; bytes are those that global accesses ask for. "
        "The ceilings are reciprocals of this model's parameters; caches may lift a kernel above one. "
        f"{charts.sample.sentence}"
    )
    return section(
        title,
        chart("roofline", caption.strip(), model=index),
        details(
            _counted("Table of intensities and ceilings", len(lines)),
            table(["ceiling", "rate"], roofs) + table(header, lines[:MOST_LINES], texts=range(3)),
        ),
    )


def _conditions(model: ReportedModel) -> str:
    wanted = ("name", "platform", "vendor", "driver", "opencl_version", "compute_units", "clock_mhz", "key")
    facts = [(name.replace("_", " "), str(model.device[name])) for name in wanted if model.device.get(name)]
    facts = [("device" if name == "name" else name, value) for name, value in facts]
    if model.protocol:
        facts.append(("protocol", ", ".join(f"{k} {v}" for k, v in model.protocol.items() if v is not None)))
    if model.calibration is not None:
        facts.append(("versions", ", ".join(f"{k} {v}" for k, v in model.calibration.versions.items())))
        facts.append(("calibrated", model.calibration.created))
    if model.command:
        facts.append(("command", model.command))
    flagged = [row for row in model.rows if row.flags]
    facts.append(("flagged times", f"{len(flagged)} of {len(model.rows)}"))
    drawn = set(map(id, chart_data.complete(model.rows)))
    left_out = [row for row in model.rows if id(row) not in drawn]
    listed = [
        [row.kernel, row.variant, sizes_text(row.sizes), seconds(row.measured_s), ", ".join(row.flags)]
        for row in left_out
    ]
    header = ["kernel", "variant", "sizes", "measured", "flags"]
    return section(
        "Conditions",
        described([fact for fact in facts if fact[1]]),
        details(
            _counted("Times that are not in the charts", len(listed)),
            table(header, listed[:MOST_LINES], texts=range(3)),
        )
        if listed
        else "",
    )


def _signed(row: Row) -> str:
    return f"{((row.predicted_s or 0.0) / (row.measured_s or 1.0) - 1) * 100:+.1f}\N{NO-BREAK SPACE}%"


def _counted(summary: str, count: int) -> str:
    return f"{summary} ({count if count <= MOST_LINES else f'the first {MOST_LINES} of {count}'})"
