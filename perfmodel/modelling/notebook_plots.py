"""Draws calibrations, explanations and comparisons on anyone's matplotlib axes."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from perfmodel.modelling.rows import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes


LINE = 80
LEAST_LABELLED = 0.06
"""A part of a bar that is smaller than this has no room for its share."""


def fitted(rows: Sequence[Row], ax: Axes | None = None) -> Axes:
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


class CostBar(NamedTuple):
    """One bar: a cost, the seconds that it takes by itself, and those that it adds to the time."""

    name: str
    alone: float
    added: float


def costs(title: str, seconds: float, shown: Sequence[CostBar], ax: Axes | None = None) -> Axes:
    """Draws a bar a cost: what it adds to the time, beside what it takes by itself, in seconds."""
    ax = _axes(ax, 1.6 + 0.35 * len(shown))
    places = range(len(shown))
    ax.barh(places, [cost.alone for cost in shown], color="0.85", label="by itself")
    bars = ax.barh(places, [cost.added for cost in shown], height=0.5, label="adds to the time")
    ax.bar_label(bars, [f" {cost.added / (seconds or 1.0):.0%}" for cost in shown])
    ax.set_yticks(places, [cost.name for cost in shown])
    return _finished(ax, f"{title}: {seconds:.3g} s")


def comparison(
    titles: Sequence[str],
    totals: tuple[float, float],
    costs: Mapping[str, tuple[float, float]],
    ratio: float,
    ax: Axes | None = None,
) -> Axes:
    """Draws two stacked bars: what each cost adds to the two times, in seconds."""
    ax = _axes(ax, 3.0)
    words = [title.split() for title in titles]
    shared = [word for word in words[0] if word in words[1]]
    own = [[word for word in each if word not in shared] for each in words]
    left = [0.0, 0.0]
    for name, added in costs.items():
        bars = ax.barh([0, 1], added, left=left, label=name)
        shares = [seconds / total if total else 0.0 for seconds, total in zip(added, totals, strict=True)]
        ax.bar_label(bars, [f"{share:.0%}" if share >= LEAST_LABELLED else "" for share in shares], label_type="center")
        left = [so_far + seconds for so_far, seconds in zip(left, added, strict=True)]
    names = ["\n".join(each) or which for each, which in zip(own, ("first", "second"), strict=True)]
    ax.set_yticks([0, 1], names)
    return _finished(ax, f"{' '.join(shared)}: {ratio:.3g} times as long")


def _finished(ax: Axes, title: str) -> Axes:
    from matplotlib.ticker import EngFormatter  # slow to import

    ax.invert_yaxis()
    ax.xaxis.set_major_formatter(EngFormatter("s"))
    ax.margins(x=0.1)
    ax.set_title("\n".join(textwrap.wrap(title, LINE)), fontsize="medium")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=6, fontsize="small", frameon=False)
    return ax


def _axes(ax: Axes | None, height: float) -> Axes:
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt  # slow to import

    return plt.subplots(figsize=(8, height), layout="constrained")[1]
