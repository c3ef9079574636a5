"""Reads a published space of configurations with its times, and says which kernel of ours stands for each row."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

import perfmodel as pm

Configuration = Mapping[str, int]


@dataclass(frozen=True)
class Space:
    """Says what the configurations of a published space are.

    Attributes:
        name: of the space.
        parameters: the columns that its configurations have, by which it is known.
        kernel: gives the kernel of a configuration.
        idle: gives a configuration with the values of parameters that do nothing in it made the same.
        is_other: tells configurations that were another program on a maker's devices than they say.
    """

    name: str
    parameters: frozenset[str]
    kernel: Callable[[Configuration], pm.Kernel]
    idle: Callable[[dict[str, int]], dict[str, int]]
    is_other: Callable[[str, Configuration], bool] = lambda vendor, configuration: False


@dataclass(frozen=True)
class Published:
    """Holds the configurations of a space and their times.

    Attributes:
        configurations: a row each, with whole numbers.
        seconds: the same rows; a column a device, NaN where there is no time of that program.
        devices: what is known of each device.
        programs: for each row the first row of the same program.
    """

    space: Space
    configurations: pd.DataFrame
    seconds: pd.DataFrame
    devices: dict[str, dict[str, Any]]
    programs: pd.Series

    def kernel(self, row: int) -> pm.Kernel:
        """Returns the kernel of a row's program."""
        return self.space.kernel(self.space.idle(self.configuration(row)))

    def configuration(self, row: int) -> dict[str, int]:
        return {str(name): int(value) for name, value in self.configurations.iloc[row].items()}

    @property
    def distinct(self) -> list[int]:
        """The first row of each program."""
        return sorted(set(self.programs.tolist()))


def load(folder: str | Path, spaces: Mapping[str, Space]) -> Published:
    """Reads a folder with ``configurations.csv.gz``, ``times.csv.gz`` and ``devices.json``."""
    folder = Path(folder)
    configurations = pd.read_csv(folder / "configurations.csv.gz")
    found = [space for space in spaces.values() if space.parameters == frozenset(configurations)]
    if not found:
        raise SystemExit(f"{folder} has no known space; its parameters are {', '.join(map(str, configurations))}")
    (space,) = found
    seconds = pd.read_csv(folder / "times.csv.gz", skip_blank_lines=False)
    devices = json.loads((folder / "devices.json").read_text())
    names = [str(name) for name in configurations]
    keys = [tuple(space.idle(_named(names, row)).values()) for row in configurations.itertuples(index=False)]
    first: dict[tuple[int, ...], int] = {}
    for name, device in devices.items():
        vendor = str(device.get("vendor", ""))
        others = [space.is_other(vendor, _named(names, row)) for row in configurations.itertuples(index=False)]
        seconds.loc[others, name] = float("nan")
    programs = pd.Series([first.setdefault(key, row) for row, key in enumerate(keys)])
    return Published(space=space, configurations=configurations, seconds=seconds, devices=devices, programs=programs)


def _named(names: Sequence[str], row: Iterable[Any]) -> dict[str, int]:
    return dict(zip(names, map(int, row), strict=True))
