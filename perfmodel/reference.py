"""Whether a device is as fast as it was: one kernel of fixed work, timed again and again beside the measurements.

Clocks change and other programs take their share for seconds at a time. All trials of a short kernel can fall into such
a while and agree with each other, so that their spread shows nothing; the reference kernel does.
"""

from __future__ import annotations

import time

from perfmodel.device import Device
from perfmodel.measurement import ArrayArgument, Launch, Protocol, ScalarArgument, time_launch

DISTURBED = "disturbed"
"""The flag of a time taken while the device was slow."""

TOLERANCE = 1.1
"""A device is disturbed while the reference kernel takes this many times its best time, or more."""

_SOURCE = """
__kernel void perfmodel_reference(__global float *out, int const rounds)
{
  float a = get_global_id(0), b = rounds;
  for (int i = 0; i < rounds; ++i) { a = a * 0.25f + b; b = b * 0.25f + a; }
  if (a == 0.123f) out[0] = a;
}
"""
# A scheduler lets a program that has waited run at once, for some milliseconds: only a median over longer than that
# shows that others want the device too.
_PROTOCOL = Protocol("reference", trials=10, dropped=2, statistic="median")
_GROUP = 64
_SECONDS = 3e-3

# Rounds of the loop and best time by device, for the whole process: campaigns that follow each other compare.
_rounds: dict[str, int] = {}
_best: dict[str, float] = {}


class Reference:
    """The reference kernel of one device."""

    def __init__(self, device: Device) -> None:
        self.device = device
        if device.key not in _rounds:
            trial = 256
            seconds = self._time(trial)
            _rounds[device.key] = max(1, round(trial * _SECONDS / seconds))

    @property
    def best(self) -> float:
        """The shortest time of the reference kernel in this process, in seconds."""
        return _best[self.device.key]

    def seconds(self) -> float:
        """The reference kernel's time now."""
        seconds = self._time(_rounds[self.device.key])
        _best[self.device.key] = min(seconds, _best.get(self.device.key, seconds))
        return seconds

    def is_disturbed(self, seconds: float) -> bool:
        return seconds >= TOLERANCE * self.best

    def wait(self, limit_s: float) -> None:
        """Returns when the device is undisturbed, or after so many seconds."""
        end = time.monotonic() + limit_s
        while self.is_disturbed(self.seconds()) and time.monotonic() < end:
            time.sleep(0.05)

    def _time(self, rounds: int) -> float:
        items = self.device.compute_units * 16 * _GROUP
        arguments = (ArrayArgument("out", "float32", 1, True), ScalarArgument("rounds", "int32", rounds))
        launch = Launch(_SOURCE, "perfmodel_reference", (items,), (_GROUP,), arguments)
        return time_launch(launch, self.device, _PROTOCOL).seconds
