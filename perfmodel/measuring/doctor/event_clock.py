"""Checks whether profiling events tell the time: how finely, what a launch costs, the host's clock, and the work
done."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from itertools import chain

from perfmodel.basics.errors import MeasurementError
from perfmodel.kernels.launch import Launch
from perfmodel.measuring.doctor.diagnosis import NEAR, Finding, Quantity, Severity, amount
from perfmodel.measuring.doctor.watch import deviation
from perfmodel.measuring.doctor.workload import Now, Time, Workload
from perfmodel.measuring.protocol import EMPTY, PROTOCOLS, Protocol

STEPS_PER_PERCENT = 100
"""A time is known to one per cent from so many steps of its clock on."""
COARSE_S, VERY_COARSE_S = 2e-6, 1e-4
"""Seconds of a step: OpenCL drivers count in a microsecond or finer, so that launches of a few microseconds show. A
step of 0.1 ms leaves only kernels of 10 ms and more, longer than most that models are calibrated with."""
SLOW_LAUNCH_S, VERY_SLOW_LAUNCH_S = 1e-4, 1e-2
"""Seconds of a launch: ten of the first are a millisecond, as long as kernels of a calibration commonly run; ten of
the second are 0.1 s, as long as hardly any does."""
ASTRAY, FAR_ASTRAY = 0.05, 0.2
"""Parts by which events may miss the host's clock or the work done. The host's time has gaps between launches of up to
0.1 ms, which is 1 % of ten; clocks that change on their own make 2 or 3 %. Nothing sound makes 20 %."""

_LAUNCHES, _LAUNCH_LOOKS = PROTOCOLS["unified"], 20
_FEW = Protocol("few", trials=8, dropped=0, statistic="min")
# Times of ever longer kernels, by factors that no step is a multiple of, so that all steps are met.
_SHORTEST_S, _LONGEST_S, _GROWTH = 1e-5, 1e-2, 1.37
_HOST_S, _HOST_TRIALS, _HOST_PAIRS = 1e-2, (1, 9), 3
_WORK_S, _WORK_LOOKS = 1e-3, 3
# In so many steps a comparison to ASTRAY can be made.
_STEPS_OF_A_COMPARISON = 40


@dataclass(frozen=True)
class Overhead:
    """Seconds that a launch of nothing takes, and by which nine of ten times of it differ from their median."""

    least_s: float
    median_s: float
    spread_s: float


def event_times(workload: Workload, time: Time) -> list[float]:
    """Returns the seconds, by events, of kernels of many lengths."""
    times: list[float] = []
    seconds = _SHORTEST_S
    while seconds < _LONGEST_S:
        times += _trials(time, workload.launch(seconds), _FEW)
        seconds *= _GROWTH
    return times


def keep_busy(workload: Workload, time: Time, seconds: float) -> None:
    """Gives the device about so many seconds of work, whatever its events say."""
    _trials(time, workload.launch(seconds / _FEW.trials), _FEW)


def resolution(step_s: float, claimed_s: float | None) -> Finding:
    """Checks the clock's step beside the one that the driver claims."""
    enough = STEPS_PER_PERCENT * step_s
    measured = (
        Quantity("step", step_s, "s"),
        Quantity("claimed", claimed_s, "s"),
        Quantity("a percent from", enough, "s"),
    )
    severity = Severity.of(step_s, COARSE_S, VERY_COARSE_S)
    fault = f"its clock counts in steps of {_shown(step_s)}"
    remedy = f"use sizes whose kernels take {_shown(enough)} or more, or another driver"
    return Finding.judged("event resolution", severity, measured, fault, remedy)


def overhead_of(time: Time) -> Overhead | None:
    """Returns the time that a launch takes by itself; None if that is less than the clock shows."""
    looks = [_trials(time, EMPTY, _LAUNCHES)[_LAUNCHES.dropped :] for _ in range(_LAUNCH_LOOKS)]
    if not all(looks):
        return None
    times = [min(look) for look in looks]  # as the protocol has it: single launches differ more than these do
    return Overhead(min(times), statistics.median(chain.from_iterable(looks)), deviation(times))


