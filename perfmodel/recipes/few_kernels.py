"""Calibrates a device by the times of a few kernels, beginning with what is known of it before.

A calibration that comes along, be it of this device or carried over to it by its specification, is the prior; some
kernels of its model's measurement set, of all families in turn, are measured; and what their times say makes the
posterior (`perfmodel.modelling.learning`). That takes a minute or two where a fit from nothing takes a quarter of an
hour (docs/devices.md says how well it does).
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from perfmodel.basics.brief import number_of
from perfmodel.basics.errors import CalibrationError
from perfmodel.basics.progress import showing
from perfmodel.basics.provenance import versions
from perfmodel.collection.collection import ALL_GENERATORS, KernelCollection
from perfmodel.counting.counts import CountingWarning
from perfmodel.device import Device, find_device
from perfmodel.kernels.kernel import Kernel, as_kernels
from perfmodel.kernels.program import runtime_of
from perfmodel.kernels.remembered_program import remembering
from perfmodel.measuring.store import Store, looked_into
from perfmodel.modelling.calibration import Calibration, Model
from perfmodel.modelling.counted_form import counts_core_code
from perfmodel.modelling.feature_table import measure
from perfmodel.modelling.learned import Learned, learned_from
from perfmodel.modelling.learning import loosened
from perfmodel.modelling.shipped import default_models, shipped_kinds
from perfmodel.modelling.transfer import SPECIFICATION
from perfmodel.recipes.recipe import Recipe, recipe
from perfmodel.recipes.running import timer

FEW = 400
"""So many kernels are measured by default, some eight of each family."""
OUTPUT = "f_cl_wall_time"
SPREADS = {"cpu": 0.3, "gpu": 0.1}
"""The standard deviation of prices' logarithms from day to day, and between two devices of a kind. An EPYC that other
machines share was calibrated on two days: the root mean square of 37 prices' changes was 0.32, of which the fits' own
errors are 0.13; a GPU is nobody else's."""
A_DAY = timedelta(days=1)
OF_CORE_CODE = 1 / 3
"""This part of the kernels, by chance, teaches what a processor's machine code takes, which people's own kernels are
counted by; the others what their source says. Machine code takes a second to be counted."""


def calibrate(
    device: Device | str | None = None,
    kernels: int | Kernel | Iterable[Kernel] = FEW,
    *,
    prior: Calibration | None = None,
    store: Store | str | os.PathLike[str] | None = None,
    protocol: str | None = None,
    progress: bool | None = None,
) -> Calibration:
    """Returns a calibration of a device by the times of a few kernels, which are measured here.

    >>> calibration = perfmodel.calibrate("cpu")
    >>> calibration.save("cpu.json")

    Args:
        device: as for `perfmodel.measure`.
        kernels: how many of the default model's measurement set are measured, of all families in turn; or kernels of
            your own.
        prior: the calibration to begin with; by default the one that comes along for this device, or is carried over
            to it.
        store, protocol, progress: as for `perfmodel.measure`.

    Raises:
        CalibrationError: nothing is known of such a device beforehand, the prior is of another kind of device, or no
            kernel's time could be learned from.
        DeviceError, MeasurementError, StoreError: as `perfmodel.measure` does.
    """
    return learned_here(device, kernels, prior=prior, store=store, protocol=protocol, progress=progress).after


