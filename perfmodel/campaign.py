"""Many kernels measured in this process: every time comes from the store or goes into it at once."""

from __future__ import annotations

import itertools
import os
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from perfmodel.device import Device
from perfmodel.errors import KernelError, MeasurementError, nearest
from perfmodel.kernel import Kernel
from perfmodel.measurement import NEAR_OVERHEAD, NOISY, PROTOCOLS, Protocol, Timing, time_launch
from perfmodel.provenance import versions
from perfmodel.reference import DISTURBED, Reference
from perfmodel.store import Measurement, Store, measurement_key
from perfmodel.vocabulary import Feature, MeasuredFeature, evaluate_all, number

if TYPE_CHECKING:
    import pandas as pd

    from perfmodel.model import Model

FAILED = "failed"
NOT_REACHED = "not reached within the budget"
"""The flag of a kernel that was neither in the store nor measured before the budget was spent."""
NOT_HERE = "not in the store, and its device is not on this machine"
"""The flag of a kernel whose time only the store could have had."""
# A kernel measured while something else slowed the device down is measured again, so often and after waiting so long.
ATTEMPTS = 4
WAIT_SECONDS = 5.0


class MeasurementWarning(UserWarning):
    """A kernel that could not be measured; its row has no time, and its flags say so."""


def measure(
    kernels: Kernel | Iterable[Kernel],
    model: Model | Iterable[Model],
    *,
    device: Device | str | None = None,
    store: Store | str | os.PathLike[str] | None = None,
    protocol: Protocol | str = "unified",
    progress: bool | None = None,
    budget_s: float | None = None,
) -> pd.DataFrame:
    """The feature table of kernels: one row a kernel, one column a feature.

    Args:
        model: whose features are wanted; several models share one output feature and the measurements.
        device: a device, its key, or part of its name; the best device found if left out. One that is not on this
            machine, but that the store has times of, gives those.
        store: where times are kept; what it already holds is not measured again. None keeps nothing.
        protocol: how often a kernel runs and what its time is: a name of `PROTOCOLS`, or your own.
        progress: whether to show a progress bar; by default on a terminal, for what lasts over two seconds.
        budget_s: no further kernel is measured once measuring took so many seconds; at least one is, unless this is 0.
            The kernels' families then take turns, so that what is reached is a part of each. What the store holds
            costs nothing: calling again goes on.

    Returns:
        Columns ``kernel``, ``variant``, ``sizes``, the output feature, every input feature, ``flags`` and ``key``
        (of the store); the index is a label for each row, ``attrs`` hold the device's fingerprint and the protocol.
        A kernel that can't be measured has the time NaN and the flag ``failed: reason``, one that the budget didn't
        reach NaN and `NOT_REACHED`, one that neither the store nor this machine has a time of NaN and `NOT_HERE`.

    Raises:
        FeatureError, CountingError: for a feature that a kernel can't give; nothing is measured then.
        DeviceError, StoreError: as their names say.
        MeasurementError: if there is no kernel, or none could be measured, or the budget is negative.
    """
    import pandas as pd

    kernels, models = [kernels] if isinstance(kernels, Kernel) else list(kernels), _models(model)
    if not kernels:
        raise MeasurementError("there is no kernel to measure; the tags or the list are empty")
    check_budget(budget_s)
    chosen = _protocol(protocol)
    output, output_name = models[0].output, models[0].output_name
    features: dict[str, Feature] = {name: f for m in models for name, f in m.features.items()}
    counted = [models[0].counted(kernel) for kernel in kernels]
    values = [evaluate_all(features, kernel, kernel.bind({})) for kernel in counted]
    columns = {name: [float(each[name]) for each in values] for name in features}
    if isinstance(output, MeasuredFeature):
        with _opened(store) as opened:
            target: Device = output.select_device(device, opened.devices())
            results = _measured(kernels, target, opened, chosen, progress, budget_s)
        attrs = {"device": target.fingerprint(), "protocol": asdict(chosen), "output": output_name}
    else:
        results = [(number(output, kernel), (), "") for kernel in kernels]
        attrs = {"device": {}, "protocol": {}, "output": output_name}
    table = pd.DataFrame(
        {
            "kernel": [k.name for k in kernels],
            "variant": [k.variant for k in kernels],
            "sizes": [k.sizes for k in kernels],
            output_name: [seconds for seconds, _, _ in results],
            **columns,
            "flags": [flags for _, flags, _ in results],
            "key": [key for _, _, key in results],
        },
        index=[repr(k)[len("Kernel(") : -1] for k in kernels],
    )
    table.attrs.update(attrs)
    return table


def check_budget(budget_s: float | None) -> None:
    """Raises MeasurementError for a budget that is negative or no number."""
    if budget_s is not None and not budget_s >= 0:
        raise MeasurementError(f"a budget of {budget_s:g} s is none; give seconds, or 0 to measure nothing new")


Result = tuple[float, tuple[str, ...], str]


def _measured(
    kernels: Sequence[Kernel],
    device: Device,
    store: Store,
    protocol: Protocol,
    progress: bool | None,
    budget_s: float | None,
) -> list[Result]:
    """Seconds, flags and key for each kernel, from the store where it has them."""
    keys = [measurement_key(k.program.content, k.sizes, device.fingerprint(), protocol) for k in kernels]
    by_key = dict(zip(keys, kernels, strict=True))
    results: dict[str, Result] = {
        key: (found.seconds, _doubts(by_key[key], found.flags), key) for key, found in store.get_many(by_key).items()
    }
    order = by_key if budget_s is None else _taking_turns(by_key)
    missing = {key: kernel for key, kernel in order.items() if key not in results}
    is_here = not missing or device.is_here
    if missing and budget_s != 0 and is_here:
        results |= _new_times(missing, device, store, protocol, progress, budget_s)
    without = NOT_REACHED if is_here else NOT_HERE
    results |= {key: (np.nan, (without,), key) for key in missing if key not in results}
    if all(np.isnan(seconds) for seconds, _, _ in results.values()):
        raise MeasurementError(f"no kernel could be measured; the first one {results[keys[0]][1][0]}")
    return [results[key] for key in keys]


