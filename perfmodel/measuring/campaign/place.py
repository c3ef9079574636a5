"""Measures batches somewhere, as an executor: on this machine, or by the workers of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, Protocol

from perfmodel.device import Device
from perfmodel.measuring.isolation.bench import Batch
from perfmodel.measuring.store import Store


class Place(Protocol):
    name: str

    def chosen(self, selectors: Sequence[Device | str] | None, store: Store, runtime: str) -> list[Device]:
        """Returns the devices that a campaign names, or those that are meant if it names none.

        Args:
            runtime: of devices of several runtimes that a name means, those of this one are taken.

        Raises:
            DeviceError: one is neither there nor in the store.
        """

    def has(self, device: Device) -> bool:
        """Returns True if anything can be measured on the device."""

    def capacity(self, device: Device) -> int:
        """Returns how many batches of a device can sensibly be handed out at once; zero where nothing can run them
        now."""

    def submit(self, device: Device, timer: str, *arguments: Any) -> Future[Batch]:
        """Asks for `measure_batch` of these arguments."""

    def does_without(self, batch: Batch) -> bool:
        """Goes on without the worker that could not go on with a batch; False if it is the only one."""

    def close(self, is_interrupted: bool) -> None:
        """Ends all running batches; may be called again."""
