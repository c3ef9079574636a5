"""Finds a faster form of a kernel: changes proposed, predicted, verified, and the best few measured."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from perfmodel.basics.errors import DeviceError, KernelError, PerfmodelError
from perfmodel.device import Device, devices, find_device
from perfmodel.kernels.changes import Changed
from perfmodel.kernels.kernel import Kernel
from perfmodel.measuring.campaign import Campaign
from perfmodel.measuring.store import Store
from perfmodel.modelling.alternatives import siblings
from perfmodel.modelling.calibration import Calibration
from perfmodel.tuning.improving.comparing import Comparer
from perfmodel.tuning.improving.improvements import Improvement, Improvements
from perfmodel.tuning.improving.search import Candidate, candidates

SHOWN = 5
LEAST_SAVING = 0.03
"""Changes that save less are none."""


def improve(
    kernel: Any,
    calibration: Calibration,
    /,
    *,
    most: int = 40,
    measure: int = 3,
    device: Device | str | None = None,
    store: Store | str | os.PathLike[str] | None = None,
    progress: bool | None = None,
    **sizes: int,
) -> Improvements:
    """Returns changed forms of a kernel that compute the same and are predicted to be faster, the fastest first.

    Loopy programs get work-groups, several results of a work-item, tiles in local memory and unrolled loops; kernels of
    OpenCL C other work-groups, padded tiles, other numbers of ``-DNAME=…``, and more or fewer work-items where their
    loops take steps of all of them. What is best is changed again, a few times over. Each is run beside the original on
    the same random numbers, at small sizes.

    >>> found = perfmodel.improve(kernel, perfmodel.Calibration.shipped(device="H200"))
    >>> print(found); found.best

    Args:
        kernel: a `Kernel`, or a Loopy program with its sizes as keywords; or a function that returns either, whose
            arguments with whole numbers as defaults (``tile=16``) are then tried at half and twice that.
        most: changed kernels to predict, at most.
        measure: so many of the best are measured, if the calibration's device is on this machine; 0 for none.
        device: which runs them to compare results; a CPU device if there is one, else the best.
        store: where measured times are kept.
        progress: whether to say on standard error how far the search is; by default on a terminal.
        sizes: of the kernel.

    Raises:
        KernelError, CountingError: the kernel itself has no prediction, or no sizes.
        DeviceError: no device can compare results.
    """
    first, make = _kernel_and_maker(kernel, sizes)
    return improved(first, make, calibration, most, measure, device, store, progress)


def improved(
    first: Kernel,
    make: Callable[..., Any] | None,
    calibration: Calibration,
    most: int,
    measure: int,
    device: Device | str | None,
    store: Store | str | os.PathLike[str] | None,
    progress: bool | None,
) -> Improvements:
    """Returns changed forms of a kernel, and of what the function that made it gives otherwise; see `improve`."""
    if most < 1 or measure < 0:
        raise KernelError(f"most={most} and measure={measure} leave nothing to do; give 1 or more, and 0 or more")
    runs_on = _comparing(device)
    with Comparer(first, runs_on) as comparer:
        differs, tell = comparer.difference, _teller(progress)
        found = candidates(calibration, first, most, lambda before: _with_parameters(before, make), differs, tell)
        original, *changed = [_improvement(each, found[0]) for each in found]
        good, rejected = _verified([each for each in changed if each.saving >= LEAST_SAVING], differs)
    there = _device_here(calibration) if measure and good else None
    if there is not None:
        original, *good = _measured([original, *good[:measure]], there, store) + good[measure:]
        good.sort(key=lambda each: (each.measured_s is None, each.measured_s or each.seconds))
    name = str(calibration.device.get("name", "a device"))
    away = f"not measured, as this machine has no {name}" if measure and there is None and good else ""
    here = there.name if there is not None else ""
    return Improvements(
        original=original,
        found=tuple(good),
        rejected=tuple(rejected),
        tried=len(changed),
        predicted_on=name,
        verified_on=runs_on.name,
        measured_on=here,
        unmeasured=away,
    )


def _kernel_and_maker(given: Any, sizes: Mapping[str, int]) -> tuple[Kernel, Callable[..., Any] | None]:
    """Returns the kernel at its sizes, and the function that makes it, if that is what is given."""
    if isinstance(given, Kernel) or not inspect.isroutine(given):
        return Kernel.of(given).at(**sizes), None
    return Kernel.of(given()).at(**sizes), given


def _with_parameters(kernel: Kernel, make: Callable[..., Any] | None) -> Iterator[Changed]:
    """Yields siblings of a generator's kernel, and what the user's function makes with each whole number among its
    defaults halved and doubled."""
    yield from siblings(kernel)
    parameters = inspect.signature(make).parameters.values() if make is not None else ()
    for parameter in parameters:
        value = parameter.default
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            continue
        for other in sorted({value // 2, value * 2, value * 4} - {0, value}):
            try:
                made = Kernel.of(make(**{parameter.name: other})).at(**kernel.bound)  # type: ignore[misc]
            except Exception:  # it is the user's, and may refuse a number by any error
                continue
            words = f"{parameter.name}={other} instead of {value}"
            code = f"program = {make.__name__}({parameter.name}={other})"  # type: ignore[union-attr]
            yield Changed(made.with_name(kernel.name), parameter.name, words, (code,))


def _comparing(device: Device | str | None) -> Device:
    if device is not None:
        return find_device(device)
    try:
        return find_device("cpu")
    except DeviceError:
        return find_device()


def _teller(progress: bool | None) -> Callable[[str], None]:
    shows = sys.stderr.isatty() if progress is None else progress
    return (lambda message: print(message, file=sys.stderr, flush=True)) if shows else (lambda _: None)


def _improvement(each: Candidate, original: Candidate) -> Improvement:
    return Improvement(each, 1 - each.seconds / original.seconds if original.seconds else 0.0)


def _verified(
    changed: Sequence[Improvement], differs: Callable[[Kernel], str]
) -> tuple[list[Improvement], list[Improvement]]:
    """Returns the best changed kernels that compute the same, and those before them that don't."""
    good: list[Improvement] = []
    rejected: list[Improvement] = []
    for each in changed:
        if len(good) == SHOWN:
            break
        why = differs(each.kernel)
        (rejected if why else good).append(replace(each, differs=why))
    return good, rejected


def _device_here(calibration: Calibration) -> Device | None:
    """Returns the calibration's device, if this machine has it; one that it was carried over to is known by name."""
    known = "name" if "carried_over_from" in calibration.device else "key"
    try:
        return next((each for each in devices() if getattr(each, known) == calibration.device.get(known)), None)
    except PerfmodelError:
        return None


def _measured(
    found: Sequence[Improvement], device: Device, store: Store | str | os.PathLike[str] | None
) -> list[Improvement]:
    """Returns the same with measured times, and why there are none, or what is doubtful of them."""
    kernels = [each.kernel for each in found]
    campaign = Campaign(kernels, [device], protocol="quick", store=store)
    (taken,) = campaign.run(progress=False).devices
    return [
        replace(each, measured_s=result.seconds if result.seconds > 0 else None, remark=", ".join(result.flags))
        for each, result in zip(found, taken.results, strict=True)
    ]
