"""Times one kernel launch: profiling events, arrays touched before, trials by a named protocol."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from perfmodel.basics.errors import KernelError, MeasurementError, nearest
from perfmodel.device.device import CUDA, OPENCL, Device
from perfmodel.device.launch_shape import check_shape
from perfmodel.kernels.arguments import Array, LocalArray, Sampler, Struct, check_known
from perfmodel.kernels.launch import PTX, Launch
from perfmodel.measuring import cuda_launch, opencl_launch
from perfmodel.measuring.prepared import Prepared, item_bytes
from perfmodel.measuring.ptx_texts import EMPTY_NAME, EMPTY_TEXT

STATISTICS: dict[str, Callable[[Sequence[float]], float]] = {
    "min": min,
    "mean": statistics.fmean,
    "median": statistics.median,
}
NEAR_OVERHEAD = "near-launch-overhead"
NOISY = "noisy"

EMPTY = Launch(
    source="__kernel void perfmodel_empty(void) {}",
    kernel_name="perfmodel_empty",
    global_size=(1,),
    local_size=(1,),
    arguments=(),
)
"""A launch of nothing."""
EMPTY_PTX = Launch(
    source=EMPTY_TEXT, kernel_name=EMPTY_NAME, global_size=(1,), local_size=(1,), arguments=(), language=PTX
)


@dataclass(frozen=True)
class Protocol:
    """Says how often a launch is run and what its time is.

    Attributes:
        dropped: leading trials that do not count.
        statistic: ``"min"``, ``"mean"`` or ``"median"`` of the trials kept.
        budget_s: no further trial once this many seconds went by, None for no limit.
        min_trials: trials kept before the budget may end the measurement.
    """

    name: str
    trials: int
    dropped: int
    statistic: str
    budget_s: float | None = None
    min_trials: int = 1

    def __post_init__(self) -> None:
        if self.statistic not in STATISTICS:
            hint = nearest(self.statistic, STATISTICS)
            raise MeasurementError(
                f"protocol {self.name!r} has no statistic {self.statistic!r}: use {_or(STATISTICS)}{hint}"
            )
        if not 0 <= self.dropped < self.trials or not 1 <= self.min_trials <= self.trials - self.dropped:
            raise MeasurementError(
                f"protocol {self.name!r} keeps no trial: raise its trials or lower dropped and min_trials"
            )


PROTOCOLS = {
    protocol.name: protocol
    for protocol in (
        # Stevens and Klöckner 2016, section 4.2: the first run allocates, the second varies more than the rest.
        Protocol("unified", trials=30, dropped=4, statistic="min"),
        # Stevens and Klöckner, the journal version: the mean of 60 trials.
        Protocol("perflex", trials=60, dropped=0, statistic="mean"),
        # For a first look on slow devices.
        Protocol("quick", trials=30, dropped=4, statistic="min", budget_s=2.0, min_trials=3),
    )
}


@dataclass(frozen=True)
class Timing:
    """Holds what a launch took: every trial in seconds, in the order they ran, the dropped ones too."""

    trials: tuple[float, ...]
    dropped: int
    statistic: str
    flags: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        return reduced(self.trials, self.dropped, self.statistic)

    @property
    def spread(self) -> float:
        """The disagreement of the kept trials about the time, as a fraction of it.

        A minimum is sure if others come near it: the distance to the lower quartile. Mean and median are sure if the
        middle half of the trials lies close together: half the distance between the quartiles.
        """
        return _spread(self.trials[self.dropped :], self.statistic)


def reduced(trials: Sequence[float], dropped: int, statistic: str) -> float:
    """Returns the one time, in seconds, that stands for a launch's trials.

    Raises:
        MeasurementError: no trial is left after dropping, or the statistic is unknown.
    """
    kept = trials[dropped:]
    if not kept or statistic not in STATISTICS:
        raise MeasurementError(f"{statistic!r} of {len(kept)} trials is no time: keep one and use {_or(STATISTICS)}")
    return float(STATISTICS[statistic](kept))


def time_launch(
    launch: Launch, device: Device, protocol: Protocol, arrays: Mapping[str, np.ndarray] | None = None
) -> Timing:
    """Times a launch on arrays that are allocated and touched before.

    Args:
        arrays: for each array argument by name, its content in memory order, which every trial starts with; random
            values without it.

    Raises:
        KernelError: the launch does not fit the device, does not compile, or fails.
        MeasurementError: the device's profiling clock gave times that mean nothing.
    """
    trials = _trials(launch, device, protocol, arrays)
    return Timing(trials, protocol.dropped, protocol.statistic, _flags(trials[protocol.dropped :], protocol, device))


def launch_overhead(device: Device) -> float:
    """Returns the seconds that an empty kernel of one work-item takes, the minimum of 30 runs; measured once a process.

    Raises:
        KernelError, MeasurementError: as `time_launch`.
    """
    if device.key not in _overheads:
        launch = EMPTY_PTX if device.runtime == CUDA else EMPTY
        _overheads[device.key] = min(
            _trials(launch, device, Protocol(name="overhead", trials=30, dropped=0, statistic="min"))
        )
    return _overheads[device.key]


_overheads: dict[str, float] = {}


def run_launch(launch: Launch, device: Device, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Runs a launch once on the given host arrays and returns its outputs, for checking them.

    Args:
        arrays: for each array argument by name, its content in memory order; outputs left out start as zeros.

    Returns:
        Each output by name, shaped as the array given for it, else flat.

    Raises:
        KernelError: as `time_launch`, or an array is missing or of another size or dtype than the launch says.
    """
    hosts = _hosts(launch, arrays)
    with _prepared(launch, device) as prepared:
        _write(prepared, hosts)
        prepared.run()
        outputs: dict[str, np.ndarray] = {}
        for argument in launch.arrays():
            if argument.is_output:
                prepared.read(hosts[argument.name].ravel(order="K"), argument.name)
                outputs[argument.name] = hosts[argument.name]
    return outputs


