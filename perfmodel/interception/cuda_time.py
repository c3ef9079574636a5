"""Times what a program puts on a stream of CUDA, by CuPy's events before and after it."""

from __future__ import annotations

from typing import Any

from perfmodel.interception.queued import Queued, Span


class CudaTimer:
    """Tells the time between two events on the device's clock, which begins at a third."""

    def __init__(self, cupy: Any, origin: Any, start: Any, end: Any) -> None:
        self._cuda, self._origin, self._start, self._end = cupy.cuda, origin, start, end

    def has_ended(self) -> bool:
        return bool(self._end.done)

    def span(self) -> Span | None:
        """Returns the while between the events, after waiting for it; None if what was timed failed."""
        try:
            self._end.synchronize()
            began = self._cuda.get_elapsed_time(self._origin, self._start) * 1e-3
            took = self._cuda.get_elapsed_time(self._start, self._end) * 1e-3
        except Exception:  # a CUDARuntimeError, which is for the program to see
            return None
        return Span(began, began, took)


class CudaClock:
    """Makes timers; remembers of each device its name and the event at which its clock begins."""

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self._origins: dict[int, Any] = {}
        self._names: dict[int, str] = {}

    def device_name(self) -> str:
        """Returns the name of the current device."""
        number = int(self._cupy.cuda.Device().id)
        if number not in self._names:
            name = self._cupy.cuda.runtime.getDeviceProperties(number)["name"]
            self._names[number] = (name.decode() if isinstance(name, bytes) else str(name)).strip()
        return self._names[number]

    def begun(self, stream: Any) -> Any:
        """Returns the event before what is timed; None where a stream is captured, which times nothing."""
        cuda = self._cupy.cuda
        stream = self._stream(stream)
        if getattr(stream, "is_capturing", bool)():
            return None
        number = int(cuda.Device().id)
        if number not in self._origins:
            self._origins[number] = self._event(stream)
        return self._event(stream)

    def ended(self, record: Queued, start: Any, stream: Any) -> None:
        """Has a record tell the time since an event."""
        if start is not None:
            origin = self._origins[int(self._cupy.cuda.Device().id)]
            record.timed_by(CudaTimer(self._cupy, origin, start, self._event(self._stream(stream))))

    def _stream(self, stream: Any) -> Any:
        return self._cupy.cuda.get_current_stream() if stream is None else stream

    def _event(self, stream: Any) -> Any:
        event = self._cupy.cuda.Event()
        event.record(stream)
        return event
