"""Plots what emulation costs (Panwar et al., Figures 6 and 7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from perfmodel.report.plots import png

Costs = Sequence[tuple[int, float, float]]


def emulation_over_size(costs: Mapping[str, Costs]) -> bytes:
    """Plots seconds of emulating one work-group and all of them over the size, a panel for each application, as a
    PNG."""
    figure, axes = _panels(len(costs))
    for axis, (name, points) in zip(axes, costs.items(), strict=True):
        sizes = [size for size, _, _ in points]
        axis.plot(
            sizes, [whole for _, _, whole in points], "s-", color="tab:red", label="all work-groups (from a sample)"
        )
        axis.plot(sizes, [one for _, one, _ in points], "o-", color="tab:blue", label="one work-group")
        _finish(axis, name, sizes)
    return png(figure)


def emulation_over_device(name: str, costs: Costs, devices: Mapping[str, Sequence[tuple[int, float]]]) -> bytes:
    """Plots seconds of emulating one work-group beside those that devices take for the kernel, over the size, as a
    PNG."""
    figure, (axis,) = _panels(1)
    axis.plot([size for size, _, _ in costs], [one for _, one, _ in costs], "o-", label="emulating one work-group")
    for (device, points), mark in zip(devices.items(), "s^vDP*X" * len(devices), strict=False):
        axis.plot([size for size, _ in points], [time for _, time in points], f"{mark}--", label=device)
    _finish(axis, name, [size for size, _, _ in costs])
    return png(figure)


def _panels(count: int) -> tuple[Any, Any]:
    from matplotlib.figure import Figure  # slow to import

    figure = Figure(figsize=(5.6 * max(count, 1), 4.2), layout="constrained")
    return figure, list(figure.subplots(1, max(count, 1), squeeze=False)[0])[:count]


def _finish(axis: Any, name: str, sizes: Sequence[int]) -> None:
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    axis.set_xticks(sorted(sizes), [_short(size) for size in sorted(sizes)], minor=False, fontsize=8)
    axis.minorticks_off()
    axis.set_xlabel("size")
    axis.set_ylabel("seconds")
    axis.set_title(name)
    axis.grid(alpha=0.3)
    axis.legend(fontsize=8)


def _short(size: int) -> str:
    power = size.bit_length() - 1
    return f"$2^{{{power}}}$" if size == 1 << power and power >= 12 else str(size)
