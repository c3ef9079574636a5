"""A plan says what a campaign would do: how many kernels, for how long, and in how much memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from perfmodel.basics.brief import brief
from perfmodel.basics.json_values import plain
from perfmodel.basics.tables import memory
from perfmodel.device import Device


@dataclass(frozen=True)
class DeviceShare:
    """A campaign's work on one device.

    Attributes:
        kernels: in all, each once.
        known: with a time in the store.
        failed: that failed before and are not tried again.
        missing: to be measured.
        seconds: that measuring these will take; None where nothing tells.
        like: how many of the missing ones are of families that were measured on the device before.
        largest_bytes: of the arrays of the largest of them.
        largest: its label.
        impossible: for those of the missing that can't be launched at all, why.
    """

    device: Device
    kernels: int
    known: int
    failed: int
    missing: int
    seconds: float | None
    like: int
    largest_bytes: int
    largest: str
    impossible: dict[str, str]


@dataclass(frozen=True)
class Plan:
    """The shares of all devices; its text is for people."""

    shares: Sequence[DeviceShare]

    @property
    def missing(self) -> int:
        return sum(share.missing for share in self.shares)

    def as_json(self) -> dict[str, Any]:
        """Returns the shares of all devices, as values that JSON can hold."""
        return {"devices": [plain(asdict(share) | {"device": share.device.key}) for share in self.shares]}

    def __repr__(self) -> str:
        return brief(self, f"{self.missing:,} to measure", f"on {', '.join(share.device.key for share in self.shares)}")

    def __str__(self) -> str:
        return "\n".join(line for share in self.shares for line in _lines(share))


def _lines(share: DeviceShare) -> list[str]:
    counts = [f"{share.known} known from the store", f"{share.missing} to measure"]
    counts += [f"{share.failed} failed before"] if share.failed else []
    lines = [f"{share.device.key}: {kernels(share.kernels)}: {', '.join(counts)}"]
    if not share.missing:
        return lines
    if share.seconds is None:
        lines.append("  time: not known, as nothing was measured on this device before")
    else:
        basis = (
            "from the times of their families"
            if share.like == share.missing
            else f"{share.like} of them from the times of their families, the others from those of all"
        )
        lines.append(f"  time: about {duration(share.seconds)}, {basis}")
    available = memory(share.device.global_memory)
    lines.append(f"  memory: up to {memory(share.largest_bytes)} of {available}, for {share.largest}")
    lines += [f"  impossible: {label}: {reason}" for label, reason in list(share.impossible.items())[:5]]
    if len(share.impossible) > 5:
        lines.append(f"  impossible: {len(share.impossible) - 5} more")
    return lines


def kernels(count: int) -> str:
    return f"{count} kernel{'s' * (count != 1)}"


def duration(seconds: float) -> str:
    """Returns seconds as people say them: ``40 s``, ``3 min``, ``2 h 10 min``."""
    if seconds < 99.5:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"
