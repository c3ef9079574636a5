"""One device under measurement: batches of launches between two timings of the reference kernel.

A batch is what a campaign hands to a thread or a Dask worker. It ends after about a second, so that little is at stake
when its machine is lost, and so that what a busy while spoilt is known soon after.
"""

from __future__ import annotations

import atexit
import math
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from perfmodel.basics.errors import KernelError, MeasurementError, PerfmodelError
from perfmodel.basics.provenance import versions
from perfmodel.device import Device
from perfmodel.kernels.launch import Launch
from perfmodel.measuring.isolation.child import DEVICE_TIMER, Timer
from perfmodel.measuring.isolation.interruption import noticed
from perfmodel.measuring.isolation.locks import held
from perfmodel.measuring.isolation.memory import available
from perfmodel.measuring.isolation.process import Asked, MeasuringProcess, ProcessEndedError, ProcessLimits, never
from perfmodel.measuring.isolation.reference import Reference
from perfmodel.measuring.protocol import Protocol, Timing, array_bytes

BATCH_SECONDS = 1.0
# A reference timed so many seconds ago still tells how fast the device is.
FRESH_SECONDS = 0.2
# A kernel whose process ends by itself is tried once more, as something else may have ended it; one whose process was
# killed by SIGKILL more often, as whoever does so rarely means the kernel. No kernel is tried more often than that.
ATTEMPTS, KILLED_ATTEMPTS = 2, 4
# So many kernels in a row that end their process are the driver's fault rather than theirs.
FAILURES_IN_A_ROW = 5


@dataclass(frozen=True)
class Task:
    """A launch to be timed, under the key of its measurement."""

    key: str
    launch: Launch


@dataclass(frozen=True)
class Measured:
    """Holds what became of a task: a timing, or the reason why there is none.

    Attributes:
        cost_s: seconds that it took, all attempts included.
    """

    key: str
    timing: Timing | None
    reason: str
    cost_s: float


@dataclass(frozen=True)
class Batch:
    """Holds what became of a batch.

    Attributes:
        done: in order; tasks that time did not reach are not among them.
        around_s: the slower of the reference's times before and after.
        best_s: the reference's best time there.
        place: the machine's name.
        versions: of the packages that took part.
        stopped: why nothing more can be measured there; empty if all is well.
    """

    done: tuple[Measured, ...]
    around_s: float
    best_s: float
    place: str
    versions: dict[str, str]
    stopped: str = ""


class DriverError(Exception):
    """Raised where the device is of no use: not even the reference kernel runs."""


