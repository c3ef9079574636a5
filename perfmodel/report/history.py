"""Shows how well a calibration predicted the same kernels from one version to the next, as text and as HTML."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from html import escape
from typing import Any

from perfmodel.basics.tables import grid, percent, wrapped
from perfmodel.measuring.store import StoredEvaluation
from perfmodel.measuring.store.evaluations import by_series
from perfmodel.report.html_parts import details, paragraph, section, table

HEADER = ["date", "version", "calibration", "kernels", "error", "maximum", "limit", "verdict"]
SHOWN = 50
"""The latest so many of a series are listed."""
BARS = "▁▂▃▄▅▆▇█"
WIDTH, HEIGHT, EDGE = 640, 200, 34


def as_text(evaluations: Sequence[StoredEvaluation]) -> str:
    """Returns each series of evaluations: what is compared, a line of bars, and a table."""
    if not evaluations:
        return "no evaluations are kept here; perfmodel evaluate --fail-above keeps them"
    parts = []
    for series in by_series(evaluations).values():
        shown = series[-SHOWN:]
        more = [f"{len(series) - SHOWN} earlier ones are not listed"] if len(series) > SHOWN else []
        parts.append("\n\n".join([f"{wrapped(_title(series[-1]))}\n{bars(series)}", grid(HEADER, _rows(shown)), *more]))
    return "\n\n\n".join(parts)


def latest_as_text(series: Sequence[StoredEvaluation]) -> str:
    """Returns one line on a series that has just become longer."""
    *before, now = series
    if not before:
        return f"history: the first evaluation of these kernels, {percent(now.geometric_mean)}"
    since = before[0].created[:10]
    change = f"{percent(now.geometric_mean)} after {percent(before[-1].geometric_mean)}"
    return f"history: {change}; {len(series)} evaluations since {since}: {bars(series)}"


def bars(series: Sequence[StoredEvaluation]) -> str:
    """Returns a bar for each of the latest evaluations; the highest is the largest error."""
    errors = [each.geometric_mean for each in series[-SHOWN:]]
    top = max(errors) or 1.0
    return "".join(BARS[min(int(error / top * len(BARS)), len(BARS) - 1)] for error in errors)


def as_json(evaluations: Sequence[StoredEvaluation]) -> list[dict[str, Any]]:
    """Returns the evaluations as values that JSON can hold."""
    return [asdict(each) | {"fails": each.fails} for each in evaluations]


def as_html(evaluations: Sequence[StoredEvaluation]) -> str:
    """Returns a section of a page with a chart and a table of each series; empty without evaluations."""
    parts = []
    for series in by_series(evaluations).values():
        caption = (
            "Geometric mean of the errors of each evaluation, in the order of time; the dashed line is the limit, and "
            "marks in red are above it."
        )
        rows = details(f"Table of {len(series)} evaluations", table(HEADER, _rows(series), texts=(0, 1, 2, 7)))
        parts.append(
            f"{paragraph(_title(series[-1]))}<figure>{_plot(series)}<figcaption>{caption}</figcaption></figure>"
        )
        parts.append(rows)
    return section("Evaluations over time", *parts) if parts else ""


def _title(each: StoredEvaluation) -> str:
    return f"{each.calibration} on {each.device_name}: {each.kernels}"


def _rows(series: Sequence[StoredEvaluation]) -> list[list[str]]:
    return [
        [
            each.created[2:16].replace("T", " "),
            each.version,
            each.digest,
            str(each.count),
            percent(each.geometric_mean),
            percent(each.maximum),
            percent(each.limit),
            "above" if each.fails else "within",
        ]
        for each in series
    ]


def _plot(series: Sequence[StoredEvaluation]) -> str:
    """Returns a picture of the errors: one place an evaluation, as they are made in bursts."""
    top = 1.1 * max(*(each.geometric_mean for each in series), *(each.limit for each in series), 1e-9)
    step = (WIDTH - 2 * EDGE) / max(len(series) - 1, 1)

    def place(number: int, error: float) -> tuple[float, float]:
        return EDGE + number * step, HEIGHT - EDGE - error / top * (HEIGHT - 2 * EDGE)

    points = [place(number, each.geometric_mean) for number, each in enumerate(series)]
    limits = [place(number, each.limit) for number, each in enumerate(series)]
    marks = []
    for (x, y), each in zip(points, series, strict=True):
        said = f"{each.created[:16]}: {percent(each.geometric_mean)}, perfmodel {each.version}, {each.digest}"
        far = ' class="far"' if each.fails else ""
        marks.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4"{far}><title>{escape(said)}</title></circle>')
    first, last = series[0].created[:10], series[-1].created[:10]
    ticks = _ticks(top)
    return (
        f'<svg class="history" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="errors over time">'
        + "".join(
            f'<line class="tick" x1="{EDGE}" x2="{WIDTH - EDGE}" y1="{place(0, tick)[1]:.1f}" '
            f'y2="{place(0, tick)[1]:.1f}"/><text x="{EDGE - 4}" y="{place(0, tick)[1] + 4:.1f}" '
            f'text-anchor="end">{tick:.0%}</text>'
            for tick in ticks
        )
        + f'<polyline class="limit" points="{_joined(limits)}"/><polyline class="line" points="{_joined(points)}"/>'
        + "".join(marks)
        + f'<text x="{EDGE}" y="{HEIGHT - 8}">{first}</text>'
        + (f'<text x="{WIDTH - EDGE}" y="{HEIGHT - 8}" text-anchor="end">{last}</text>' if last != first else "")
        + "</svg>"
    )


def _ticks(top: float) -> list[float]:
    """Returns round errors below the top of a picture: no more than five, zero among them."""
    size = 10.0 ** math.floor(math.log10(top))
    step = next((part * size for part in (0.1, 0.2, 0.5, 1.0) if top / (part * size) <= 5), 2 * size)
    return [step * number for number in range(int(top / step) + 1)]


def _joined(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
