"""Reads what else a machine does, as Linux tells everybody: other processes, other virtual machines, quotas."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from perfmodel.measuring.doctor.diagnosis import Finding, Quantity

QUIET_S = 1.0
"""Seconds for which the machine is looked at while this process sleeps."""
OTHERS = 0.05
"""The part of all cores that others may use: a kernel that wants all of them takes that much longer."""
STOLEN = 0.02
"""The part of all cores that the host of a virtual machine may take, or a quota: about what the best models err by."""
_BUSY = ("user", "nice", "system", "irq", "softirq")
_FIELDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")


@dataclass(frozen=True)
class _Reading:
    """Holds the ticks of all cores by what they did, the seconds of this process, and those for which a quota stopped
    it."""

    ticks: dict[str, int]
    own_s: float
    throttled_s: float | None
    clock_s: float

    def part(self, earlier: _Reading, *kinds: str) -> float:
        """Returns the part that these kinds have of all ticks since an earlier reading."""
        passed = {field: self.ticks[field] - earlier.ticks[field] for field in _FIELDS}
        return sum(passed[kind] for kind in kinds) / max(1, sum(passed.values()))

    def throttled_part(self, earlier: _Reading) -> float | None:
        """Returns the part of the time since then for which a quota stopped the process, each core's counted; None if
        not told."""
        if self.throttled_s is None or earlier.throttled_s is None:
            return None
        return (self.throttled_s - earlier.throttled_s) / (self.clock_s - earlier.clock_s)


class MachineLoad:
    """Watches the processor that a CPU device runs on."""

    def __init__(
        self,
        root: Path = Path("/"),
        sleep: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._root = root
        self._sleep = sleep
        self._now = now
        self._readings: list[_Reading] = []
        self._waiting: float | None = None

    def before(self) -> None:
        self._waiting = _load_average(self._root)
        self._read()
        if self._readings:
            self._sleep(QUIET_S)
            self._read()

    def under_load(self, keep_busy: Callable[[], None]) -> None:
        self._read()

    def finding(self) -> Finding | None:
        if len(self._readings) < 3:
            return None
        first, quiet, worked = self._readings
        cores = os.cpu_count() or 1
        own = (quiet.own_s - first.own_s) / (quiet.clock_s - first.clock_s) / cores
        others = max(0.0, quiet.part(first, *_BUSY) - own)
        stolen = worked.part(first, "steal")
        throttled = worked.throttled_part(first)
        measured = (
            Quantity("other processes", others, "part"),
            Quantity("stolen", stolen, "part"),
            Quantity("throttled", throttled, "part"),
            Quantity("load", self._waiting),
            Quantity("cores", cores),
        )
        wrong: dict[str, str] = {}
        if others > OTHERS:
            wrong[f"other processes use {100 * others:.0f} % of the cores"] = "end them"
        if stolen > STOLEN:
            wrong[f"the host gives {100 * stolen:.0f} % of the cores to other machines"] = "measure at another time"
        if throttled is not None and throttled > STOLEN:
            wrong[f"a quota stops this process for {100 * throttled:.0f} % of the time"] = "raise the quota"
        if self._waiting is not None and self._waiting > cores:
            wrong[f"{self._waiting:g} processes wanted {cores} cores in the last minute"] = "wait a minute"
        return Finding.doubtful("machine load", measured, wrong)

    def _read(self) -> None:
        try:
            words = (self._root / "proc/stat").read_text().split("\n", 1)[0].split()[1:]
            ticks = dict(zip(_FIELDS, map(int, words[: len(_FIELDS)]), strict=True))
        except (OSError, ValueError):
            return
        used = os.times()
        own_s = used.user + used.system + used.children_user + used.children_system
        self._readings.append(_Reading(ticks, own_s, _throttled(self._root), self._now()))


def _load_average(root: Path) -> float | None:
    """Returns how many processes wanted to run, on average over the last minute."""
    try:
        return float((root / "proc/loadavg").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return None


def _throttled(root: Path) -> float | None:
    """Returns the seconds for which quotas stopped this process's control group, or one above it; None if not told."""
    try:
        lines = (root / "proc/self/cgroup").read_text().split()
    except OSError:
        return None
    groups = {controllers: path for _, controllers, path in (line.split(":", 2) for line in lines)}
    mounted = root / "sys/fs/cgroup"
    told = None
    # Version 2 has one tree of groups; version 1 has one for each controller, with times in nanoseconds.
    of_cpu = next((path for controllers, path in groups.items() if "cpu" in controllers.split(",")), None)
    for folder, path in ((mounted, groups.get("")), (mounted / "cpu", of_cpu)):
        for group in _upwards(path) if path is not None else ():
            for name, scale in (("throttled_usec", 1e-6), ("throttled_time", 1e-9)):
                if (value := _entry(folder / group / "cpu.stat", name)) is not None:
                    told = (told or 0.0) + value * scale
    return told


def _upwards(path: str) -> list[Path]:
    """Returns a group's path and all above it, relative to where groups are mounted."""
    group = Path(path.lstrip("/"))
    return [group, *group.parents] if group != Path() else [group]


def _entry(file: Path, name: str) -> int | None:
    try:
        return int(dict(line.split() for line in file.read_text().splitlines())[name])
    except (OSError, KeyError, ValueError):
        return None