class Bench:
    """A device, with the process that measures on it and the reference kernel."""

    def __init__(self, device: Device, timer: str = DEVICE_TIMER) -> None:
        self.device = device
        self._timer = timer
        self._process: MeasuringProcess | None = None
        self._reference = Reference(device, lambda launch, protocol: self.time(launch, protocol, ProcessLimits(60.0)))
        self._last: tuple[float, float] = (-math.inf, 0.0)
        self._in_a_row = 0
        self._failure = ""
        self._is_interrupted, self._is_given_up = threading.Event(), threading.Event()

    def measure(
        self, tasks: Sequence[Task], protocol: Protocol, limits: ProcessLimits, seconds: float, patience_s: float = 0.0
    ) -> Batch:
        """Times tasks until they are done or the seconds are spent; the first is timed in any case.

        Args:
            patience_s: so long it waits for an undisturbed device.
        """
        done: list[Measured] = []
        before = around = math.inf
        stopped = self._failure = ""
        try:
            with held(self.device, self._is_interrupted.is_set):
                if patience_s:
                    self._reference.wait(patience_s, self._is_interrupted.is_set)
                before = self._reference_seconds(FRESH_SECONDS)
                end = time.monotonic() + seconds
                for task in tasks:
                    done.append(self._measured(task, protocol, limits))
                    if self._failure:
                        raise DriverError(self._failure)
                    if time.monotonic() >= end or self._is_interrupted.is_set():
                        break
                around = max(before, self._reference_seconds())
        except (DriverError, PerfmodelError) as error:
            stopped = str(error)
            if self._is_interrupted.is_set():  # then nobody waits for the reference, and nothing speaks against before
                around = before
        return Batch(
            done=tuple(done),
            around_s=around,
            best_s=self._reference.best,
            place=socket.gethostname(),
            versions=versions(),
            stopped=stopped,
        )

    def time(self, launch: Launch, protocol: Protocol, limits: ProcessLimits, is_given_up: Asked = never) -> Timing:
        """Times one launch by itself.

        Args:
            is_given_up: asked meanwhile; once it says yes, the launch is ended.

        Raises:
            KernelError: as `time_launch`.
            ProcessEndedError: the launch ended the measuring process, or was given up.
            DeviceError: the device can't be used.
        """
        if self._process is None or not self._process.is_usable:
            # Nothing is lost with a start, which may hang in a driver.
            self._process = MeasuringProcess(
                self.device, self._timer, lambda: is_given_up() or self._is_interrupted.is_set()
            )
        return self._process.time(launch, protocol, limits, lambda: is_given_up() or self._is_given_up.is_set())

    def interrupt(self) -> None:
        """Lets the batch that is under way, and all others until `resume`, end after the present launch."""
        self._is_interrupted.set()

    def give_up(self) -> None:
        """Ends the batch, and the present launch as well, of which nothing is reported."""
        self._is_interrupted.set()
        self._is_given_up.set()

    def resume(self) -> None:
        """Allows measuring again, once the batches that were to end have ended."""
        self._is_interrupted.clear()
        self._is_given_up.clear()

    def close(self) -> None:
        if self._process is not None:
            self._process.close()

    def _measured(self, task: Task, protocol: Protocol, limits: ProcessLimits) -> Measured:
        started = time.monotonic()
        timing, reason = self._attempted(task.launch, protocol, limits)
        return Measured(task.key, timing, reason, time.monotonic() - started)

    def _attempted(self, launch: Launch, protocol: Protocol, limits: ProcessLimits) -> tuple[Timing | None, str]:
        attempts = crashes = 0
        while True:
            try:
                self._check_memory(launch)
                timing = self.time(launch, protocol, limits)
                self._in_a_row = 0
                return timing, ""
            except PerfmodelError as error:
                return None, str(error)
            except ProcessEndedError as error:
                if self._is_interrupted.is_set():
                    if error.is_certain:
                        return None, str(error)
                    raise DriverError("interrupted") from error
                attempts += 1
                crashes += not error.was_killed
                is_last = error.is_certain or crashes >= ATTEMPTS or attempts >= KILLED_ATTEMPTS
                self._in_a_row += is_last
                self._failure = self._driver_failure(str(error))
                if self._is_interrupted.is_set():  # which is why the reference did not run, if it did not
                    self._failure = ""
                    if not is_last:
                        raise DriverError("interrupted") from error
                if self._failure:
                    return None, f"{error}; the driver failed with it, so that it may not be this kernel's fault"
                if is_last:
                    return None, str(error)

    def _driver_failure(self, reason: str) -> str:
        """Returns why the driver, rather than the kernel that ended the process, is at fault; empty if it is not."""
        try:
            self._reference_seconds()
        except DriverError as error:
            return str(error)
        if self._in_a_row < FAILURES_IN_A_ROW:
            return ""
        self._in_a_row = 0
        return (
            f"{FAILURES_IN_A_ROW} kernels in a row ended their process on {self.device.key} (the last: {reason}); "
            "look at the driver by `perfmodel doctor`, then run again to go on"
        )

    def _check_memory(self, launch: Launch) -> None:
        """Refuses arrays that a processor has no memory for: it is the machine's, which others use as well."""
        if self.device.kind != "cpu":
            return
        wanted, free = array_bytes(launch), available()
        if wanted > free:
            raise KernelError(
                f"kernel {launch.kernel_name!r} needs {wanted} bytes, more than the {free} that are free on this "
                "machine: use smaller sizes, or free memory and try again"
            )

    def _reference_seconds(self, fresh_s: float = 0.0) -> float:
        """Returns the reference's time, of now or of so many seconds ago; a second process is tried where the first
        fails."""
        at, seconds = self._last
        if time.monotonic() - at < fresh_s:
            return seconds
        for is_last in (False, True):
            try:
                seconds = self._reference.seconds()
                break
            except (PerfmodelError, ProcessEndedError) as error:
                self.close()
                self._last = (-math.inf, 0.0)
                if is_last or self._is_interrupted.is_set():
                    raise DriverError(
                        f"not even a small kernel runs on {self.device.key} ({error}); look at the driver by "
                        "`perfmodel doctor`, then run again to go on"
                    ) from error
        self._last = time.monotonic(), seconds
        return seconds


_benches: dict[tuple[str, str], Bench] = {}
_opening = threading.Lock()


@atexit.register
def _close_all() -> None:
    """Closes all benches, so that no measuring process stays on a device after the program."""
    for bench in _benches.values():
        bench.close()


def bench_of(device: Device, timer: str = DEVICE_TIMER) -> Bench:
    """Returns this process's bench of a device, whose measuring process is kept from one campaign to the next."""
    with _opening:
        return _benches.setdefault((device.key, timer), Bench(device, timer))


@contextmanager
def isolated_timer(device: Device, limits: ProcessLimits | None = None) -> Iterator[Timer]:
    """Yields a timer of launches in a device's measuring process; the device is held meanwhile.

    It raises what `time_launch` raises, and MeasurementError for a launch that ended the process. Ctrl-C ends a launch.
    """
    bench = bench_of(device)
    with noticed() as interruption, held(device, interruption.is_asked):

        def timer(launch: Launch, protocol: Protocol) -> Timing:
            try:
                return bench.time(launch, protocol, limits or ProcessLimits(), interruption.is_asked)
            except ProcessEndedError as error:
                interruption.check()
                raise MeasurementError(str(error)) from error

        yield timer


def measure_batch(
    device: Device,
    timer: str,
    tasks: Sequence[Task],
    protocol: Protocol,
    limits: ProcessLimits,
    seconds: float,
    patience_s: float,
) -> Batch:
    """Measures on this process's bench, as `Bench.measure`; threads and Dask workers call it."""
    return bench_of(device, timer).measure(tasks, protocol, limits, seconds, patience_s)