def _taking_turns(kernels: Mapping[str, Kernel]) -> dict[str, Kernel]:
    """First one kernel of each family, then the second of each, and so on; within a family, ordered by key.

    Keys are hashes, so that this order is as good as random, and the same in every process.
    """
    families: dict[str, list[str]] = {}
    for key in sorted(kernels):
        families.setdefault(kernels[key].name, []).append(key)
    turns = itertools.zip_longest(*families.values())
    return {key: kernels[key] for turn in turns for key in turn if key is not None}


def _new_times(
    kernels: Mapping[str, Kernel],
    device: Device,
    store: Store,
    protocol: Protocol,
    progress: bool | None,
    budget_s: float | None,
) -> dict[str, Result]:
    """Measures every kernel, and again those that were measured while the device was disturbed.

    Kernels that the budget leaves no time for are not in the result.
    """
    started = time.monotonic()

    def is_spent() -> bool:
        return budget_s is not None and time.monotonic() - started > budget_s

    reference = Reference(device)
    results: dict[str, Result] = {}
    around: dict[str, float] = {}
    todo = list(kernels)
    for attempt in range(ATTEMPTS):
        if attempt:
            reference.wait(WAIT_SECONDS)
        before = reference.seconds()
        for key in _with_progress(todo, progress):
            if is_spent() and any(np.isfinite(seconds) for seconds, _, _ in results.values()):
                break
            timing = _timed(kernels[key], device, protocol)
            after = reference.seconds()
            better = key in results and not isinstance(timing, str) and max(before, after) <= around[key]
            if better or key not in results:
                results[key] = _kept(timing, kernels[key], key, device, store, protocol)
                around[key] = max(before, after)
            before = after
        todo = [key for key in todo if key in results and not np.isnan(results[key][0])]
        todo = [key for key in todo if reference.is_disturbed(around[key]) or NOISY in results[key][1]]
        if not todo or is_spent():
            break
    for key in (key for key in todo if reference.is_disturbed(around[key])):
        results[key] = (results[key][0], (*results[key][1], DISTURBED), key)
        if record := store.get(key):
            store.put(replace(record, flags=(*record.flags, DISTURBED)))
    return results


def _timed(kernel: Kernel, device: Device, protocol: Protocol) -> Timing | str:
    """The timing, or why there is none."""
    try:
        return time_launch(kernel.launch(), device, protocol)
    except (KernelError, MeasurementError) as error:
        warnings.warn(f"{kernel!r} was not measured: {error}", MeasurementWarning, stacklevel=5)
        return str(error)


def _kept(timing: Timing | str, kernel: Kernel, key: str, device: Device, store: Store, protocol: Protocol) -> Result:
    if isinstance(timing, str):
        return np.nan, (f"{FAILED}: {timing}",), key
    record = Measurement(
        key=key,
        kernel=kernel.name,
        content=kernel.program.content,
        sizes=kernel.sizes,
        tags=dict(kernel.tags),
        device=device.fingerprint(),
        protocol=asdict(protocol),
        trials=timing.trials,
        dropped=timing.dropped,
        statistic=timing.statistic,
        flags=timing.flags,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        versions=versions(),
    )
    store.put(record)
    return timing.seconds, _doubts(kernel, timing.flags), key


def _doubts(kernel: Kernel, flags: Sequence[str]) -> tuple[str, ...]:
    """The flags that matter: for a kernel that does nothing, the launch overhead is what its time is about."""
    does_nothing = NEAR_OVERHEAD in flags and not kernel.launch().arrays()
    return tuple(flag for flag in flags if not (does_nothing and flag == NEAR_OVERHEAD))


def _models(model: Model | Iterable[Model]) -> list[Model]:
    from perfmodel.model import Model

    models = [model] if isinstance(model, Model) else [] if isinstance(model, str) else list(model)
    if not models or not all(isinstance(m, Model) for m in models):
        raise MeasurementError("measure needs a Model, or several; it says which features are wanted")
    outputs = sorted({m.output_name for m in models})
    if len(outputs) > 1:
        raise MeasurementError(f"models measured together have one output feature, not {', '.join(outputs)}")
    return models


def _protocol(protocol: Protocol | str) -> Protocol:
    if isinstance(protocol, Protocol):
        return protocol
    if protocol not in PROTOCOLS:
        raise MeasurementError(
            f"no protocol {protocol!r}{nearest(protocol, PROTOCOLS)} (known: {', '.join(sorted(PROTOCOLS))})"
        )
    return PROTOCOLS[protocol]


@contextmanager
def _opened(store: Store | str | os.PathLike[str] | None) -> Iterator[Store]:
    """A store that the caller opened stays open; a path is opened for this campaign."""
    if isinstance(store, Store):
        yield store
    else:
        with Store(store) as opened:
            yield opened


def _with_progress(keys: Sequence[str], progress: bool | None) -> Iterator[str]:
    """The keys, with a bar and the time left once that has lasted two seconds, on a terminal only."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    shown = console.is_terminal if progress is None else progress
    columns = (TextColumn("measuring"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=console, transient=True, disable=not shown)
    task = bar.add_task("", total=len(keys))
    started = time.monotonic()
    running = False
    try:
        for key in keys:
            yield key
            bar.advance(task)
            if not running and time.monotonic() - started > 2:
                bar.start()
                running = True
    finally:
        if running:
            bar.stop()
