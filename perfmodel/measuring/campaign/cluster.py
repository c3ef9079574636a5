"""Batches measured by Dask workers, each of which advertises its OpenCL devices as resources.

`distributed` does all that has to do with several machines: it knows the workers, gives each device one batch at a
time, and gives the batch of a lost worker to another one.
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future, wait
from functools import partial
from typing import TYPE_CHECKING, Any

from perfmodel.basics.errors import DeviceError, PerfmodelError, PerfmodelWarning
from perfmodel.device import Device, devices
from perfmodel.measuring.campaign.this_machine import ALL, GRACE_SECONDS, chosen_among
from perfmodel.measuring.isolation.bench import Batch, bench_of, measure_batch
from perfmodel.measuring.isolation.interruption import LOOK_SECONDS, noticed
from perfmodel.measuring.store import Store

if TYPE_CHECKING:
    from distributed import Client

LOCAL = "local"
"""The name of a cluster that is started on this machine, and ended with the campaign."""
CONNECT_SECONDS = 30.0
COUNT_SECONDS = 2.0
LEAVE_SECONDS = 1.0
ENCRYPTED = ("tls://", "wss://", "inproc://")
"""Addresses of schedulers that begin so are reached by nobody without a certificate, or from another process."""
_ADDRESS = re.compile(r"local|((tcp|tls|ucx|wss?|inproc)://)?[^\s/:]+(:\d+)?/?|((tcp|tls)://)?\[[\da-fA-F:]+\]:\d+")


def resource(device: Device) -> str:
    """Returns the name under which workers advertise a device: its key and its driver's version."""
    return re.sub(r"[^\w.\-/@]+", "_", f"{device.key}@{device.driver}")


def resources() -> dict[str, float]:
    """Returns what a Dask worker on this machine advertises: one of each of its devices."""
    return {resource(device): 1.0 for device in devices()}


class Cluster:
    """Measures batches by the workers of a Dask scheduler.

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
        self._running: dict[Future[Batch], tuple[Device, str]] = {}
        if scheduler == LOCAL:
            self._local = _local_cluster(distributed)
        if isinstance(scheduler, str) and self._local is None:
            check_encrypted(scheduler)
            _check_answers(scheduler)
        self.client: Any = (
            distributed.Client(self._local or scheduler, set_as_default=False)
            if isinstance(scheduler, str)
            else scheduler
        )
        self.name = "a cluster on this machine" if self._local else f"the cluster of {self.client.scheduler.address}"
        self._counted: Counter[str] = Counter()
        self._counted_at = -COUNT_SECONDS

    def chosen(self, selectors: Sequence[Device | str] | None, store: Store, runtime: str) -> list[Device]:
        there = self._devices()
        return [device for selector in selectors or [ALL] for device in chosen_among(there, selector, runtime)]

    def has(self, device: Device) -> bool:
        return True

    def capacity(self, device: Device) -> int:
        """Returns twice the number of workers that have the device, so that none waits for the campaign."""
        if time.monotonic() - self._counted_at >= COUNT_SECONDS:
            self._counted = Counter(name for worker in self._workers().values() for name in worker["resources"])
            self._counted_at = time.monotonic()
        return 2 * self._counted[resource(device)]

    def submit(self, device: Device, timer: str, *arguments: Any) -> Future[Batch]:
        executor = self.client.get_executor(resources={resource(device): 1}, pure=False)
        submitted: Future[Batch] = executor.submit(_measured_by_worker, device, timer, *arguments)
        self._running[submitted] = device, timer
        submitted.add_done_callback(lambda future: self._running.pop(future, None))
        return submitted

    def does_without(self, batch: Batch) -> bool:
        """Returns True: a worker whose device fails leaves the cluster by itself."""
        return True

    def close(self, is_interrupted: bool) -> None:
        """Waits for interrupted batches of about a second; what takes longer is left to the workers."""
        running = dict(self._running)
        benches = {bench_of(*of) for of in running.values()} if self._local is not None else set()
        try:
            if is_interrupted:
                for bench in benches:
                    bench.interrupt()
                wait(running, GRACE_SECONDS)
                for bench in benches:
                    bench.give_up()
                wait(running if benches else [], LEAVE_SECONDS)
        finally:
            for bench in benches:
                bench.give_up()
            if self._is_ours:
                self.client.close()
            if self._local is not None:
                self._local.close()
            for bench in benches:
                bench.resume()

    def _devices(self) -> list[Device]:
        """Returns all devices that workers advertise, sorted by name; the same kind with another driver is another
        device.

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


def check_encrypted(scheduler: str) -> None:
    """Warns of a scheduler whose port takes anybody's code."""
    if not scheduler.startswith(ENCRYPTED):
        warnings.warn(
            f"whoever reaches {scheduler} can run any code on its workers and here, as it has no TLS: keep the port in "
            "a trusted network, or give a tls:// address and certificates (docs/campaigns.md)",
            PerfmodelWarning,
            stacklevel=3,
        )


def _local_cluster(distributed: Any) -> Any:
    """Returns a scheduler and a worker in this process, which no other process can speak to.

    Measuring processes are apart from it in any case. What Dask serves by HTTP is nothing, and only to this machine.
    """
    import dask  # slow to import

    advertised = resources()
    nothing: dict[str, list[str]] = {"distributed.scheduler.http.routes": [], "distributed.worker.http.routes": []}
    with dask.config.set(nothing):
        return distributed.LocalCluster(
            n_workers=1,
            threads_per_worker=max(1, len(advertised)),
            processes=False,
            memory_limit=0,
            resources=advertised,
            dashboard_address="127.0.0.1:0",
            worker_dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False},
        )


def _measured_by_worker(*arguments: Any) -> Batch:
    """Measures one batch; a worker that can't go on with its device closes soon after, and others get what it
    leaves."""
    batch = measure_batch(*arguments)
    if batch.stopped:
        from distributed import get_worker  # an optional dependency

        worker = get_worker()
        leave = partial(worker.close, executor_wait=False, reason=batch.stopped)
        worker.loop.add_callback(worker.loop.call_later, LEAVE_SECONDS, leave)
    return batch


def _check_answers(scheduler: str) -> None:
    """Raises an error for a scheduler that does not answer, or asks for certificates; a client would try for a
    minute."""
    from distributed.comm import connect  # an optional dependency
    from distributed.security import Security

    async def connected() -> None:
        communication = await connect(
            scheduler if "://" in scheduler else f"tcp://{scheduler}",
            timeout=CONNECT_SECONDS,
            **Security().get_connection_args("client"),
        )
        await communication.close()

    try:
        with noticed() as interruption:
            asked = _beside(connected)  # notebooks have an event loop of their own here
            while not wait([asked], LOOK_SECONDS).done:
                interruption.check()
            asked.result()
    except (OSError, ValueError, TypeError) as error:
        raise PerfmodelError(
            f"no Dask scheduler answers at {scheduler!r} ({error}); start one by `dask scheduler`, and give the "
            "address that it prints"
        ) from error


def _beside(connected: Callable[[], Coroutine[Any, Any, None]]) -> Future[None]:
    """Runs a coroutine in a thread that nobody has to wait for."""
    ended: Future[None] = Future()

    def run() -> None:
        try:
            ended.set_result(asyncio.run(connected()))
        except BaseException as error:
            ended.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return ended


def _distributed() -> Any:
    try:
        import distributed  # an optional dependency
    except ImportError as error:
        raise PerfmodelError(
            "campaigns on a Dask cluster need the package 'distributed'; `pip install 'perfmodel[cluster]'`"
        ) from error
    return distributed