def launch_overhead(found: Overhead | None) -> Finding:
    """Checks what a launch takes by itself."""
    if found is None:
        nothing = (Quantity("median", None, "s"), Quantity("least", None, "s"), Quantity("spread", None, "s"))
        return Finding("launch overhead", Severity.OK, nothing)
    measured = (
        Quantity("median", found.median_s, "s"),
        Quantity("least", found.least_s, "s"),
        Quantity("spread", found.spread_s, "s"),
        Quantity("a third from", NEAR * found.median_s, "s"),
        Quantity("a tenth from", 10 * found.median_s, "s"),
    )
    severity = Severity.of(found.median_s, SLOW_LAUNCH_S, VERY_SLOW_LAUNCH_S)
    fault = f"a launch takes {_shown(found.median_s)} by itself"
    remedy = f"use sizes whose kernels take {_shown(10 * found.median_s)} or more"
    return Finding.judged("launch overhead", severity, measured, fault, remedy)


def against_host(workload: Workload, time: Time, now: Now, step_s: float, overhead_s: float) -> Finding:
    """Checks that more runs take longer by the host's clock as they do by events.

    Calls of few and of many runs are compared, so that what a call costs besides drops out.
    """
    launch = workload.launch(_long_enough(_HOST_S, step_s, overhead_s))
    ratios, host_s = [], 0.0
    for _ in range(_HOST_PAIRS):
        by_host, by_events = [], []
        for trials in _HOST_TRIALS:
            started = now()
            by_events.append(
                sum(_trials(time, launch, Protocol(name="host", trials=trials, dropped=0, statistic="min")))
            )
            by_host.append(now() - started)
        host_s = by_host[1] - by_host[0]
        ratios.append((by_events[1] - by_events[0]) / host_s)
    ratio = statistics.median(ratios)
    measured = (Quantity("events per host time", ratio), Quantity("over", host_s, "s"))
    severity = Severity.of(abs(ratio - 1), ASTRAY, FAR_ASTRAY)
    return Finding.judged("events and host clock", severity, measured, *_why_not_host(ratio))


def _why_not_host(ratio: float) -> tuple[str, str]:
    fault = f"events say {ratio:.3g} times what passes by the host's clock"
    power = round(math.log10(ratio)) if ratio > 0 else 0
    if abs(power) >= 3 and abs(ratio / 10.0**power - 1) < ASTRAY:
        return fault, "the driver counts in another unit than nanoseconds: use another version of it"
    if ratio < 1:
        return fault, "they leave out time in which the kernel runs or waits: use another driver, or end other programs"
    return fault, "they claim time that has not passed: use another driver"


def proportionality(workload: Workload, time: Time, step_s: float, overhead_s: float) -> Finding:
    """Checks that twice and four times the work takes twice and four times as long, beyond the launch itself."""
    launches = workload.times_as_much(_long_enough(_WORK_S, step_s, overhead_s), (1, 2, 4))
    # In turn, so that a device that changes its clock meanwhile does so for all; the best of each is the fair one.
    looks = [[_trials(time, launch, _FEW) for launch in launches] for _ in range(_WORK_LOOKS)]
    once, twice, four_times = (
        min(chain.from_iterable(trials), default=0.0) - overhead_s for trials in zip(*looks, strict=True)
    )
    # The kernel takes twice a launch at least: if that does not show, events tell of launches only.
    double, quadruple = (twice / once, four_times / once) if once > 0.1 * overhead_s else (1.0, 1.0)
    measured = (Quantity("twice the work", double), Quantity("four times", quadruple))
    severity = Severity.of(max(abs(double / 2 - 1), abs(quadruple / 4 - 1)), ASTRAY, FAR_ASTRAY)
    fault = f"four times the work takes {quadruple:.3g} times as long"
    remedy = "fix the device's clock, end other programs on it, or use another driver if events don't follow the work"
    return Finding.judged("proportionality", severity, measured, fault, remedy)


def _long_enough(seconds: float, step_s: float, overhead_s: float) -> float:
    return max(seconds, _STEPS_OF_A_COMPARISON * step_s, 2 * overhead_s)


def _trials(time: Time, launch: Launch, protocol: Protocol) -> list[float]:
    """Returns the seconds of every run; none if the clock gave none for one of them."""
    try:
        return list(time(launch, protocol).trials)
    except MeasurementError:
        return []


def _shown(seconds: float) -> str:
    return amount(seconds, "s")
