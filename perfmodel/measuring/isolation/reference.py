"""Tells whether a device is as fast as it was: one kernel of fixed work, timed now and then between the measurements.

Clocks change and other programs take their share for seconds at a time. All trials of a short kernel can fall into such
a while and agree with each other, so that their spread shows nothing; the reference kernel does.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from perfmodel.device import CUDA, Device
from perfmodel.kernels.arguments import Array, Scalar
from perfmodel.kernels.launch import PTX, Launch
from perfmodel.measuring.protocol import Protocol, Timing
from perfmodel.measuring.ptx_texts import REFERENCE_NAME, REFERENCE_TEXT

DISTURBED = "disturbed"
"""A flag of times taken while the device was slow."""

TOLERANCE = 1.1
"""A device is disturbed while the reference kernel takes this many times its best time, or more."""

NAME = REFERENCE_NAME
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


class Reference:
    """The reference kernel of one device; `timer` runs it.

    Raises:
        KernelError, MeasurementError, and whatever else the timer raises, from every method.
    """

    def __init__(self, device: Device, timer: Callable[[Launch, Protocol], Timing]) -> None:
        self._device = device
        self._timer = timer
        self._rounds = 0
        self.best = math.inf
        """The shortest time that was seen, in seconds."""

    def seconds(self) -> float:
        """Returns the reference kernel's time now, in seconds."""
        if not self._rounds:
            trial = 256
            self._rounds = max(1, round(trial * _SECONDS / self._time(trial)))
        seconds = self._time(self._rounds)
        self.best = min(seconds, self.best)
        return seconds

    def wait(self, limit_s: float, is_given_up: Callable[[], bool]) -> None:
        """Waits until the device is undisturbed, so many seconds went by, or waiting is given up."""
        end = time.monotonic() + limit_s
        while is_disturbed(self.seconds(), self.best) and time.monotonic() < end and not is_given_up():
            time.sleep(0.05)

    def _time(self, rounds: int) -> float:
        items = self._device.compute_units * 16 * _GROUP
        arguments = (Array("out", "float32", 1, True), Scalar("rounds", "int32", rounds))
        shape = (items,), (_GROUP,), arguments
        is_cuda = self._device.runtime == CUDA
        launch = Launch(REFERENCE_TEXT, NAME, *shape, language=PTX) if is_cuda else Launch(_SOURCE, NAME, *shape)
        return self._timer(launch, _PROTOCOL).seconds


def is_disturbed(seconds: float, best: float) -> bool:
    """Returns True if a device was disturbed while its reference kernel took so many seconds."""
    return seconds >= TOLERANCE * best
