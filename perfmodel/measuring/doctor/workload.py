"""A workload gives a device nothing to do, or arithmetic that takes as long as is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from perfmodel.basics.errors import MeasurementError
from perfmodel.device import Device
from perfmodel.kernels.arguments import Array, Scalar
from perfmodel.kernels.launch import Launch
from perfmodel.measuring.protocol import Protocol, Timing

Time: TypeAlias = Callable[[Launch, Protocol], Timing]
"""Times a launch; MeasurementError where the device's clock gives no time for it."""
Now: TypeAlias = Callable[[], float]
"""The host's clock in seconds."""

# Each round waits for the one before, and numbers stay near one: no memory, and nothing that a compiler can leave out.
_SOURCE = """
__kernel void perfmodel_doctor(__global float *out, int const rounds)
{
  float a = get_global_id(0), b = 1.0f;
  for (int i = 0; i < rounds; ++i) { a = a * 0.5f + b; b = b * 0.25f + 0.5f; }
  if (a == 0.123f) out[0] = a;
}
"""
_GROUP = 64
_GROUPS_PER_UNIT = 16
_FIRST_ROUNDS = 16
_MOST_ROUNDS = 2**30
# Long enough for the host to time a launch from outside, in which it errs by some 0.1 ms.
_SIZED_S = 5e-3
# A kernel that took so long and has no time in events will not get one.
_HOPELESS_S = 0.5


class Workload:
    """Arithmetic on all of a device, in launches of any length."""

    def __init__(self, device: Device, time: Time, now: Now) -> None:
        """Finds out how fast the device is by the host's clock, since events are what is to be examined.

        Raises:
            MeasurementError: events give no time, however long a kernel runs.
            KernelError: a kernel does not run at all.
        """
        self._group = min(_GROUP, device.max_work_group_size)
        self._items = device.compute_units * _GROUPS_PER_UNIT * self._group
        rounds = _FIRST_ROUNDS
        while True:
            seconds, has_times = self._seconds(rounds, time, now)
            if (has_times and seconds >= _SIZED_S) or rounds >= _MOST_ROUNDS:
                break
            if not has_times and seconds >= _HOPELESS_S:
                raise MeasurementError(
                    f"the profiling events of {device.key} give no time for a kernel that runs {seconds:.1f} s; "
                    "use another driver"
                )
            rounds *= 4
        self._rounds_per_s = rounds / max(seconds, 1e-9)

    def launch(self, seconds: float) -> Launch:
        """Returns a launch of about so many seconds, one round at least."""
        return self.rounds(max(1, min(round(self._rounds_per_s * seconds), _MOST_ROUNDS)))

    def times_as_much(self, seconds: float, factors: tuple[int, ...]) -> list[Launch]:
        """Returns launches of exactly so many times the work of one of about so many seconds."""
        rounds = max(1, min(round(self._rounds_per_s * seconds), _MOST_ROUNDS // max(factors)))
        return [self.rounds(rounds * factor) for factor in factors]

    def rounds(self, rounds: int) -> Launch:
        arguments = (Array("out", "float32", 1, True), Scalar("rounds", "int32", rounds))
        return Launch(
            source=_SOURCE,
            kernel_name="perfmodel_doctor",
            global_size=(self._items,),
            local_size=(self._group,),
            arguments=arguments,
        )

    def _seconds(self, rounds: int, time: Time, now: Now) -> tuple[float, bool]:
        """Returns a launch's seconds by the host's clock, and whether events give it a time: three runs more take three
        times it."""
        launch, has_times = self.rounds(rounds), True
        taken: dict[int, float] = {}
        for trials in (1, 4, 1, 4):  # a second look, as the first compiles, and as others may run at any time
            started = now()
            try:
                time(launch, Protocol(name="size", trials=trials, dropped=0, statistic="min"))
            except MeasurementError:
                has_times = False
            taken[trials] = min(now() - started, taken.get(trials, float("inf")))
        return (taken[4] - taken[1]) / 3 if has_times else taken[1], has_times
