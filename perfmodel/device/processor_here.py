"""Finds out what this machine's processor is, from what Linux tells of it and what is known of its architecture."""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import NamedTuple

from perfmodel.device.clock import clock_here
from perfmodel.device.cpuid import Identified, identified
from perfmodel.device.cpuinfo import DESCRIPTION, name_here, told_here
from perfmodel.device.device import slug
from perfmodel.device.facts import DeviceFacts, architectures, facts_called, known_devices, new_device
from perfmodel.device.processor import CACHES, MOST_KEPT, SYSTEM, cache_sizes

LINES = ("epyc", "ryzen", "xeon", "core")
"""Words by which makers tell processors of servers from those of desks."""
LEVELS = {1: "l1_bytes", 2: "l2_bytes"}
"""The facts that are the sizes of a core's own caches."""


class _Told(NamedTuple):
    """Linux tells this of the processors that count; ``clock`` is in Hz, 0 where it is not told."""

    name: str
    identity: Identified
    processors: int
    cores: int
    clock: float


def facts_here(
    description: Path = DESCRIPTION, system: Path = SYSTEM, usable: Collection[int] | None = None
) -> DeviceFacts | None:
    """Returns the facts of this machine's processor; None where the system does not tell its architecture.

    What the system tells has the source ``driver``: cores, caches, the clock that it may reach. A clock that it does
    not tell of this machine itself is found out (`perfmodel.device.clock`). All else is the known processor's of that
    name or, where there is none, its architecture's, with guesses of the device's own facts.

    Args:
        description: of the processors, as Linux gives it.
        system: the folder of devices, as Linux gives it.
        usable: the numbers of the processors that count; those that this process may use where left out.
    """
    fast = _numbers(system / "cpu_core" / "cpus")  # where there are two kinds of cores
    allowed = set(_usable() if usable is None else usable)
    told = _told(description, allowed & fast or allowed)
    if told is None:
        return None
    known = facts_called(told.name)
    if known is None or known.architecture != told.identity.architecture:
        known = _usual(told)
    here = replace(known, key=slug(told.name), name=told.name)
    here = here.with_facts("driver", units=told.cores, **_caches(system / CACHES, told.processors))
    if "clock" not in here.guessed():
        return here
    if reached := _most_hertz(system / "system" / "cpu" / "cpu0" / "cpufreq" / "cpuinfo_max_freq"):
        return here.with_facts("driver", clock=reached)
    found = clock_here() if description == DESCRIPTION else 0.0
    return here.with_facts("microbenchmark", clock=found) if found else here


def facts_called_here(name: str) -> DeviceFacts | None:
    """Returns the facts of this machine's processor, if that is its name or its key; see `facts_here`."""
    here, wanted = name_here(), name.lower()
    is_it = here and (wanted == here.lower() or re.fullmatch(rf"{re.escape(slug(here))}(-[0-9a-f]{{6}})?", wanted))
    return facts_here() if is_it else None


def facts_here_or_known(name: str) -> DeviceFacts | None:
    """Returns the facts of this machine's processor, if it is called so, or else of a device that comes along."""
    return facts_called_here(name) or facts_called(name)


def _usual(told: _Told) -> DeviceFacts:
    """Returns what is usual of a processor that is not known by its name; what only a name tells is guessed.

    The clock is the median of the known ones of its line, memory's bandwidth the least of theirs: a desktop's of any
    number of cores has the same channels, and a part of a server draws what its cores can.
    """
    of_architecture = [each for each in known_devices() if each.architecture == told.identity.architecture]
    line = next((word for word in LINES if word in told.name.lower()), "")
    alike = [each for each in of_architecture if line in each.name.lower()] or of_architecture
    own = {
        "units": told.cores,
        "clock": max(told.clock, median(each["clock"] for each in alike)),
        "dram_bandwidth": min(each["dram_bandwidth"] for each in alike),
        "l3_bytes": min(MOST_KEPT, told.cores * min(each["l3_bytes"] // each["units"] for each in alike)),
    }
    usual = new_device(told.name, told.identity.architecture, **own)
    guessed = usual.facts if told.identity.is_guess else own
    return usual.with_facts("guess", **{name: usual[name] for name in guessed})


def _told(description: Path, usable: Collection[int]) -> _Told | None:
    """Returns what Linux tells of the processors of these numbers; None where it tells no architecture."""
    entries = [each for each in told_here(description) if _number(each.get("processor")) in usable]
    if not entries:
        return None
    first = entries[0]
    family, model = _number(first.get("cpu family")), _number(first.get("model"))
    if family is None or model is None:
        return None
    identity = identified(first.get("vendor_id", ""), family, model, set(first.get("flags", "").split()))
    if identity is None:
        return None
    cores = {tuple(each.get(name, each["processor"]) for name in ("physical id", "core id")) for each in entries}
    clocks = [1e6 * float(each["cpu MHz"]) for each in entries if re.fullmatch(r"\d+\.?\d*", each.get("cpu MHz", ""))]
    return _Told(
        name=first.get("model name") or architectures()[identity.architecture],
        identity=identity,
        processors=len(entries),
        cores=len(cores),
        clock=max(clocks, default=0.0),
    )


def _caches(folder: Path, processors: int) -> dict[str, float]:
    """Returns the facts that are sizes of caches: of the one that cores share, what all of these processors have."""
    sizes = cache_sizes(folder)
    found: dict[str, float] = {name: sizes[level] for level, name in LEVELS.items() if level in sizes}
    if 3 in sizes:
        sharing = len(_numbers(folder / "index3" / "shared_cpu_list")) or processors
        found["l3_bytes"] = min(MOST_KEPT, sizes[3] * -(-processors // sharing))
    return found


def _numbers(file: Path) -> set[int]:
    """Returns the numbers of a list as Linux writes them, ``0-3,8``; none where there is no such file."""
    try:
        found = re.findall(r"(\d+)(?:-(\d+))?", file.read_text())
    except OSError:
        return set()
    return {number for first, last in found for number in range(int(first), int(last or first) + 1)}


def _most_hertz(file: Path) -> float:
    """Returns the clock that a processor may reach, in Hz; 0 where nobody says."""
    try:
        return 1e3 * (_number(file.read_text().strip()) or 0)
    except OSError:
        return 0.0


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() else None


def _usable() -> Collection[int]:
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
