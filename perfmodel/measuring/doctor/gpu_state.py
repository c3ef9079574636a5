"""Asks NVIDIA's own tool, where it is there, for a GPU's other programs, its clocks, and what slows it."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from perfmodel.measuring.doctor.diagnosis import Finding, Quantity

Address: TypeAlias = tuple[int, int, int]
"""Domain, bus and device of the PCI address."""
Ask: TypeAlias = Callable[[Sequence[str]], str | None]
"""Runs nvidia-smi with arguments; None where that fails."""

BUSY = 0.1
"""The part of the last second in which other programs may keep the GPU busy before we give it work: a desktop needs
less."""
QUIET_S = 1.0
"""A program that has ended may show as work of the GPU for so many seconds."""
TIME_LIMIT_S = 10.0
# Bits of the reasons for a clock below the highest that mean that the GPU can't do better at the moment (nvml.h). The
# others are a clock that somebody set, which is good for times, and idleness.
REASONS = {
    0x4: "its power limit",
    0x8: "a hardware slowdown",
    0x20: "its temperature",
    0x40: "its temperature",
    0x80: "the power supply",
}
# What reasons are called changed with driver 535.
_REASON_FIELDS = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")
_FIELDS = ("pci.bus_id", "utilization.gpu", "clocks.sm", "clocks.max.sm")


@dataclass(frozen=True)
class _State:
    utilization: float | None
    clock_mhz: float | None
    highest_mhz: float | None
    reasons: int | None


class GpuState:
    """Watches the NVIDIA GPU at an address; without one, the only GPU, and none where there are several."""

    def __init__(
        self, address: Address | None, ask: Ask | None = None, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._address = address
        self._ask = ask or nvidia_smi
        self._sleep = sleep
        self._idle: _State | None = None
        self._loaded: _State | None = None
        self._others: int | None = None

    def before(self) -> None:
        self._idle = self._state()
        if self._idle and (self._idle.utilization or 0) > BUSY:
            self._sleep(QUIET_S)
            self._idle = self._state()
        self._others = self._other_programs() if self._idle else None

    def under_load(self, keep_busy: Callable[[], None]) -> None:
        if self._idle is None:
            return
        with ThreadPoolExecutor(1) as beside:  # clocks fall as soon as there is nothing to do
            state = beside.submit(self._state)
            while not state.done():
                keep_busy()
            self._loaded = state.result()

    def finding(self) -> Finding | None:
        idle, loaded = self._idle, self._loaded
        if idle is None or loaded is None:
            return None
        measured = (
            Quantity("busy before", idle.utilization, "part"),
            Quantity("other programs", self._others),
            Quantity("clock", loaded.clock_mhz, "MHz"),
            Quantity("of", loaded.highest_mhz, "MHz"),
        )
        slowed = dict.fromkeys(reason for bit, reason in REASONS.items() if (loaded.reasons or 0) & bit)
        wrong: dict[str, str] = {}
        if idle.utilization is not None and idle.utilization > BUSY:
            wrong[f"others kept it busy for {100 * idle.utilization:.0f} % of a second"] = "end their programs"
        if slowed:
            wrong[f"{' and '.join(slowed)} lowers its clock"] = "fix a lower clock"
        return Finding.doubtful("GPU state", measured, wrong)

    def _state(self) -> _State | None:
        for reasons in _REASON_FIELDS:
            told = self._ask([f"--query-gpu={','.join((*_FIELDS, reasons))}", "--format=csv,noheader,nounits"])
            if told is None:
                continue
            rows = [row for row in _rows(told) if len(row) == len(_FIELDS) + 1]
            row = self._row_of_gpu(rows)
            if row is None:
                return None
            busy, clock, highest = (_number(cell) for cell in row[1:4])
            return _State(None if busy is None else busy / 100, clock, highest, _bits(row[4]))
        return None

    def _row_of_gpu(self, rows: Sequence[list[str]]) -> list[str] | None:
        if self._address is None:
            return rows[0] if len(rows) == 1 else None
        return next((row for row in rows if _address(row[0]) == self._address), None)

    def _other_programs(self) -> int | None:
        told = self._ask(["--query-compute-apps=gpu_bus_id,pid", "--format=csv,noheader,nounits"])
        if told is None:
            return None
        rows = [row for row in _rows(told) if len(row) == 2]
        return sum((self._address in (None, _address(bus))) and not _is_ours(process) for bus, process in rows)


def nvidia_smi(arguments: Sequence[str]) -> str | None:
    """Returns what the tool prints; None where it is missing, fails, or hangs as it does when a driver is stuck."""
    try:
        done = subprocess.run(
            ["nvidia-smi", *arguments], capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def _rows(told: str) -> Iterable[list[str]]:
    return [[cell.strip() for cell in line.split(",")] for line in told.splitlines() if line.strip()]


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:  # "[N/A]"
        return None


def _bits(cell: str) -> int | None:
    try:
        return int(cell, 16)
    except ValueError:
        return None


def _address(bus_id: str) -> Address | None:
    """Returns the PCI address that a text such as ``00000000:0F:00.0`` names; None if it names none."""
    try:
        domain, bus, rest = bus_id.split(":")
        return int(domain, 16), int(bus, 16), int(rest.split(".")[0], 16)
    except ValueError:
        return None


def _is_ours(process: str) -> bool:
    """Returns True for this process, or one that it started to measure in."""
    try:
        parent = Path("/proc", process, "stat").read_text().rpartition(")")[2].split()[1]
    except (OSError, IndexError):
        parent = ""
    return str(os.getpid()) in (process, parent)
