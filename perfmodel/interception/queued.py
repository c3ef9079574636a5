"""Notes of what a program puts on a queue when that was, and how long the device took by its events."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class Span:
    """Holds seconds of the device's own clock: when a command was queued and began, and how long it took.

    A clock that has run for long tells less in floats than its nanoseconds do, which the difference is taken of.
    """

    queued: float
    start: float
    took: float

    @property
    def end(self) -> float:
        return self.start + self.took


class Timer(Protocol):
    """Tells when the device worked on a command."""

    def has_ended(self) -> bool: ...

    def span(self) -> Span | None:
        """Returns the while, after waiting for it; None if the command failed."""


class OpenclTimer:
    """Tells the time of a command by its event."""

    def __init__(self, event: Any) -> None:
        self._event = event

    def has_ended(self) -> bool:
        import pyopencl as cl  # which may not load

        return bool(self._event.command_execution_status <= cl.command_execution_status.COMPLETE)

    def span(self) -> Span | None:
        import pyopencl as cl  # which may not load

        try:
            self._event.wait()
            clock = self._event.profile
            return Span(clock.queued * 1e-9, clock.start * 1e-9, (clock.end - clock.start) * 1e-9)
        except cl.Error:  # the command failed, which is for the program to see
            return None


class Queued:
    """A command on a queue.

    Attributes:
        device: the name of the device.
        asked_s: when the program asked for it, by the host's clock (`time.perf_counter`).
    """

    def __init__(self, device: str) -> None:
        self.device = device
        self.asked_s = time.perf_counter()
        self._timer: Timer | None = None
        self._span: Span | None = None

    def enqueued(self, queue: Any, event: Any) -> None:
        """Keeps pyopencl's event if it will tell the time."""
        import pyopencl as cl  # which may not load

        if queue.properties & cl.command_queue_properties.PROFILING_ENABLE:
            self.timed_by(OpenclTimer(event))

    def timed_by(self, timer: Timer) -> None:
        """Keeps what will tell the time."""
        self._timer = timer

    def has_ended(self) -> bool:
        """Returns True if nothing is to be waited for; if so, the time is taken and the event let go."""
        if self._timer is not None and self._timer.has_ended():
            _ = self.span
        return self._timer is None

    @property
    def span(self) -> Span | None:
        """The while in which the device worked on it, after waiting for it; None without profiling."""
        if self._timer is not None:
            self._span = self._timer.span()
            self._timer = None
        return self._span

    @property
    def seconds(self) -> float | None:
        """The seconds that the device took, after waiting for it; None if the queue was made without profiling."""
        span = self.span
        return None if span is None else span.took
