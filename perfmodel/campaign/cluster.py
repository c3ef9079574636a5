"""Batches measured by Dask workers, each of which advertises its OpenCL devices as resources.

`distributed` does all that has to do with several machines: it knows the workers, gives each device one batch at a
time, and gives the batch of a lost worker to another one.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

from perfmodel.campaign.this_machine import ALL, chosen_among
from perfmodel.device import Device, devices
from perfmodel.errors import DeviceError, PerfmodelError
from perfmodel.isolation.bench import Batch, measure_batch
from perfmodel.store import Store

if TYPE_CHECKING:
    from distributed import Client

LOCAL = "local"
"""The name of a cluster that is started on this machine, and ended with the campaign."""
CONNECT_SECONDS = 30.0
COUNT_SECONDS = 2.0
LEAVE_SECONDS = 1.0
_ADDRESS = re.compile(r"local|((tcp|tls|ucx|wss?|inproc)://)?[^\s/:]+(:\d+)?/?|((tcp|tls)://)?\[[\da-fA-F:]+\]:\d+")


def resource(device: Device) -> str:
    """The name under which workers advertise a device: its key and its driver's version."""
    return re.sub(r"[^\w.\-/@]+", "_", f"{device.key}@{device.driver}")


def resources() -> dict[str, float]:
    """What a Dask worker on this machine advertises: one of each of its devices."""
    return {resource(device): 1.0 for device in devices()}


class Cluster:
    """A `Place`: the workers of a Dask scheduler.

    Args:
        scheduler: its address, `LOCAL`, or a `distributed.Client`, which stays open.

    Raises:
        PerfmodelError: `distributed` is not installed, or no scheduler answers at the address.
    """

    def __init__(self, scheduler: str | Client) -> None:
        distributed = _distributed()
        if isinstance(scheduler, str) and not _ADDRESS.fullmatch(scheduler):
            raise PerfmodelError(f"{scheduler!r} is no Dask scheduler's address; give one such as tcp://10.0.0.1:8786")
        self._local: Any = None
        self._is_ours = isinstance(scheduler, str)
        if scheduler == LOCAL:
            advertised = resources()
            self._local = distributed.LocalCluster(
                n_workers=1, threads_per_worker=max(1, len(advertised)), resources=advertised, dashboard_address=":0"
            )
        if isinstance(scheduler, str) and self._local is None:
            _check_answers(scheduler)
        self.client: Any = (
            distributed.Client(self._local or scheduler, set_as_default=False)
            if isinstance(scheduler, str)
            else scheduler
        )
        self.name = "a cluster on this machine" if self._local else f"the cluster of {self.client.scheduler.address}"
        self._counted: Counter[str] = Counter()
        self._counted_at = -COUNT_SECONDS

    def chosen(self, selectors: Sequence[Device | str] | None, store: Store) -> list[Device]:
        there = self._devices()
        return [device for selector in selectors or [ALL] for device in chosen_among(there, selector)]

    def has(self, device: Device) -> bool:
        return True

    def capacity(self, device: Device) -> int:
        """Twice the number of workers that have the device, so that none waits for the campaign."""
        if time.monotonic() - self._counted_at >= COUNT_SECONDS:
            self._counted = Counter(name for worker in self._workers().values() for name in worker["resources"])
            self._counted_at = time.monotonic()
        return 2 * self._counted[resource(device)]

    def submit(self, device: Device, timer: str, *arguments: Any) -> Future[Batch]:
        executor = self.client.get_executor(resources={resource(device): 1}, pure=False)
        submitted: Future[Batch] = executor.submit(_measured_by_worker, device, timer, *arguments)
        return submitted

    def does_without(self, batch: Batch) -> bool:
        """A worker whose device fails leaves the cluster by itself."""
        return True

    def close(self, is_interrupted: bool) -> None:
        if self._is_ours:
            self.client.close()
        if self._local is not None:
            self._local.close()

    def _devices(self) -> list[Device]:
        """All that workers advertise, sorted by name; the same kind with another driver is another device.

        Raises:
            DeviceError: there is none.
        """
        advertised = {name for worker in self._workers().values() for name in worker["resources"]}
        listed = self.client.run(devices, on_error="ignore")
        found = {resource(device): device for of_worker in listed.values() for device in of_worker}
        if usable := sorted(advertised & set(found)):
            return [found[name] for name in usable]
        raise DeviceError(
            f"no worker of {self.name} advertises an OpenCL device; start them by `perfmodel worker "
            f"{self.client.scheduler.address}`"
        )

    def _workers(self) -> dict[str, Any]:
        return dict(self.client.scheduler_info(n_workers=-1)["workers"])


def _measured_by_worker(*arguments: Any) -> Batch:
    """A batch; a worker that can't go on with its device closes soon after, and others get what it leaves."""
    batch = measure_batch(*arguments)
    if batch.stopped:
        from distributed import get_worker

        worker = get_worker()
        leave = partial(worker.close, executor_wait=False, reason=batch.stopped)
        worker.loop.add_callback(worker.loop.call_later, LEAVE_SECONDS, leave)
    return batch


def _check_answers(scheduler: str) -> None:
    """A client that finds no scheduler, or has not its certificates, would take a minute to give up."""
    from distributed.comm import connect
    from distributed.security import Security

    async def connected() -> None:
        communication = await connect(
            scheduler if "://" in scheduler else f"tcp://{scheduler}",
            timeout=CONNECT_SECONDS,
            **Security().get_connection_args("client"),
        )
        await communication.close()

    try:
        with ThreadPoolExecutor(1) as beside:  # notebooks have an event loop of their own here
            beside.submit(lambda: asyncio.run(connected())).result()
    except (OSError, ValueError, TypeError) as error:
        raise PerfmodelError(
            f"no Dask scheduler answers at {scheduler!r} ({error}); start one by `dask scheduler`, and give the "
            "address that it prints"
        ) from error


def _distributed() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise PerfmodelError(
            "campaigns on a Dask cluster need the package 'distributed'; `pip install 'perfmodel[cluster]'`"
        ) from error
    return distributed
