"""Holds what became of a campaign: times, failures with their reasons, and what was not reached."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from perfmodel.basics.brief import brief, number_of
from perfmodel.device import Device
from perfmodel.measuring.campaign.plan import kernels

FAILED = "failed"
NOT_REACHED = "not reached within the budget"
"""The flag of a kernel that was neither in the store nor measured before the budget was spent."""
NOT_HERE = "not in the store, and its device is not on this machine"
"""The flag of a kernel whose time only the store could have had."""
STOPPED = "not reached, as measuring on its device was stopped"
LOST = "not measured, as the machines that tried were lost"
UNMEASURED = frozenset({NOT_REACHED, NOT_HERE, STOPPED, LOST})
"""Flags of kernels that have neither a time nor a failure; measuring again goes on with them."""
SHOWN_REASONS = 20


class Result(NamedTuple):
    """A kernel's time in seconds, NaN where there is none; what is doubtful of it; its key in the store."""

    seconds: float
    flags: tuple[str, ...]
    key: str


@dataclass(frozen=True)
class DeviceResult:
    """Holds what became of a campaign's kernels on one device.

    Attributes:
        results: a result a kernel, in the order of the kernels.
        labels: the kernels, for people.
        new: how many were measured now.
        known: how many the store had, failures included.
        stopped: why measuring was given up; empty if it was not.
    """

    device: Device
    results: tuple[Result, ...]
    labels: tuple[str, ...]
    new: int
    known: int
    stopped: str = ""

    @property
    def failures(self) -> dict[str, str]:
        """The reason for each kernel that failed, now or when the store was filled."""
        return {
            label: flag[len(FAILED) + 2 :]
            for label, result in zip(self.labels, self.results, strict=True)
            for flag in result.flags
            if flag.startswith(FAILED)
        }

    @property
    def unmeasured(self) -> int:
        return sum(bool(UNMEASURED & set(result.flags)) for result in self.results)

    @property
    def doubtful(self) -> dict[str, int]:
        """Returns the number of measured kernels that carry each flag."""
        counts: dict[str, int] = {}
        for result in self.results:
            if result.seconds > 0:
                for flag in result.flags:
                    counts[flag] = counts.get(flag, 0) + 1
        return counts

    def __repr__(self) -> str:
        found = f"{self.new} measured, {self.known} known, {len(self.failures)} failed"
        return brief(self, self.device.name, number_of(len(self.results), "kernel"), found)


@dataclass(frozen=True)
class CampaignResult:
    """Holds what became of a campaign; its text is a summary.

    Attributes:
        seconds: that it took.
    """

    devices: Sequence[DeviceResult]
    seconds: float

    @property
    def is_complete(self) -> bool:
        """True if every kernel has a time or a reason why it has none."""
        return not any(each.unmeasured for each in self.devices)

    def as_json(self) -> dict[str, Any]:
        """Returns the result as values that JSON can hold."""
        return {
            "seconds": self.seconds,
            "complete": self.is_complete,
            "devices": [
                {
                    "device": each.device.key,
                    "kernels": len(each.results),
                    "measured": each.new,
                    "known": each.known,
                    "unmeasured": each.unmeasured,
                    "doubtful": each.doubtful,
                    "failed": each.failures,
                    "stopped": each.stopped,
                }
                for each in self.devices
            ],
        }

    def __repr__(self) -> str:
        keys = ", ".join(each.device.key for each in self.devices)
        kernels = sum(len(each.results) for each in self.devices)
        state = "complete" if self.is_complete else "not complete"
        return brief(self, number_of(kernels, "result"), state, f"{self.seconds:.3g} s", f"on {keys}")

    def __str__(self) -> str:
        return "\n".join(line for each in self.devices for line in _lines(each))


def _lines(of: DeviceResult) -> list[str]:
    failures, doubtful = of.failures, of.doubtful
    parts = [f"{of.new} measured", f"{of.known} known from the store"]
    parts += [f"{len(failures)} failed"] if failures else []
    parts += [f"{of.unmeasured} not measured"] if of.unmeasured else []
    lines = [f"{of.device.key}: {kernels(len(of.results))}: {', '.join(parts)}"]
    if doubtful:
        lines.append("  doubtful: " + ", ".join(f"{count} {flag}" for flag, count in sorted(doubtful.items())))
    for reason, labels in list(grouped(failures).items())[:SHOWN_REASONS]:
        others = f" and {len(labels) - 1} more like it" if len(labels) > 1 else ""
        lines.append(f"  failed: {labels[0]}{others}: {reason}")
    if of.stopped:
        lines.append(f"  stopped: {of.stopped}")
    return lines


def grouped(failures: Mapping[str, str]) -> dict[str, list[str]]:
    """Groups kernels by reason; reasons that differ in names and numbers only are one. The most frequent comes
    first."""
    groups: dict[str, tuple[str, list[str]]] = {}
    for label, reason in failures.items():
        form = re.sub(r"\d+(\.\d+)?", "", re.sub(r"'[^']*'", "", reason.splitlines()[0]))
        groups.setdefault(form, (reason, []))[1].append(label)
    return dict(sorted(groups.values(), key=lambda group: -len(group[1])))
