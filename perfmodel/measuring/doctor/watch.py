"""Runs one kernel again and again for some seconds: warm-up, drift, bursts of load, and how well times agree."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from perfmodel.basics.errors import MeasurementError
from perfmodel.measuring.doctor.diagnosis import Finding, Quantity, Severity
from perfmodel.measuring.doctor.workload import Now, Time, Workload
from perfmodel.measuring.protocol import PROTOCOLS

SETTLED = 1.02
"""A device is warm once a time is within this part of what times settle at: models err by a few per cent at their
best."""
LONG_WARM_UP_S = 0.5
"""A warm-up of so many seconds leaves the first kernels of a campaign with times of a cold device."""
DRIFT, STRONG_DRIFT = 0.02, 0.1
"""Parts by which a device may change its speed while it is watched: the first is about what the best models err by;
the second is what a campaign takes for a disturbed device and measures again."""
SLOW = 1.1
"""A run is slow if it takes so many times the best run's time; a campaign judges its reference kernel by the same
factor."""
MANY_SLOW = 0.05
"""The part of slow runs from which on means are not to be trusted: if these take twice as long, the mean errs by 5 %.
Minima need one run in 26 that nobody disturbs."""
IMPRECISE, VERY_IMPRECISE = DRIFT, STRONG_DRIFT
"""Parts by which times may differ from measurement to measurement, for the same reasons."""

_PROTOCOL = PROTOCOLS["unified"]
_SECONDS = 1e-3
_LONGEST_S = 1.0
_FEWEST_BATCHES = 4


@dataclass(frozen=True)
class WatchedTime:
    """One measurement by the protocol: seconds since the device's first work, its time, and all runs kept."""

    start_s: float
    seconds: float
    runs: tuple[float, ...]


def watch(workload: Workload, time: Time, now: Now, watch_s: float, began: float) -> Watch:
    """Measures a kernel of about a millisecond for so many seconds; a longer one if the clock shows no millisecond.

    Args:
        began: when the device was first given work, by the host's clock.

    Raises:
        MeasurementError: no kernel of up to a second has a time.
    """
    kernel_s = _SECONDS
    batches: list[WatchedTime] = []
    end = now() + watch_s
    while now() < end or len(batches) < _FEWEST_BATCHES:
        started = now()
        try:
            timing = time(workload.launch(kernel_s), _PROTOCOL)
        except MeasurementError:
            if kernel_s >= _LONGEST_S:
                raise
            kernel_s, batches = 2 * kernel_s, []
            continue
        batches.append(WatchedTime(started - began, timing.seconds, timing.trials[timing.dropped :]))
    return Watch(tuple(batches))


@dataclass(frozen=True)
class Watch:
    """Holds what was seen of a device in a few seconds."""

    batches: tuple[WatchedTime, ...]

    @cached_property
    def runs(self) -> list[float]:
        """Seconds of every run."""
        return [run for batch in self.batches for run in batch.runs]

    @cached_property
    def _warm(self) -> int:
        """The number of the first batch of a warm device."""
        # What three quarters of the batches do not fall below: a moment of a higher clock is not what it settles at.
        limit = SETTLED * float(np.quantile([batch.seconds for batch in self.batches], 0.25))
        return next(index for index, batch in enumerate(self.batches) if batch.seconds <= limit)

    @cached_property
    def _quarters(self) -> list[Sequence[WatchedTime]]:
        warm = self.batches[self._warm :]
        bounds = [round(part * len(warm) / 4) for part in range(5)]
        quarters = [warm[left:right] for left, right in pairwise(bounds)]
        return [quarter for quarter in quarters if quarter]

    @cached_property
    def _times(self) -> list[float]:
        """The times of the warm device's batches."""
        return [batch.seconds for quarter in self._quarters for batch in quarter]

    @cached_property
    def precision(self) -> float:
        """The distance from their median, as a part of it, that nine of ten measured times of the warm device keep
        within."""
        return deviation(self._times) / statistics.median(self._times)

    def stability(self) -> Finding:
        """Checks the device's clock: how long it takes to get warm, and whether it stays as fast."""
        times = [[batch.seconds for batch in quarter] for quarter in self._quarters]
        warm_up = self.batches[self._warm].start_s if self._warm else 0.0
        drift = statistics.median(times[-1]) / statistics.median(times[0]) - 1
        spread = float(np.subtract(*np.quantile(self._times, [0.75, 0.25]))) / 2 / statistics.median(self._times)
        watched = self.batches[-1].start_s - self.batches[0].start_s
        measured = (
            Quantity("warm-up", warm_up, "s"),
            Quantity("drift", drift, "part"),
            Quantity("spread", spread, "part"),
            Quantity("within", watched, "s"),
        )
        severity = Severity.of(abs(drift), DRIFT, STRONG_DRIFT)
        if severity != Severity.OK:
            fault = f"its times {'grew' if drift > 0 else 'fell'} by {_percent(abs(drift))} within {watched:.2g} s"
            remedy = "fix its clock, let it cool, or wait until other programs have ended"
        else:
            severity = Severity.of(warm_up, LONG_WARM_UP_S)
            fault = f"it needs {warm_up:.2g} s of work to become as fast as it stays"
            remedy = "run something on it for that long before you measure"
        return Finding.judged("clock stability", severity, measured, fault, remedy)

    def load(self, step_s: float) -> Finding:
        """Checks for bursts in which others have the device."""
        runs, slow, longest = 0, 0, 0.0
        for quarter in self._quarters:  # each with its own best, so that a clock that falls is not taken for load
            times = [run for batch in quarter for run in batch.runs]
            limit = max(SLOW * min(times), min(times) + 2 * step_s)  # steps of the clock are no load
            burst = 0.0
            for run in times:
                burst = burst + run if run > limit else 0.0
                longest = max(longest, burst)
            slow += sum(run > limit for run in times)
            runs += len(times)
        share = slow / runs
        measured = (Quantity("slow runs", share, "part"), Quantity("longest burst", longest, "s"))
        fault = f"{_percent(share)} of the runs took over {SLOW} times the best"
        remedy = "end other programs, and take minima (protocol unified) rather than means"
        return Finding.judged("competing load", Severity.of(share, MANY_SLOW), measured, fault, remedy)

    def agreement(self) -> Finding:
        """Checks how well one time agrees with the next."""
        measured = (
            Quantity("within", self.precision, "part"),
            Quantity("of", statistics.median(self._times), "s"),
            Quantity("measured", len(self._times)),
        )
        severity = Severity.of(self.precision, IMPRECISE, VERY_IMPRECISE)
        fault = f"measured again, a time differs by {_percent(self.precision)}"
        remedy = "end other programs, fix the clock, or take more trials"
        return Finding.judged("precision of a time", severity, measured, fault, remedy)


def deviation(values: Sequence[float]) -> float:
    """Returns the distance from their median that nine of ten values do not exceed, whatever the others do."""
    return float(np.quantile(np.abs(np.subtract(values, np.median(values))), 0.9))


def _percent(part: float) -> str:
    return f"{100 * part:.2g} %" if part < 0.995 else f"{100 * part:.0f} %"
