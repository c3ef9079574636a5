"""Objects that stand for pyopencl's classes of queues and buffers, so that what a program makes of them is noticed.

These classes are compiled: what they do when they are called cannot be replaced, only the name by which they are found.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from perfmodel.interception.copies import CopyRecord


class StandIn:
    """Stands for a class: it makes, tests and has what the class does."""

    def __init__(self, original: Any, make: Callable[..., Any]) -> None:
        self.__dict__.update(_original=original, _make=make, __doc__=original.__doc__, __name__=original.__name__)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._make(*args, **kwargs)

    def __instancecheck__(self, instance: object) -> bool:
        return isinstance(instance, self._original)

    def __subclasscheck__(self, subclass: type) -> bool:
        return issubclass(subclass, self._original)

    def __mro_entries__(self, _: tuple[Any, ...]) -> tuple[Any, ...]:
        return (self._original,)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._original, name, value)

    def __or__(self, other: Any) -> Any:
        return self._original | other

    def __ror__(self, other: Any) -> Any:
        return other | self._original

    def __eq__(self, other: object) -> bool:
        return other is self or other is self._original

    def __hash__(self) -> int:
        return hash(self._original)


def profiled_queue(original: Any, wanted: Callable[[], bool]) -> Callable[..., Any]:
    """Returns a function that makes queues with profiling, while that is wanted and the device can."""
    import pyopencl as cl  # which may not load

    def make(*args: Any, **kwargs: Any) -> Any:
        if not wanted():
            return original(*args, **kwargs)
        try:
            if len(args) > 2:
                changed: Any = (*args[:2], _with_profiling(args[2]), *args[3:])
                return original(*changed, **kwargs)
            return original(*args, **{**kwargs, "properties": _with_profiling(kwargs.get("properties", 0))})
        except (cl.Error, TypeError, ValueError):  # then what the program asked for is the answer
            return original(*args, **kwargs)

    return make


def _with_profiling(properties: Any) -> Any:
    """Returns a queue's properties with profiling: a number, or pairs that end with zero."""
    import pyopencl as cl  # which may not load

    flag = cl.command_queue_properties.PROFILING_ENABLE
    if properties is None:
        return flag
    if not isinstance(properties, Sequence):
        return int(properties) | flag
    pairs = list(properties)
    for place in range(0, len(pairs) - 1, 2):
        if pairs[place] == cl.queue_properties.PROPERTIES:
            pairs[place + 1] = int(pairs[place + 1]) | flag
            return pairs
    return [cl.queue_properties.PROPERTIES, flag, *pairs]


def filled_buffer(original: Any, add: Callable[[CopyRecord], None]) -> Callable[..., Any]:
    """Returns a function that makes buffers, and adds the copy where one is filled from the host as it is made."""
    import pyopencl as cl  # which may not load

    def make(*args: Any, **kwargs: Any) -> Any:
        began = time.perf_counter()
        made = original(*args, **kwargs)
        if made.flags & cl.mem_flags.COPY_HOST_PTR:
            took = time.perf_counter() - began
            record = CopyRecord("to", made.size, _devices(made))
            record.asked_s = began
            record.took(took)
            add(record)
        return made

    return make


def _devices(buffer: Any) -> str:
    """Returns the name of the device that a buffer is for; the first where its context has several."""
    return str(buffer.context.devices[0].name).strip()
