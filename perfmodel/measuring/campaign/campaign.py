"""A campaign: kernels, measured on devices under one protocol, with every time in a store as soon as it is known."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from numbers import Real
from typing import TYPE_CHECKING

from perfmodel.basics.brief import brief, number_of
from perfmodel.basics.errors import DeviceError, MeasurementError, nearest
from perfmodel.device import Device
from perfmodel.kernels.kernel import Kernel, as_kernels
from perfmodel.kernels.program import runtime_of
from perfmodel.measuring.campaign.place import Place
from perfmodel.measuring.campaign.plan import Plan
from perfmodel.measuring.campaign.result import CampaignResult
from perfmodel.measuring.campaign.run import Run
from perfmodel.measuring.campaign.this_machine import ThisMachine
from perfmodel.measuring.campaign.work import DeviceWork
from perfmodel.measuring.isolation.child import DEVICE_TIMER
from perfmodel.measuring.isolation.interruption import noticed
from perfmodel.measuring.isolation.process import ProcessLimits
from perfmodel.measuring.protocol import PROTOCOLS, Protocol
from perfmodel.measuring.store import Store, looked_into

if TYPE_CHECKING:
    from distributed import Client


class Campaign:
    """Kernels to be measured on devices; what the store holds is not measured again.

    Args:
        devices: as `find_device` takes them; the best device of this machine if left out, or all of a cluster's.
        protocol: a name of `PROTOCOLS`, or your own.
        store: an open store, or the path of one. None keeps nothing.
        scheduler: a Dask scheduler's address, ``"local"``, or a `distributed.Client`; None measures in this machine's
            own processes.
        limits: what one measurement may take.
        retry: whether to measure again what failed before, and what was disturbed or noisy.
        timer: what times launches, as ``module:function``; for simulations.

    Raises:
        MeasurementError: there is no kernel, or the protocol is unknown.
        DeviceError: a device is not there.
        PerfmodelError: no scheduler answers.
    """

    def __init__(
        self,
        kernels: Iterable[Kernel],
        devices: Sequence[Device | str] | None = None,
        *,
        protocol: Protocol | str = "unified",
        store: Store | str | os.PathLike[str] | None = None,
        scheduler: str | Client | None = None,
        limits: ProcessLimits | None = None,
        retry: bool = False,
        timer: str = DEVICE_TIMER,
    ) -> None:
        self.kernels = as_kernels(kernels)
        if not self.kernels:
            raise MeasurementError("there is no kernel to measure; the tags or the list are empty")
        if isinstance(devices, str):
            raise DeviceError(f"the devices {devices!r} are a text; give a list of them")
        self._runtime = runtime_of(kernel.program for kernel in self.kernels)
        self.protocol = protocol_called(protocol)
        self.limits = limits or ProcessLimits()
        self._store = store
        self._scheduler = scheduler
        self._devices = devices
        self._retry = retry
        self._timer = timer

    def plan(self) -> Plan:
        """Returns what `run` would do, without doing it."""
        with self._opened(only_looks=True) as (store, place):
            return Plan([work.share() for work in self._work(store, place, self._retry)])

    def run(self, *, progress: bool | None = None, budget_s: float | None = None) -> CampaignResult:
        """Measures all kernels that the store has no time of.

        Args:
            progress: whether to show a progress bar; by default on a terminal, for what lasts over two seconds.
            budget_s: no further kernel is measured once measuring took so many seconds; at least one is, unless this
                is 0. The kernels' families then alternate, so that what is reached is a part of each.

        Raises:
            MeasurementError: the budget is negative.
            StoreError: a time can't be written; all until then are.
            KeyboardInterrupt: somebody wanted an end; what was measured until then is stored.
        """
        check_budget(budget_s)
        with noticed() as interruption, self._opened() as (store, place):
            work = self._work(store, place, self._retry and not store.refusal)
            started = time.monotonic()
            if budget_s is not None:
                for each in work:
                    each.take_turns()
            if budget_s != 0 and any(each.is_waiting for each in work):
                Run(work, place, self.protocol, self.limits, self._timer, budget_s, interruption).measure(progress)
            return CampaignResult([each.results() for each in work], time.monotonic() - started)

    @contextmanager
    def _opened(self, only_looks: bool = False) -> Iterator[tuple[Store, Place]]:
        """Yields a store and an executor; a store that the caller opened stays open, a path is opened once devices are
        found."""
        place: Place = ThisMachine()
        if self._scheduler is not None:
            from perfmodel.measuring.campaign.cluster import Cluster  # slow to import

            place = Cluster(self._scheduler)
        is_interrupted = True
        try:
            with looked_into(self._store) as store:
                place.chosen(self._devices, store, self._runtime)
                if only_looks:
                    yield store, place
            if not only_looks:
                with nullcontext(self._store) if isinstance(self._store, Store) else Store(self._store) as store:
                    yield store, place
            is_interrupted = False
        finally:
            place.close(is_interrupted)

    def _work(self, store: Store, place: Place, retry: bool) -> list[DeviceWork]:
        chosen = dict.fromkeys(place.chosen(self._devices, store, self._runtime))
        return [DeviceWork(device, self.kernels, self.protocol, store, place.has(device), retry) for device in chosen]

    def __repr__(self) -> str:
        devices = ", ".join(str(getattr(each, "key", each)) for each in self._devices or ())
        return brief(
            self, number_of(len(self.kernels), "kernel"), f"protocol {self.protocol.name}", devices and f"on {devices}"
        )


def check_budget(budget_s: float | None) -> None:
    """Raises MeasurementError for a budget that is negative or no number."""
    if budget_s is None:
        return
    if not isinstance(budget_s, Real):
        raise MeasurementError(f"a budget of {budget_s!r} is none; give seconds, or 0 to measure nothing new")
    if not budget_s >= 0:
        raise MeasurementError(f"a budget of {budget_s:g} s is none; give seconds, or 0 to measure nothing new")


def protocol_called(protocol: Protocol | str) -> Protocol:
    """Returns a protocol as it is, or the preset of this name.

    Raises:
        MeasurementError: there is none.
    """
    if isinstance(protocol, Protocol):
        return protocol
    if not isinstance(protocol, str) or protocol not in PROTOCOLS:
        raise MeasurementError(
            f"no protocol {protocol!r}{nearest(str(protocol), PROTOCOLS)} (known: {', '.join(sorted(PROTOCOLS))})"
        )
    return PROTOCOLS[protocol]
