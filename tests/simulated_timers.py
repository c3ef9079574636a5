"""Timers for measuring processes that run nothing: times follow from launches, and kernels' names ask for trouble.

Given to campaigns as ``tests.simulated_timers:steady``.
"""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

from perfmodel.basics.errors import KernelError
from perfmodel.device import Device
from perfmodel.kernels.launch import Launch
from perfmodel.measuring.isolation.child import Timer
from perfmodel.measuring.isolation.reference import NAME
from perfmodel.measuring.protocol import Protocol, Timing

SECONDS_VARIABLE = "SIMULATED_SECONDS"
"""Names the seconds of the host that each timing takes."""
BROKEN_VARIABLE = "SIMULATED_BROKEN"
"""Names a file; once it is there, not even the reference kernel runs."""

HANGING_VARIABLE = "SIMULATED_HANGING"
"""Names a file; once it is there, the driver hangs at its start."""
HANGS_VARIABLE = "SIMULATED_HANGS"
"""Names a file that is made when a kernel begins to hang."""

DONE_VARIABLE = "SIMULATED_DONE"
"""Names a file that gets a line for each launch that was timed: its first trial."""


def steady(device: Device) -> Timer:
    """Returns a timer that gives the same time for the same launch, whenever and wherever."""
    if Path(os.environ.get(HANGING_VARIABLE, "/nowhere")).exists():
        time.sleep(3600)

    def timer(launch: Launch, protocol: Protocol) -> Timing:
        time.sleep(float(os.environ.get(SECONDS_VARIABLE, "0")))
        if Path(os.environ.get(BROKEN_VARIABLE, "/nowhere")).exists():
            os.abort()
        if launch.kernel_name == NAME:
            return Timing((1e-3,) * 3, 0, "min")
        _trouble(launch)
        trials = expected(launch, protocol)
        if name := os.environ.get(DONE_VARIABLE):
            with Path(name).open("a", encoding="ascii") as file:
                file.write(f"{trials[0]!r}\n")
        return Timing(trials, protocol.dropped, protocol.statistic)

    return timer


def expected(launch: Launch, protocol: Protocol) -> tuple[float, ...]:
    """Returns what `steady` gives for a launch."""
    digest = hashlib.sha256(repr(launch).encode()).digest()
    base = 1e-3 + int.from_bytes(digest[:4], "big") / 2**32
    return tuple(base * (1 + trial / 1000) for trial in range(protocol.trials))


def _trouble(launch: Launch) -> None:
    match launch.kernel_name.split("_")[0]:
        case "hang":
            if name := os.environ.get(HANGS_VARIABLE):
                Path(name).touch()
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
