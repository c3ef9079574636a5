"""Examines a device by what its kernels take, and by what can be seen around it meanwhile."""

from __future__ import annotations

import time as host
import typing
from collections.abc import Callable, Sequence

from perfmodel.basics.errors import MeasurementError
from perfmodel.device import Device
from perfmodel.measuring.doctor import event_clock
from perfmodel.measuring.doctor.clock_step import clock_step
from perfmodel.measuring.doctor.diagnosis import Diagnosis, Finding, Quantity, Severity, promised
from perfmodel.measuring.doctor.watch import watch
from perfmodel.measuring.doctor.workload import Now, Time, Workload

WATCH_S = 5.0
"""Seconds for which a device is watched: clocks of GPUs rise in less, and other programs' bursts come more often."""
_BUSY_S = 1e-2


class Witness(typing.Protocol):
    """Sees what surrounds a device without timing anything on it."""

    def before(self) -> None:
        """Looks at the surroundings while the device has nothing to do."""

    def under_load(self, keep_busy: Callable[[], None]) -> None:
        """Looks at the surroundings right after the device has worked for seconds; each `keep_busy()` gives it some
        more."""

    def finding(self) -> Finding | None:
        """Returns what the witness saw; None where nothing can be seen."""


def examine(
    device: Device,
    time: Time,
    *,
    watch_s: float = WATCH_S,
    claimed_step_s: float | None = None,
    witnesses: Sequence[Witness] = (),
    now: Now = host.perf_counter,
) -> Diagnosis:
    """Measures whether a device's times can be trusted; takes `watch_s` and some seconds more.

    Args:
        time: times a launch on the device, as `measurement.time_launch` does, in this process or another.
        watch_s: seconds for which one kernel is run again and again.
        claimed_step_s: the step of its profiling clock that the driver tells, in seconds.
        witnesses: what looks at the surroundings.
        now: the host's clock in seconds.

    Raises:
        KernelError, DeviceError: the device does not run a kernel at all.
    """
    for witness in witnesses:
        witness.before()
    began = now()
    try:
        workload = Workload(device, time, now)
        watched = watch(workload, time, now, watch_s, began)
    except MeasurementError:
        return Diagnosis(device, (_no_times(claimed_step_s),), ())
    for witness in witnesses:
        witness.under_load(lambda: event_clock.keep_busy(workload, time, _BUSY_S))

    times = [*watched.runs, *event_clock.event_times(workload, time)]
    step_s = clock_step(times)
    overhead = event_clock.overhead_of(time)
    median_s, spread_s = (overhead.median_s, overhead.spread_s) if overhead else (0.0, 0.0)
    seen = [witness.finding() for witness in witnesses]
    findings = (
        event_clock.resolution(step_s, claimed_step_s),
        event_clock.launch_overhead(overhead),
        event_clock.against_host(workload, time, now, step_s, median_s),
        event_clock.proportionality(workload, time, step_s, median_s),
        watched.stability(),
        watched.load(step_s),
        *(finding for finding in seen if finding),
        watched.agreement(),
    )
    return Diagnosis(device, findings, promised(watched.precision, step_s, median_s, spread_s))


def _no_times(claimed_step_s: float | None) -> Finding:
    measured = (Quantity("step", None, "s"), Quantity("claimed", claimed_step_s, "s"))
    fault, remedy = "its profiling events give no time, however long a kernel runs", "use another driver"
    return Finding(name="event resolution", severity=Severity.BAD, measured=measured, fault=fault, remedy=remedy)