def learned_here(
    device: Device | str | None = None,
    kernels: int | Kernel | Iterable[Kernel] = FEW,
    *,
    prior: Calibration | None = None,
    store: Store | str | os.PathLike[str] | None = None,
    protocol: str | None = None,
    progress: bool | None = None,
    tell: Callable[[str], None] = lambda message: None,
) -> Learned:
    """Returns what `calibrate` gives, with what it was before and what was not learned from.

    Args:
        tell: is given a line before each step.
    """
    own = [] if isinstance(kernels, int) else as_kernels(kernels)
    with looked_into(store) as known:
        target = find_device(device, known.devices(), runtime_of(kernel.program for kernel in own))
    before = _before(prior or _known_of(target), target)
    conditions: dict[str, Any] = {"device": target, "store": store, "progress": progress}
    chosen = _sample(kernels, conditions, protocol, tell) if isinstance(kernels, int) else own
    tell(f"measuring {number_of(len(chosen), 'kernel')} on {target.name}")
    table = measure(chosen, Model(OUTPUT, "p_time"), protocol=protocol or "unified", **conditions)
    left_out: dict[str, str] = {}
    timed: list[tuple[str, Kernel, float]] = []
    for kernel, name, seconds, flags in zip(chosen, table.index, table[OUTPUT], table["flags"], strict=True):
        if np.isfinite(seconds):
            timed.append((name, kernel, float(seconds)))
        else:
            left_out[name] = ", ".join(flags)
    tell("counting them, and learning from their times")
    with warnings.catch_warnings():
        if isinstance(kernels, int):  # what data decide of them was counted with random data for the prior, too
            warnings.simplefilter("ignore", CountingWarning)
        found = learned_from(before, _counted(before, timed), left_out, progress)
    if not found.kernels:
        raise CalibrationError(f"{'; '.join(str(found).splitlines())}; give other kernels, or another prior")
    said = {SPECIFICATION: before.device[SPECIFICATION]} if SPECIFICATION in before.device else {}
    after = replace(
        found.after,
        device={**table.attrs["device"], **said},
        protocol=dict(table.attrs["protocol"]),
        report=str(found),
        versions=versions(),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    return replace(found, after=after)


def _counted(before: Calibration, timed: Sequence[tuple[str, Kernel, float]]) -> list[tuple[str, Kernel, float]]:
    """Returns named kernels and times, some of them to be counted by a processor's machine code."""
    is_core_code = np.random.default_rng(0).random(len(timed)) < OF_CORE_CODE * counts_core_code(before)
    return [
        (name, kernel.as_core_code() if is_it else kernel, seconds)
        for is_it, (name, kernel, seconds) in zip(is_core_code, timed, strict=True)
    ]


def _known_of(device: Device) -> Calibration:
    """Returns the calibration that comes along for a device, or is carried over to it."""
    return Calibration.shipped(device="cpu" if device.kind == "cpu" and device.is_here else device.name)


def _before(prior: Calibration, device: Device) -> Calibration:
    """Returns a prior for a device, as sure as it is now.

    Raises:
        CalibrationError: it is of a device of another kind.
    """
    if prior.device.get("kind") != device.kind:
        raise CalibrationError(
            f"the prior is a calibration of {prior.device.get('name', 'no device')}, and {device.name} is no "
            f"{prior.device.get('kind', 'such device')}; give one of a {device.kind}"
        )
    is_of_now = prior.created and datetime.now(UTC) - datetime.fromisoformat(prior.created) < A_DAY
    if is_of_now and prior.device.get("key") == device.key:
        return prior
    return loosened(prior, SPREADS.get(device.kind, max(SPREADS.values())))


def _sample(
    count: int, conditions: Mapping[str, Any], protocol: str | None, tell: Callable[[str], None]
) -> list[Kernel]:
    """Returns so many kernels of the measurement set of the device's default model."""
    if isinstance(count, bool) or count < 1:
        raise CalibrationError(f"{count!r} kernels teach nothing; give 1 or more, such as {FEW}")
    chosen = _recipe_for(conditions["device"])
    collection = KernelCollection(ALL_GENERATORS)
    timed = {**conditions, "protocol": protocol or chosen.protocol}
    seconds_of = timer(collection, [Model(OUTPUT, "p_time")], OUTPUT, timed)
    tell("choosing sizes for this device, and making the kernels' code")
    with remembering(), showing("making code", conditions["progress"]) as told:
        return collection.sample_kernels(chosen.measurement_tags(seconds_of), count, conditions["device"], told)


def _recipe_for(device: Device) -> Recipe:
    kinds = shipped_kinds()
    for name in default_models():
        if device.kind in kinds.get(name, ()):
            return recipe(name)
    raise CalibrationError(
        f"no model is the default for {device.name}, which is of the kind {device.kind!r}; fit one of your own to "
        "kernels that you choose, by Model(…).fit(measure(…))"
    )
