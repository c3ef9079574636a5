"""The loop of a campaign: batches are handed out, come back, and are stored."""

from __future__ import annotations

import math
import queue
import time
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress

from perfmodel.basics.errors import StoreError
from perfmodel.basics.progress import Progress
from perfmodel.measuring.campaign.place import Place
from perfmodel.measuring.campaign.progress import show
from perfmodel.measuring.campaign.work import DeviceWork
from perfmodel.measuring.isolation.bench import BATCH_SECONDS, Batch, Task
from perfmodel.measuring.isolation.interruption import LOOK_SECONDS, Interruption
from perfmodel.measuring.isolation.process import ProcessLimits
from perfmodel.measuring.protocol import Protocol

# Tasks of a batch; more than a second's worth come back unmeasured.
BATCH_TASKS = 32
# So long without any worker that has a device, and it is given up.
LOST_SECONDS = 60.0
WAKE_SECONDS = 0.5


class Run:
    """One run of a campaign over the work of its devices, by an executor."""

    def __init__(
        self,
        work: Sequence[DeviceWork],
        place: Place,
        protocol: Protocol,
        limits: ProcessLimits,
        timer: str,
        budget_s: float | None,
        interruption: Interruption | None = None,
    ) -> None:
        self._work = work
        self._place = place
        self._protocol, self._limits, self._timer = protocol, limits, timer
        self._interruption = interruption or Interruption()
        self._end = math.inf if budget_s is None else time.monotonic() + budget_s
        self._running: dict[Future[Batch], tuple[DeviceWork, list[Task]]] = {}
        self._counts = dict.fromkeys(work, 0)
        """Running batches of each device."""
        self._seen = dict.fromkeys(work, time.monotonic())
        """The time at which each device was last seen (`time.monotonic`)."""
        self._ended: queue.Queue[Future[Batch]] = queue.Queue()
        """Batches that came back. A `SimpleQueue` whose wait a signal interrupts at its end waits on forever (3.11)."""

    def measure(self, progress: bool | None) -> None:
        """Measures until nothing is left, or the budget is spent.

        Raises:
            StoreError: what came back can't be stored; all until then is.
            KeyboardInterrupt: what came back until then, and soon after, is stored.
        """
        try:
            with Progress(sum(each.missing for each in self._work), progress) as bar:
                while True:
                    for each in self._work:
                        self._hand_out(each)
                    if not self._running and (self._is_spent() or not any(each.is_waiting for each in self._work)):
                        break
                    self._take_what_ends(WAKE_SECONDS)
                    show(bar, self._work)
        except BaseException:  # interrupted, or the store can't be written: what is known is kept as far as possible
            self._interruption.heed()
            self._place.close(is_interrupted=True)
            with suppress(StoreError):
                while not self._ended.empty():
                    self._next(0.0)
            raise
        finally:
            with suppress(StoreError):
                for each in self._work:
                    each.settle()

    def _take_what_ends(self, seconds: float) -> None:
        """Takes batches that come back within so many seconds, and hands out others instead."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._interruption.check()
            if ended := self._next(min(left, LOOK_SECONDS)):
                self._hand_out(ended)
            if not self._running:
                break
        self._interruption.check()

    def _is_spent(self) -> bool:
        return time.monotonic() > self._end and any(each.has_times for each in self._work)

    def _hand_out(self, each: DeviceWork) -> None:
        """Hands out as many batches of a device as there is room for."""
        if self._is_spent():
            return
        if not each.is_waiting and not self._counts[each]:
            each.begin_pass()
        if not each.is_waiting and not self._counts[each]:
            return
        room = self._place.capacity(each.device)
        if room:
            self._seen[each] = time.monotonic()
        elif time.monotonic() - self._seen[each] > LOST_SECONDS:
            self._give_up(each)
        while each.is_waiting and self._counts[each] < room:
            tasks = each.next_tasks(BATCH_TASKS, self._interruption.is_asked)
            self._interruption.check()
            if not tasks:
                continue
            seconds = min(BATCH_SECONDS, max(0.0, self._end - time.monotonic()))
            arguments = (tasks, self._protocol, self._limits, seconds, each.patience_s)
            future = self._place.submit(each.device, self._timer, *arguments)
            self._running[future] = each, tasks
            self._counts[each] += 1
            future.add_done_callback(self._ended.put)

    def _give_up(self, each: DeviceWork) -> None:
        last = f" (the last one: {each.last_stop})" if each.last_stop else ""
        each.stopped = f"no worker of {self._place.name} has {each.device.key} any more{last}; start one and run again"
        for future in [future for future, (owner, _) in self._running.items() if owner is each]:
            each.lose(self._running.pop(future)[1])
            self._counts[each] -= 1
            future.cancel()

    def _next(self, timeout_s: float) -> DeviceWork | None:
        """Waits for the next batch, stores it, and returns the work that it belongs to; None if none comes back in
        time."""
        try:
            future = self._ended.get(timeout=timeout_s) if timeout_s else self._ended.get_nowait()
        except queue.Empty:
            return None
        if future not in self._running:  # given up meanwhile
            return None
        each, tasks = self._running.pop(future)
        self._counts[each] -= 1
        try:
            batch = future.result()
        except Exception as error:  # whatever happens on the way to another machine and back
            each.lose(tasks)
            if type(error).__name__ != "KilledWorker":  # of that, only the batch is lost
                each.stopped = f"a batch did not come back ({type(error).__name__}: {error}); run again to go on"
            return each
        each.take(batch, tasks)
        if batch.stopped:
            each.last_stop = batch.stopped
            if not self._place.does_without(batch):
                each.stopped = batch.stopped
        return each
