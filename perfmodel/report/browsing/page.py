"""Writes a store as HTML: overview, filters, kernels, a calibration with its residuals, failures."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files

from perfmodel.basics.errors import PerfmodelError
from perfmodel.basics.tables import percent, seconds, sizes_text
from perfmodel.modelling.rows import Row
from perfmodel.report.browsing.contents import KernelLine, StoreView, Wanted
from perfmodel.report.history import as_html
from perfmodel.report.html_parts import described, details, figures, paragraph, section, table
from perfmodel.report.reported import reported

MOST_LINES = 400
"""Kernels beyond so many are only counted; filters choose among them."""
REPORT, BROWSING = "perfmodel.report", "perfmodel.report.browsing"
WIDTH, HEIGHT, EDGE = 640, 240, 30


def whole(view: StoreView, wanted: Wanted) -> str:
    """Returns the whole page."""
    name = escape(view.path.name)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>perfmodel: {name}</title><link rel="stylesheet" href="/page.css"></head>\n'
        f'<body><header><h1>{name}</h1><p class="lead">What the store holds, read as it is. '
        '<span id="live"></span></p></header>\n'
        f'<main>{_form(view, wanted)}<div id="content" data-stamp="{escape(view.stamp)}">{content(view, wanted)}</div>'
        '</main>\n<script src="/page.js"></script></body></html>'
    )


def content(view: StoreView, wanted: Wanted) -> str:
    """Returns what changes while a campaign runs."""
    lines = view.lines(wanted)
    facts = [
        ("Kernels", str(len(lines)), "that the filters select"),
        ("Times", f"{len(view):,}", "in the store"),
        ("Devices", str(len(view.devices())), "that they are of"),
        ("Failures", str(len(view.failures)), "with their reasons below"),
    ]
    parts = [figures(facts), section("Kernels", *_kernels(lines, wanted))]
    if wanted.calibration in view.calibrations():
        parts.append(_calibration(view, wanted.calibration))
    parts.append(as_html(view.evaluations))
    if view.failures:
        reasons = Counter(failure.reason for failure in view.failures).most_common(50)
        rows = [[" ".join(reason.split())[:200], str(count)] for reason, count in reasons]
        parts.append(section("Failures", table(["reason", "kernels"], rows)))
    return "".join(parts)


def style() -> str:
    """Returns the style of report pages, with that of this one."""
    return "".join((files(package) / "page.css").read_text(encoding="utf-8") for package in (REPORT, BROWSING))


def script() -> str:
    return (files(BROWSING) / "page.js").read_text(encoding="utf-8")


def _form(view: StoreView, wanted: Wanted) -> str:
    devices = {"": "any device", **{key: f"{name} ({key})" for key, name in view.devices().items()}}
    others = {"": "nothing", **{key: text for key, text in devices.items() if key}}
    versions = {"": "the newest time", **{text: text for text in view.versions()}}
    calibrations = {"": "none", **{name: name for name in view.calibrations()}}
    hint = "matmul_sq dtype=float32 n:512,1024"
    return (
        '<form method="get" action="/"><label>name, tags, sizes'
        f'<input name="words" value="{escape(wanted.words)}" placeholder="{hint}" autocomplete="off"></label>'
        + _select("device", "device", devices, wanted.device)
        + _select("version", "measured by", versions, wanted.version)
        + _select("other", "beside it", others, wanted.other)
        + _select("other_version", "measured by", {**versions, "": "the newest time"}, wanted.other_version)
        + _select("calibration", "calibration", calibrations, wanted.calibration)
        + "<button>Show</button></form>"
    )


def _select(name: str, label: str, options: Mapping[str, str], chosen: str) -> str:
    listed = "".join(
        f'<option value="{escape(value)}"{" selected" if value == chosen else ""}>{escape(text)}</option>'
        for value, text in options.items()
    )
    return f'<label>{label}<select name="{name}">{listed}</select></label>'


def _kernels(lines: Sequence[KernelLine], wanted: Wanted) -> Iterable[str]:
    if not lines:
        yield paragraph("No kernel fits: leave out a word, or choose another device.", "none")
        return
    beside = bool(wanted.other or wanted.other_version)
    header = ["kernel", "variant", "sizes", "time", "spread", "flags", *(["beside", "ratio"] if beside else [])]
    rows = []
    for line in lines[:MOST_LINES]:
        row = [line.kernel, line.variant, line.sizes, *_time(line)]
        if beside:
            row += [seconds(line.second.seconds) if line.second else "-", f"{line.ratio:.3g}" if line.ratio else "-"]
        rows.append(row)
    if beside:
        ratios = sorted(line.ratio for line in lines if line.ratio)
        if ratios:
            mean = math.exp(math.fsum(map(math.log, ratios)) / len(ratios))
            yield paragraph(
                f"{len(ratios)} kernels have both times: the second is {mean:.3g} times the first (geometric mean), "
                f"from {ratios[0]:.3g} to {ratios[-1]:.3g}."
            )
    yield table(header, rows, texts=(0, 1, 2, 5))
    if len(lines) > MOST_LINES:
        yield paragraph(f"{len(lines) - MOST_LINES} more are not listed; choose by words.", "none")


def _time(line: KernelLine) -> list[str]:
    if line.first is None:
        return ["-", "", ""]
    kept = sorted(line.first.trials[line.first.dropped :] or line.first.trials)
    middle = kept[len(kept) // 2]
    spread = percent((kept[-1] - kept[0]) / middle) if middle > 0 else ""
    return [seconds(line.first.seconds), spread, ", ".join(line.first.flags)]


def _calibration(view: StoreView, name: str) -> str:
    try:
        (model,) = reported([str(view.path.parent / name)])
    except (PerfmodelError, ValueError) as error:
        return section("Calibration", paragraph(str(error), "none"))
    rows = [row for row in model.rows if row.measured_s and row.predicted_s]
    facts = [("device", model.device_name), ("protocol", str(model.protocol.get("name", "")))]
    lines = model.calibration.parameter_lines() if model.calibration else []
    worst = sorted(rows, key=lambda row: -abs(_residual(row)))[:20]
    listed = [
        [
            row.kernel,
            row.variant,
            sizes_text(row.sizes),
            seconds(row.measured_s),
            seconds(row.predicted_s),
            _signed(row),
        ]
        for row in worst
    ]
    header = ["kernel", "variant", "sizes", "measured", "predicted", "off by"]
    return section(
        f"Calibration {name}",
        described(facts),
        details("Parameters", "".join(paragraph(line) for line in lines)),
        f"<figure>{_residual_plot(rows)}<figcaption>Predicted over measured time of each kernel that the calibration "
        "was fitted to, on logarithmic axes; marks in red are off by over 30 %.</figcaption>"
        "</figure>",
        details(f"The largest of {len(rows)} residuals", table(header, listed, texts=(0, 1, 2))),
    )


def _residual(row: Row) -> float:
    return math.log((row.predicted_s or 1.0) / (row.measured_s or 1.0))


def _signed(row: Row) -> str:
    return f"{math.expm1(_residual(row)):+.1%}"


def _residual_plot(rows: Sequence[Row]) -> str:
    """Returns marks of predicted over measured time against the measured one."""
    if not rows:
        return ""
    times = [math.log10(row.measured_s or 1.0) for row in rows]
    low, high = min(times), max(times)
    most = max(0.3, *(abs(_residual(row)) for row in rows))
    marks = []
    for row, time in zip(rows, times, strict=True):
        x = EDGE + (time - low) / ((high - low) or 1.0) * (WIDTH - 2 * EDGE)
        y = HEIGHT / 2 - _residual(row) / most * (HEIGHT / 2 - EDGE)
        far = ' class="far"' if abs(math.expm1(_residual(row))) > 0.3 else ""
        title = escape(f"{row.kernel} {row.variant} {sizes_text(row.sizes)}: {_signed(row)}")
        marks.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4"{far}><title>{title}</title></circle>')
    middle = HEIGHT / 2
    return (
        f'<svg class="residuals" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="residuals">'
        f'<line class="equal" x1="{EDGE}" x2="{WIDTH - EDGE}" y1="{middle}" y2="{middle}"/>{"".join(marks)}'
        f'<text x="{EDGE}" y="{HEIGHT - 6}">{seconds(10**low)}</text>'
        f'<text x="{WIDTH - EDGE}" y="{HEIGHT - 6}" text-anchor="end">{seconds(10**high)}</text>'
        f'<text x="{EDGE}" y="18">{math.expm1(most):+.0%}</text></svg>'
    )
