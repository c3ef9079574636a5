"""Copies of arrays between host and device, and on a device: which functions of pyopencl make them, and of what."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from perfmodel.interception.queued import Queued

Direction = Literal["to", "from", "on"]
WORDS: Mapping[Direction, str] = {
    "to": "copies to device",
    "from": "copies from device",
    "on": "copies on device",
}


class CopyRecord(Queued):
    """A copy that a program made.

    Attributes:
        direction: to the device, from it, or from one place of it to another (as arrays that are filled).
        n_bytes: how much is copied.
    """

    def __init__(self, direction: Direction, n_bytes: int, device: str) -> None:
        super().__init__(device)
        self.direction, self.n_bytes = direction, n_bytes
        self._host_seconds: float | None = None

    def took(self, seconds: float) -> None:
        """Keeps the time by the host's clock of a copy that has no event."""
        self._host_seconds = seconds

    @property
    def seconds(self) -> float | None:
        """The seconds that the device took, or the host for a copy without an event; None if nothing tells."""
        return super().seconds if self._host_seconds is None else self._host_seconds

    def __repr__(self) -> str:
        return f"CopyRecord({self.direction} the device, {self.n_bytes} bytes)"


@dataclass(frozen=True)
class Copying:
    """One of pyopencl's functions that copy: its first parameters, and how much it copies, by its arguments."""

    direction: Direction
    parameters: tuple[str, ...]
    n_bytes: Callable[[Mapping[str, Any]], int]


def _of_host(call: Mapping[str, Any]) -> int:
    return memoryview(call["hostbuf"]).nbytes


def _of_region(call: Mapping[str, Any]) -> int:
    return math.prod(map(int, call["region"]))


def _of_buffers(call: Mapping[str, Any]) -> int:
    asked = call.get("byte_count", -1)
    return int(asked) if asked is not None and asked >= 0 else int(min(call["src"].size, call["dst"].size))


def _of_fill(call: Mapping[str, Any]) -> int:
    return int(call["size"])


_RECT = ("queue", "mem", "hostbuf", "buffer_origin", "host_origin", "region")
_IMAGE = ("queue", "mem", "origin", "region", "hostbuf")
COPIES: Mapping[str, Copying] = {
    "_enqueue_write_buffer": Copying("to", ("queue", "mem", "hostbuf"), _of_host),
    "_enqueue_write_buffer_rect": Copying("to", _RECT, _of_region),
    "_enqueue_write_image": Copying("to", _IMAGE, _of_host),
    "_enqueue_read_buffer": Copying("from", ("queue", "mem", "hostbuf"), _of_host),
    "_enqueue_read_buffer_rect": Copying("from", _RECT, _of_region),
    "_enqueue_read_image": Copying("from", _IMAGE, _of_host),
    "_enqueue_copy_buffer": Copying("on", ("queue", "src", "dst", "byte_count"), _of_buffers),
    "_enqueue_copy_buffer_rect": Copying(
        "on", ("queue", "src", "dst", "src_origin", "dst_origin", "region"), _of_region
    ),
    "_enqueue_fill_buffer": Copying("on", ("queue", "mem", "pattern", "offset", "size"), _of_fill),
}
"""Functions to which ``pyopencl.enqueue_copy``, ``enqueue_fill`` and arrays come down; copies of images on a device,
mapped arrays and shared virtual memory are not among them."""