def check_launch(launch: Launch, device: Device) -> None:
    """Refuses a launch that cannot run on the device, before anything is allocated.

    Raises:
        KernelError: sizes that do not match, a work-group that is too large, or arrays that do not fit.
    """
    if (launch.language == PTX) != (device.runtime == CUDA):
        other = CUDA if launch.language == PTX else OPENCL
        raise KernelError(
            f"kernel {launch.kernel_name!r} is {launch.language}, which {device.key} does not run: choose a device of "
            f"{other}, of those that `perfmodel devices` lists"
        )
    check_shape(launch.kernel_name, launch.global_size, launch.local_size)
    for axis, (group, most) in enumerate(zip(launch.local_size, device.max_work_item_sizes, strict=False)):
        if group > most:
            raise _group_too_large(launch, device.key, f"{most} along axis {axis}")
    if math.prod(launch.local_size) > device.max_work_group_size:
        raise _group_too_large(launch, device.key, str(device.max_work_group_size))
    _check_arrays(launch, device)


def array_bytes(launch: Launch) -> int:
    """Returns the bytes of all arrays of a launch.

    Raises:
        KernelError: for an array of a type that numpy doesn't have.
    """
    return sum(array.size * item_bytes(launch, array) for array in launch.arrays())


def _check_arrays(launch: Launch, device: Device) -> None:
    held = [array for argument in launch.arguments if isinstance(argument, Struct) for array in argument.arrays]
    for argument in (*launch.arguments, *held):
        if isinstance(argument, Struct | Sampler):
            continue
        if isinstance(argument, LocalArray):
            if argument.size < 1:
                raise KernelError(
                    f"local memory {argument.name!r} of kernel {launch.kernel_name!r} has no byte: enlarge it"
                )
            continue
        size = item_bytes(launch, argument)
        if isinstance(argument, Array):
            if argument.size < 1:
                raise KernelError(
                    f"array {argument.name!r} of kernel {launch.kernel_name!r} has no element: enlarge it"
                )
            size *= argument.size
            if size > device.max_allocation:
                raise KernelError(
                    f"array {argument.name!r} of kernel {launch.kernel_name!r} takes {size} bytes, more than one "
                    f"allocation on {device.key} may ({device.max_allocation}): use smaller sizes"
                )
    if (total := array_bytes(launch)) > device.global_memory:
        raise KernelError(
            f"kernel {launch.kernel_name!r} needs {total} bytes, more than {device.key} has "
            f"({device.global_memory}): use smaller sizes"
        )


def _group_too_large(launch: Launch, device_key: str, limit: str) -> KernelError:
    return KernelError(
        f"kernel {launch.kernel_name!r} has work-groups of {launch.local_size} work-items, more than {device_key} "
        f"allows ({limit}): use a smaller local size"
    )


@contextmanager
def _prepared(launch: Launch, device: Device) -> Iterator[Prepared]:
    """Yields the launch checked and built, its arguments set, its arrays filled with random values."""
    check_launch(launch, device)
    runtime = cuda_launch if device.runtime == CUDA else opencl_launch
    with runtime.prepared(launch, device) as prepared:
        yield prepared


