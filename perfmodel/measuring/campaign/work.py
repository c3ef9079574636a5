"""One device's part of a campaign: which kernels are left, what became of the others, and what to measure again."""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any

from perfmodel.basics.errors import KernelError, PerfmodelError
from perfmodel.basics.provenance import versions
from perfmodel.device import Device
from perfmodel.kernels.kernel import Kernel
from perfmodel.measuring.campaign.plan import DeviceShare
from perfmodel.measuring.campaign.result import FAILED, LOST, NOT_HERE, NOT_REACHED, STOPPED, DeviceResult, Result
from perfmodel.measuring.isolation.bench import Batch, Task
from perfmodel.measuring.isolation.reference import DISTURBED, is_disturbed
from perfmodel.measuring.protocol import NEAR_OVERHEAD, NOISY, Protocol, Timing, array_bytes, check_launch
from perfmodel.measuring.store import Failure, Measurement, Store, measurement_key

# A kernel measured while something else slowed the device down is measured again, so often and after waiting so long.
ATTEMPTS = 4
WAIT_SECONDS = 5.0


class DeviceWork:
    """The kernels of a campaign on one device.

    Args:
        is_reachable: whether the device can measure now; otherwise only the store has times of it.
        retry: whether what failed before, or is doubtful in the store, is measured again.
    """

    def __init__(
        self,
        device: Device,
        kernels: Sequence[Kernel],
        protocol: Protocol,
        store: Store,
        is_reachable: bool,
        retry: bool,
    ) -> None:
        self.device = device
        self.stopped = self.last_stop = ""
        self.passes = 0
        self._protocol = protocol
        self._store = store
        self._is_reachable = is_reachable
        self._fingerprint = device.fingerprint()
        self._keys = [measurement_key(k.program.content, k.sizes, self._fingerprint, protocol) for k in kernels]
        self._kernels = dict(zip(self._keys, kernels, strict=True))
        self._results: dict[str, Result] = {}
        self._new: dict[str, tuple[str, ...]] = {}
        """Flags of what was measured now, in the order in which it was."""
        self._around: dict[str, tuple[str, float]] = {}
        self._best: dict[str, float] = {}
        self._tries: Counter[str] = Counter()
        self._look_up(retry)
        self._known = len(self._results)
        self._queue = deque(key for key in self._kernels if key not in self._results)
        self._missing = len(self._queue)
        if self.is_waiting:
            self.stopped = store.refusal  # what can't be kept is not measured

    @property
    def is_waiting(self) -> bool:
        """True while there are kernels to hand out."""
        return bool(self._queue) and self._is_reachable and not self.stopped

    @property
    def missing(self) -> int:
        """The number of kernels that the store had neither a time nor a failure of."""
        return self._missing if self._is_reachable else 0

    @property
    def done(self) -> int:
        return len(self._results) - self._known

    @property
    def failed(self) -> int:
        return len(self._results) - self._known - len(self._new)

    @property
    def has_times(self) -> bool:
        return bool(self._new)

    @property
    def patience_s(self) -> float:
        """Seconds to wait for an undisturbed device: none at first."""
        return WAIT_SECONDS if self.passes else 0.0

    def take_turns(self) -> None:
        """Orders the queue: first one kernel of each family, then the second of each, and so on; within a family, by
        key.

        Keys are hashes, so that this order is as good as random, and the same in every process.
        """
        families: dict[str, list[str]] = {}
        for key in sorted(self._kernels):  # also what the store has: the next run goes on where this one ends
            families.setdefault(self._kernels[key].name, []).append(key)
        turns = itertools.zip_longest(*families.values())
        waiting = set(self._queue)
        self._queue = deque(key for turn in turns for key in turn if key in waiting)

    def next_tasks(self, count: int, is_interrupted: Callable[[], bool]) -> list[Task]:
        """Returns the next launches, as far as there is time; a kernel that can't even be launched fails here and
        now."""
        tasks: list[Task] = []
        failures: list[Failure] = []
        while self._queue and len(tasks) < count and not is_interrupted():
            key = self._queue.popleft()
            try:
                tasks.append(Task(key, self._kernels[key].launch()))
            except PerfmodelError as error:
                failures.append(self._failure(key, str(error), {}, versions()))
        if failures:
            self._store.put_many([], failures)
        return tasks

    def put_back(self, tasks: Iterable[Task]) -> None:
        """Puts tasks that were not reached in front of the queue."""
        self._queue.extendleft(task.key for task in reversed(list(tasks)))

    def take(self, batch: Batch, tasks: Sequence[Task]) -> None:
        """Takes what became of a batch, and stores it at once, in one transaction."""
        self._best[batch.place] = min(batch.best_s, self._best.get(batch.place, math.inf))
        measurements, failures = [], []
        for each in batch.done:
            self._tries[each.key] += 1
            conditions = {"host": batch.place, "cost_s": each.cost_s, "reference_s": batch.around_s}
            if each.timing is None:
                if each.key not in self._new:
                    failures.append(self._failure(each.key, each.reason, conditions, batch.versions))
            elif self._is_better(each.key, each.timing, batch):
                self._around[each.key] = batch.place, batch.around_s
                measurements.append(self._measurement(each.key, each.timing, conditions, batch.versions))
        self._store.put_many(measurements, failures)
        reached = {each.key for each in batch.done}
        self.put_back(task for task in tasks if task.key not in reached)

    def lose(self, tasks: Iterable[Task]) -> None:
        """Gives up tasks of which nothing came back; running again goes on with them."""
        for task in tasks:
            self._results.setdefault(task.key, Result(math.nan, (LOST,), task.key))

    def begin_pass(self) -> None:
        """Queues what was disturbed or noisy, as long as there are attempts left."""
        again = [
            key
            for key, flags in self._new.items()
            if self._tries[key] < ATTEMPTS and (self._is_disturbed(key) or NOISY in flags)
        ]
        if again and not self.stopped:
            self.passes += 1
            self._queue.extend(again)

    def settle(self) -> None:
        """Marks what is still disturbed, by the best that was seen in the end."""
        late = [key for key, flags in self._new.items() if self._is_disturbed(key) and DISTURBED not in flags]
        if not late:
            return
        marked = [replace(found, flags=(*found.flags, DISTURBED)) for found in self._store.get_many(late).values()]
        self._store.put_many(marked)
        for measurement in marked:
            self._keep(measurement)

    def share(self) -> DeviceShare:
        """Returns what is to be done, and how long it will take by the costs of what was done before."""
        costs = self._store.costs(self.device.key)
        missing = {key: self._kernels[key] for key in self._queue}
        like = [costs[kernel.name] for kernel in missing.values() if kernel.name in costs]
        mean = statistics.fmean(costs.values()) if costs else None
        impossible: dict[str, str] = {}
        sizes = {"": 0}
        for kernel in missing.values():
            try:
                launch = kernel.launch()
                check_launch(launch, self.device)
                sizes[kernel.label] = array_bytes(launch)
            except KernelError as error:
                impossible[kernel.label] = str(error)
        largest = max(sizes, key=lambda label: sizes[label])
        return DeviceShare(
            device=self.device,
            kernels=len(self._kernels),
            known=sum(math.isfinite(result.seconds) for result in self._results.values()),
            failed=sum(not math.isfinite(result.seconds) for result in self._results.values()),
            missing=len(missing),
            seconds=None if mean is None else sum(like) + mean * (len(missing) - len(like)),
            like=len(like),
            largest_bytes=sizes[largest],
            largest=largest,
            impossible=impossible,
        )

    def results(self) -> DeviceResult:
        without = STOPPED if self.stopped else NOT_REACHED if self._is_reachable else NOT_HERE
        rows = tuple(self._results.get(key) or Result(math.nan, (without,), key) for key in self._keys)
        labels = tuple(self._kernels[key].label for key in self._keys)
        return DeviceResult(
            device=self.device, results=rows, labels=labels, new=len(self._new), known=self._known, stopped=self.stopped
        )

    def _look_up(self, retry: bool) -> None:
        """Takes times and failures from the store, unless they are to be measured again."""
        for key, found in self._store.get_many(self._kernels).items():
            if not (retry and self._is_reachable and {DISTURBED, NOISY} & set(found.flags)):
                self._results[key] = Result(found.seconds, self._doubts(key, found.flags), key)
        if retry and self._is_reachable:
            return
        for key, failure in self._store.failures(self._kernels).items():
            self._results[key] = Result(math.nan, (f"{FAILED}: {failure.reason}",), key)

    def _is_better(self, key: str, timing: Timing, batch: Batch) -> bool:
        """Returns True if a time should replace the one that was measured before: undisturbed first, then quiet."""
        if key not in self._around:
            return True
        place, around = self._around[key]
        now, before = batch.around_s / self._best[batch.place], around / self._best[place]
        return (is_disturbed(now, 1.0), NOISY in timing.flags, now) <= (
            is_disturbed(before, 1.0),
            NOISY in self._new[key],
            before,
        )

    def _is_disturbed(self, key: str) -> bool:
        place, around = self._around[key]
        return is_disturbed(around, self._best[place])

    def _measurement(
        self, key: str, timing: Timing, conditions: Mapping[str, object], of_packages: dict[str, str]
    ) -> Measurement:
        flags = (*timing.flags, DISTURBED) if self._is_disturbed(key) else timing.flags
        measurement = Measurement(
            **self._described(key, conditions, of_packages),
            trials=timing.trials,
            dropped=timing.dropped,
            statistic=timing.statistic,
            flags=flags,
        )
        self._keep(measurement)
        return measurement

    def _keep(self, measurement: Measurement) -> None:
        key = measurement.key
        self._new[key] = measurement.flags
        self._results[key] = Result(measurement.seconds, self._doubts(key, measurement.flags), key)

    def _failure(self, key: str, reason: str, conditions: Mapping[str, object], of_packages: dict[str, str]) -> Failure:
        self._results[key] = Result(math.nan, (f"{FAILED}: {reason}",), key)
        return Failure(**self._described(key, conditions, of_packages), reason=reason)

    def _described(self, key: str, conditions: Mapping[str, object], of_packages: dict[str, str]) -> dict[str, Any]:
        """Returns the fields that rows of measurements and of failures share."""
        kernel = self._kernels[key]
        return {
            "key": key,
            "kernel": kernel.name,
            "content": kernel.program.content,
            "sizes": kernel.sizes,
            "tags": dict(kernel.tags),
            "device": self._fingerprint,
            "protocol": asdict(self._protocol),
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "versions": of_packages,
            "conditions": dict(conditions),
        }

    def _doubts(self, key: str, flags: Sequence[str]) -> tuple[str, ...]:
        """Returns the flags that matter: a kernel that does nothing is not flagged for being as short as the launch
        overhead."""
        does_nothing = NEAR_OVERHEAD in flags and not self._kernels[key].launch().arrays()
        return tuple(flag for flag in flags if not (does_nothing and flag == NEAR_OVERHEAD))
