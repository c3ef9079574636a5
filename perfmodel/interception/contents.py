"""Copies arrays as they are before a launch, on the launch's own queue."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.interception.given import GivenBuffer


class Contents:
    """The bytes of one array, which are there once the copy's event has come."""

    def __init__(self, data: NDArray[np.uint8], event: Any) -> None:
        self._data, self._event = data, event
        data.flags.writeable = False

    @property
    def data(self) -> NDArray[np.uint8]:
        if self._event is not None:
            self._event.wait()
            self._event = None
        return self._data


def is_read(buffer: GivenBuffer) -> bool:
    """Returns True if a kernel may read the buffer."""
    import pyopencl as cl  # which may not load

    return not buffer.flags & cl.mem_flags.WRITE_ONLY


def copied(
    queue: Any, buffers: Iterable[GivenBuffer], wait_for: Sequence[Any] | None, read: Callable[..., Any]
) -> dict[int, Contents | str]:
    """Begins a copy of each buffer by pyopencl's function `read`; returns by address the contents, or why there are
    none.

    Nothing waits here: on a queue that keeps its order the launch comes after the copies, on others it is told to.
    """
    import pyopencl as cl  # which may not load

    made: dict[int, Contents | str] = {}
    for buffer in buffers:
        if buffer.address in made:
            continue
        if not buffer.is_alive:
            made[buffer.address] = "it was freed before the launch"
            continue
        data = np.empty(buffer.n_bytes, np.uint8)
        try:
            memory = cl.MemoryObject.from_int_ptr(buffer.address, True)
            event = read(queue, memory, data, 0, wait_for, False)
        except cl.Error as error:
            made[buffer.address] = f"the device does not let it be read ({error})"
        else:
            made[buffer.address] = Contents(data, event)
    return made


def events(made: dict[int, Contents | str]) -> list[Any]:
    """Returns the events that a launch must wait for, where a queue does not keep the order."""
    return [contents._event for contents in made.values() if isinstance(contents, Contents)]