def _write(prepared: Prepared, hosts: Mapping[str, np.ndarray]) -> None:
    """Copies arrays of the host to the device, and waits for it."""
    for name, host in hosts.items():
        prepared.write(name, host.ravel(order="K"))


def _trials(
    launch: Launch, device: Device, protocol: Protocol, arrays: Mapping[str, np.ndarray] | None = None
) -> tuple[float, ...]:
    trials: list[float] = []
    hosts = {} if arrays is None else _hosts(launch, arrays)
    written = {argument.name for argument in launch.arrays() if argument.is_output}
    with _prepared(launch, device) as prepared:
        copies = Transfers(launch, prepared)
        _write(prepared, hosts)
        started = time.monotonic()  # of the whole measurement, as the user waits for it; never a kernel's time
        while len(trials) < protocol.trials:
            enough = len(trials) >= protocol.dropped + protocol.min_trials
            if enough and protocol.budget_s is not None and time.monotonic() - started > protocol.budget_s:
                break
            _write(prepared, {name: host for name, host in hosts.items() if trials and name in written})
            copying = copies.to_device()
            trials.append(copying + _seconds(prepared, launch, device) + copies.from_device())
    return tuple(trials)


class Transfers:
    """The transfers of a launch, between its arrays on the device and arrays of the host that were touched before."""

    def __init__(self, launch: Launch, prepared: Prepared) -> None:
        self._prepared = prepared
        sizes = {array.name: array.size * item_bytes(launch, array) for array in launch.arrays()}
        hosts = {name: np.ones(sizes[name], np.uint8) for name in {*launch.copied_in, *launch.copied_out}}
        self._in, self._out = (
            [(name, hosts[name]) for name in names] for names in (launch.copied_in, launch.copied_out)
        )
        for name, host in self._in:  # what is copied in later is what the kernel is timed with otherwise
            prepared.write(name, host)

    def to_device(self) -> float:
        """Copies all inputs; returns the seconds by the host's clock, staging and the like included."""
        started = time.perf_counter()
        for name, host in self._in:
            self._prepared.write(name, host)
        return time.perf_counter() - started if self._in else 0.0

    def from_device(self) -> float:
        """Copies all outputs; returns the seconds as `to_device`."""
        started = time.perf_counter()
        for name, host in self._out:
            self._prepared.read(host, name)
        return time.perf_counter() - started if self._out else 0.0


def _seconds(prepared: Prepared, launch: Launch, device: Device) -> float:
    """Runs a launch once; returns what the device's clock says that it took."""
    seconds = prepared.run()
    if not seconds > 0:
        raise MeasurementError(
            f"the profiling clock of {device.key} gave {1e9 * seconds:.10g} ns for kernel {launch.kernel_name!r}: use "
            "larger sizes, or another driver if it happens again"
        )
    return seconds


def _flags(kept: Sequence[float], protocol: Protocol, device: Device) -> tuple[str, ...]:
    """Returns flags for what makes a time doubtful: these are data, and the fit leaves them out by rule."""
    flags = []
    overhead, seconds = launch_overhead(device), reduced(kept, 0, protocol.statistic)
    if seconds < 3 * overhead:
        flags.append(NEAR_OVERHEAD)
    # The launch itself varies by about as much as it takes; a time is noisy where it varies by more than that.
    if _spread(kept, protocol.statistic) * seconds > max(0.1 * seconds, overhead):
        flags.append(NOISY)
    return tuple(flags)


def _spread(kept: Sequence[float], statistic: str) -> float:
    if len(kept) < 2:
        return 0.0
    lower, median, upper = statistics.quantiles(kept, n=4, method="inclusive")
    return lower / min(kept) - 1 if statistic == "min" else (upper - lower) / 2 / median


def _hosts(launch: Launch, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns a contiguous host array for each array argument: a copy of the given one, zeros for an output left
    out."""
    known = {argument.name: argument for argument in launch.arrays()}
    check_known(launch.kernel_name, arrays, known, "array")
    hosts = {}
    for name, argument in known.items():
        if name in arrays:
            host = np.array(arrays[name], order="K")
        elif argument.is_output:
            host = np.zeros(argument.size, argument.dtype)
        else:
            raise KernelError(f"input {name!r} of kernel {launch.kernel_name!r} is missing: give it in arrays")
        if host.size != argument.size or host.dtype.name != argument.dtype:
            raise KernelError(
                f"array {name!r} of kernel {launch.kernel_name!r} has {host.size} elements of {host.dtype}: give "
                f"{argument.size} of {argument.dtype}"
            )
        hosts[name] = host
    return hosts


def _or(names: Mapping[str, Any]) -> str:
    return " or ".join(map(repr, names))
