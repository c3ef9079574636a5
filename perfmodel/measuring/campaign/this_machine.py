"""Batches measured on this machine: a thread a device, each with a measuring process."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from fnmatch import fnmatchcase
from typing import Any

from perfmodel.basics.errors import DeviceError
from perfmodel.device import Device, devices, find_device, named
from perfmodel.measuring.isolation.bench import Batch, Bench, bench_of, measure_batch
from perfmodel.measuring.store import Store

ALL = "all"
"""Selects every device."""
GRACE_SECONDS = 2.5
"""A launch that is under way may go on for so many seconds after an interruption."""


def chosen_among(there: Sequence[Device], selector: str | Device, runtime: str) -> list[Device]:
    """Returns the devices that a selector names: all of a runtime, or with ``*`` in it, those whose keys match it.

    Raises:
        DeviceError: it names none.
    """
    if selector == ALL:
        return [device for device in there if device.runtime == runtime]
    if isinstance(selector, str) and "*" in selector:
        if found := [device for device in there if fnmatchcase(device.key, selector)]:
            return found
        keys = ", ".join(device.key for device in there) or "none"
        raise DeviceError(f"no device's key matches {selector!r}; there are {keys}")
    return [named(selector, there, runtime=runtime)]


class ThisMachine:
    """Measures batches here: one of a device at a time, and of several devices at once."""

    name = "this machine"

    def __init__(self) -> None:
        self._threads: dict[str, ThreadPoolExecutor] = {}
        self._running: dict[str, tuple[Future[Batch], Bench]] = {}

    def chosen(self, selectors: Sequence[Device | str] | None, store: Store, runtime: str) -> list[Device]:
        known = store.devices()
        if not selectors:
            return [find_device(None, known, runtime)]
        found: list[Device] = []
        for selector in selectors:
            is_several = isinstance(selector, str) and (selector == ALL or "*" in selector)
            found += (
                chosen_among(devices(), selector, runtime) if is_several else [find_device(selector, known, runtime)]
            )
        return found or [find_device(None, (), runtime)]

    def has(self, device: Device) -> bool:
        return device.is_here

    def capacity(self, device: Device) -> int:
        return 1

    def submit(self, device: Device, timer: str, *arguments: Any) -> Future[Batch]:
        if device.key not in self._threads:
            self._threads[device.key] = ThreadPoolExecutor(1, f"perfmodel {device.key}")
        future = self._threads[device.key].submit(measure_batch, device, timer, *arguments)
        self._running[device.key] = future, bench_of(device, timer)
        return future

    def does_without(self, batch: Batch) -> bool:
        return False

    def close(self, is_interrupted: bool) -> None:
        """Ends interrupted batches after the launch that they are at, or without it if that takes too long."""
        running = {future: bench for future, bench in self._running.values() if not future.done()}
        try:
            if is_interrupted:
                for bench in running.values():
                    bench.interrupt()
                wait(running, GRACE_SECONDS)
        finally:  # also where somebody has not even this patience
            for bench in running.values():
                if is_interrupted:
                    bench.give_up()
            for threads in self._threads.values():
                threads.shutdown(wait=True, cancel_futures=True)
            for bench in running.values():
                bench.resume()
