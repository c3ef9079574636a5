"""Timers for measuring processes that run nothing: times follow from launches, and kernels' names ask for trouble.

Given to campaigns as ``tests.simulated_timers:steady``.
"""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

from perfmodel.device import Device
from perfmodel.errors import KernelError
from perfmodel.isolation.child import Timer
from perfmodel.isolation.reference import NAME
from perfmodel.measurement import Launch, Protocol, Timing

SECONDS_VARIABLE = "SIMULATED_SECONDS"
"""How long each timing takes, in seconds of the host."""
BROKEN_VARIABLE = "SIMULATED_BROKEN"
"""Names a file; once it is there, not even the reference kernel runs."""


def steady(device: Device) -> Timer:
    """The same time for the same launch, whenever and wherever."""

    def timer(launch: Launch, protocol: Protocol) -> Timing:
        time.sleep(float(os.environ.get(SECONDS_VARIABLE, "0")))
        if Path(os.environ.get(BROKEN_VARIABLE, "/nowhere")).exists():
            os.abort()
        if launch.kernel_name == NAME:
            return Timing((1e-3,) * 3, 0, "min")
        _trouble(launch)
        return Timing(expected(launch, protocol), protocol.dropped, protocol.statistic)

    return timer


def expected(launch: Launch, protocol: Protocol) -> tuple[float, ...]:
    """What `steady` gives for a launch."""
    digest = hashlib.sha256(repr(launch).encode()).digest()
    base = 1e-3 + int.from_bytes(digest[:4], "big") / 2**32
    return tuple(base * (1 + trial / 1000) for trial in range(protocol.trials))


def _trouble(launch: Launch) -> None:
    match launch.kernel_name.split("_")[0]:
        case "hang":
            time.sleep(3600)
        case "abort":
            os.abort()
        case "leave":
            print("the driver has had enough", file=os.sys.stderr, flush=True)  # type: ignore[attr-defined]
            os._exit(7)
        case "refuse":
            raise KernelError(f"kernel {launch.kernel_name!r} is refused: ask for less")
        case "mistake":
            raise ZeroDivisionError("a mistake in a driver's binding")
        case "glutton":
            hoard = []
            while True:
                hoard.append(b"x" * 2**24)
                time.sleep(0.01)
