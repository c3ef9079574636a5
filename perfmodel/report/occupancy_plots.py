"""Draws occupancy over block size, registers and shared memory (Karan Kumar, Figures 3 to 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perfmodel.device.occupancy import GROUPS, LOCAL, REGISTERS, WARPS, Occupancy, OccupancyLimits, blocks_at
from perfmodel.report.plots import png

POINTS = 512
"""So many points, at most, has a curve over bytes."""


@dataclass(frozen=True)
class Curve:
    """Active warps of a multiprocessor as one number of a launch varies and the others stay.

    Attributes:
        name: of the number, as `occupancy` has it.
        label: of the axis.
        values, warps: the number, and active warps there; 0 where nothing can be launched.
        here: the launch's own number.
    """

    name: str
    label: str
    values: tuple[int, ...]
    warps: tuple[int, ...]
    here: int


def curves(found: Occupancy) -> list[Curve]:
    """Returns curves over block size in whole warps, registers of a thread, and shared memory of a block up to its
    limit."""
    limits = found.device
    word, wave = limits.word, limits.wave_sizes[0]
    step = -(-limits.local_bytes_per_group // POINTS // limits.local_unit) * limits.local_unit or limits.local_unit
    ranges: Mapping[str, tuple[str, Sequence[int]]] = {
        "block": (f"threads of a {word(GROUPS)[:-1]}", range(wave, limits.items_per_group + 1, wave)),
        "registers": (f"{word(REGISTERS)} of a thread", range(1, limits.registers_per_item + 1)),
        "shared": (
            f"bytes of {word(LOCAL)} of a {word(GROUPS)[:-1]}",
            range(0, limits.local_bytes_per_group + 1, step),
        ),
    }
    return [
        Curve(
            name=name,
            label=label,
            values=tuple(values),
            warps=tuple(_warps(found, name, value) for value in values),
            here=getattr(found, name),
        )
        for name, (label, values) in ranges.items()
    ]


def _warps(found: Occupancy, name: str, value: int) -> int:
    numbers: dict[str, int] = {
        each: getattr(found, each) for each in ("block", "registers", "shared", "scalar_registers")
    }
    numbers[name] = value
    return blocks_at(found.device, **numbers) * -(-numbers["block"] // found.device.wave_sizes[0])


def plotted(curve: Curve, found: Occupancy) -> bytes:
    """Draws one curve with the launch marked.

    Returns:
        A PNG file.
    """
    from matplotlib.figure import Figure  # slow to import

    limits = found.device
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axis = figure.subplots()
    if curve.name == "block":
        axis.plot(curve.values, curve.warps, "-", color="0.8", lw=0.8)
        axis.plot(curve.values, curve.warps, "o", color="C0", ms=4)
    else:
        axis.step(curve.values, curve.warps, where="pre", color="C0", lw=1.4)
    axis.plot([curve.here], [found.warps], "D", color="C3", ms=7, mec="white", mew=0.8, zorder=3)
    _annotate(axis, curve, found)
    axis.set(xlabel=curve.label, ylabel=f"active {limits.word(WARPS)}", ylim=(0, limits.waves * 1.12))
    axis.set_xlim(0, curve.values[-1] * 1.02)
    _ticks(axis, curve, limits)
    axis.grid(alpha=0.25, lw=0.5)
    parts = axis.twinx()
    parts.set(ylabel="occupancy (%)", ylim=(0, 112), yticks=range(0, 101, 25))
    axis.set_title(_title(curve, found), fontsize=10)
    return png(figure, dpi=120)


def _annotate(axis: Any, curve: Curve, found: Occupancy) -> None:
    """Annotates the mark, below it among points, above it on a line that falls to the right."""
    is_right = curve.here > curve.values[-1] * 0.6
    above = 8 if curve.name != "block" else -18
    axis.annotate(
        f"{curve.here}: {found.warps} of {found.device.waves}",
        (curve.here, found.warps),
        xytext=(-6 if is_right else 6, above),
        textcoords="offset points",
        ha="right" if is_right else "left",
        fontsize=9,
        color="C3",
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1},
    )


def _ticks(axis: Any, curve: Curve, limits: OccupancyLimits) -> None:
    axis.set_yticks(range(0, limits.waves + 1, max(1, limits.waves // 8)))
    last = curve.values[-1]
    if curve.name == "shared":
        step = next(kib for kib in (8, 16, 32, 64) if last / kib / 1024 <= 9) * 1024
        axis.set_xticks(range(0, last + 1, step), [f"{value // 1024} KiB" for value in range(0, last + 1, step)])
        axis.set_xlabel(curve.label.removeprefix("bytes of "))
    else:
        axis.set_xticks(range(0, last + 2, 128 if curve.name == "block" else 32 if last < 300 else 64))


def _title(curve: Curve, found: Occupancy) -> str:
    others = {
        "block": f"{found.block} threads",
        "registers": f"{found.registers} registers",
        "shared": f"{found.shared} bytes",
    }
    kept = ", ".join(text for name, text in others.items() if name != curve.name)
    return f"{found.device.name}: {kept}"
