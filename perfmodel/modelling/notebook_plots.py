"""Draws calibrations, explanations and comparisons on anyone's matplotlib axes."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from perfmodel.modelling.calibration import CalibrationRow
    from perfmodel.modelling.explanation import Comparison, Explanation

LINE = 80
LEAST_LABELLED = 0.06
"""A part of a bar that is smaller than this has no room for its share."""


def fitted(rows: Sequence[CalibrationRow], ax: Axes | None = None) -> Axes:
    """Draws measured against fitted times in seconds, log-log, a mark a family; bands at 10 and 30 %."""
    ax = _axes(ax, 6.0)
    used = [(row.kernel, row.measured_s, row.predicted_s) for row in rows if row.measured_s and row.predicted_s]
    for kernel in dict.fromkeys(name for name, _, _ in used):
        points = [(measured, predicted) for name, measured, predicted in used if name == kernel]
        ax.plot(*zip(*points, strict=True), "o", markersize=4, label=kernel)
    times = [time for _, *both in used for time in both]
    ends = [min(times) / 1.5, max(times) * 1.5]
    for band, shade in ((0.3, "0.93"), (0.1, "0.86")):
        ax.fill_between(ends, [e * (1 - band) for e in ends], [e * (1 + band) for e in ends], color=shade, zorder=0)
    ax.plot(ends, ends, color="0.5", linewidth=0.8, zorder=1)
    ax.set(xscale="log", yscale="log", xlim=ends, ylim=ends, xlabel="measured, s", ylabel="fitted, s", aspect="equal")
    ax.legend(fontsize="small")
    return ax


def costs(explanation: Explanation, ax: Axes | None = None) -> Axes:
    """Draws a bar a cost: what it adds to the time, beside what it takes by itself, in seconds."""
    shown = explanation.notable
    ax = _axes(ax, 1.6 + 0.35 * len(shown))
    places = range(len(shown))
    ax.barh(places, [cost.seconds for cost in shown], color="0.85", label="by itself")
    adds = [cost.share * explanation.seconds for cost in shown]
    bars = ax.barh(places, adds, height=0.5, label="adds to the time")
    ax.bar_label(bars, [f" {cost.share:.0%}" for cost in shown])
    ax.set_yticks(places, [cost.name for cost in shown])
    return _finished(ax, f"{explanation.title}: {explanation.seconds:.3g} s")


def comparison(found: Comparison, ax: Axes | None = None) -> Axes:
    """Draws two stacked bars: what each cost adds to the two times, in seconds."""
    ax = _axes(ax, 3.0)
    titles = [each.title.split() for each in (found.first, found.second)]
    shared = [word for word in titles[0] if word in titles[1]]
    own = [[word for word in title if word not in shared] for title in titles]
    left = [0.0, 0.0]
    for each in found.notable:
        added = [each.first_s, each.second_s]
        bars = ax.barh([0, 1], added, left=left, label=each.name)
        totals = (found.first.seconds, found.second.seconds)
        shares = [seconds / total if total else 0.0 for seconds, total in zip(added, totals, strict=True)]
        ax.bar_label(bars, [f"{share:.0%}" if share >= LEAST_LABELLED else "" for share in shares], label_type="center")
        left = [so_far + seconds for so_far, seconds in zip(left, added, strict=True)]
    names = ["\n".join(words) or which for words, which in zip(own, ("first", "second"), strict=True)]
    ax.set_yticks([0, 1], names)
    return _finished(ax, f"{' '.join(shared)}: {found.ratio:.3g} times as long")


def _finished(ax: Axes, title: str) -> Axes:
    from matplotlib.ticker import EngFormatter

    ax.invert_yaxis()
    ax.xaxis.set_major_formatter(EngFormatter("s"))
    ax.margins(x=0.1)
    ax.set_title("\n".join(textwrap.wrap(title, LINE)), fontsize="medium")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=6, fontsize="small", frameon=False)
    return ax


def _axes(ax: Axes | None, height: float) -> Axes:
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(8, height), layout="constrained")[1]
