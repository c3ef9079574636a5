"""Judges how well a calibration predicts kernels that it was not fitted to."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from perfmodel.basics.brief import brief, number_of
from perfmodel.basics.errors import DeviceError, PerfmodelError
from perfmodel.basics.json_values import plain
from perfmodel.basics.statistics import Errors
from perfmodel.device import CUDA, Device
from perfmodel.kernels.kernel import Kernel, as_kernels
from perfmodel.kernels.program import runtime_of
from perfmodel.measuring.protocol import Protocol
from perfmodel.measuring.store import Store, measurement_key
from perfmodel.modelling.calibration import Calibration, Model
from perfmodel.modelling.feature_table import measure
from perfmodel.modelling.rows import Row

FITTED = "the calibration was fitted to it"
"""Reasons why a kernel takes no part in the errors."""


ROW = (
    *("kernel", "variant", "sizes", "measured_s", "predicted_s", "predicted_std_s", "flags", "left_out"),
    "error",
)
"""An evaluation says this of each kernel."""


@dataclass(frozen=True)
class Evaluation:
    """Holds predictions beside measured times, and the errors that follow from them.

    Attributes:
        device: fingerprint of the one that the times are of.
        notes: what whoever reads the errors must know, as sentences.
    """

    device: Mapping[str, Any]
    protocol: Mapping[str, Any]
    kernels: tuple[Row, ...]
    notes: tuple[str, ...]

    @property
    def over_all(self) -> Errors | None:
        return _errors(self.kernels)

    @property
    def by_family(self) -> dict[str, Errors]:
        """The errors of each family of which at least one kernel takes part."""
        groups: dict[str, list[Row]] = {}
        for each in self.kernels:
            groups.setdefault(each.kernel, []).append(each)
        return {name: errors for name, group in groups.items() if (errors := _errors(group))}

    def as_json(self) -> dict[str, Any]:
        """Returns the evaluation as values that JSON can hold."""
        over_all = self.over_all
        found: dict[str, Any] = {
            "device": self.device.get("key"),
            "protocol": dict(self.protocol),
            "errors": asdict(over_all) if over_all else None,
            "by_family": {name: asdict(errors) for name, errors in self.by_family.items()},
            "kernels": [each.values(ROW) for each in self.kernels],
            "notes": list(self.notes),
        }
        return {name: plain(value) for name, value in found.items()}

    def __repr__(self) -> str:
        errors = self.over_all
        error = f"geometric mean of errors {errors.geometric_mean:.1%}" if errors else "no errors"
        return brief(self, str(self.device.get("name") or "no device"), number_of(len(self.kernels), "kernel"), error)


def _device_for(calibration: Calibration, kernels: Sequence[Kernel]) -> str | None:
    """Returns what names the calibration's device: its key, or where another runtime runs the kernels, its name."""
    is_other = runtime_of(kernel.program for kernel in kernels) == CUDA != calibration.device.get("platform")
    return calibration.device.get("name" if is_other else "key")


def _errors(kernels: Iterable[Row]) -> Errors | None:
    """Returns the errors of the kernels that take part; None if none does."""
    return Errors.of(each.error for each in kernels if not each.left_out)


def evaluate(
    calibration: Calibration,
    kernels: Iterable[Kernel],
    *,
    device: Device | str | None = None,
    store: Store | str | os.PathLike[str] | None = None,
    protocol: Protocol | str | None = None,
) -> Evaluation:
    """Measures kernels, or takes their times from the store, and compares them with what the calibration predicts.

    Kernels of the calibration's measurement set are in the result, but take no part in the errors.

    Args:
        device: by default the one that the calibration is of, here or in the store.
        protocol: by default the one that the calibration's times were taken under.

    Raises:
        PerfmodelError: if the calibration was fitted to all of the kernels; and as `perfmodel.measure` does.
    """
    kernels = list(dict.fromkeys(as_kernels(kernels)))
    fitted = [_is_fitted(calibration, kernel) for kernel in kernels]
    if kernels and all(fitted):
        raise PerfmodelError(
            f"the calibration was fitted to {'all of these kernels' if len(kernels) > 1 else 'this kernel'}, which "
            "says nothing of others; give some that it has not seen"
        )
    output = calibration.model.output_name
    model = Model(output, "p_time")  # the calibration's own may have features that some of the kernels can't give
    conditions: dict[str, Any] = {"store": store, "protocol": protocol or _protocol(calibration)}
    try:
        table = measure(kernels, model, device=device or _device_for(calibration, kernels), **conditions)
    except DeviceError as error:
        if device:
            raise
        raise DeviceError(
            f"{error}; the calibration is of that one: give a store with times of it, or name another device"
        ) from error
    rows = zip(kernels, table[output], table["flags"], fitted, strict=True)
    found = [_evaluated(calibration, kernel, float(time), flags, seen) for kernel, time, flags, seen in rows]
    there = table.attrs["device"]
    return Evaluation(there, table.attrs["protocol"], tuple(found), tuple(_notes(calibration, there, found)))


def _is_fitted(calibration: Calibration, kernel: Kernel) -> bool:
    """Returns True if a kernel is in the measurement set, under whatever protocol and device it is measured now."""
    keys = {row.key for row in calibration.rows if row.key}
    if keys:
        return measurement_key(kernel.program.content, kernel.sizes, calibration.device, calibration.protocol) in keys
    # Times that are no measurements of a device have no keys.
    return any(
        (row.kernel, row.variant, row.sizes) == (kernel.name, kernel.variant, kernel.sizes) for row in calibration.rows
    )


def _protocol(calibration: Calibration) -> Protocol | str:
    return Protocol(**calibration.protocol) if calibration.protocol else "unified"


def _evaluated(calibration: Calibration, kernel: Kernel, seconds: float, flags: Sequence[str], is_fitted: bool) -> Row:
    measured = seconds if seconds > 0 else None
    result = Row(
        kernel=kernel.name,
        variant=kernel.variant,
        sizes=kernel.sizes,
        measured_s=measured,
        predicted_s=None,
        flags=tuple(flags),
    )
    reason = "" if measured else "; ".join(flags) or "it has no time"
    try:
        time, std = (float(each) for each in calibration.predict(kernel, return_std=True))
        result = replace(result, predicted_s=time, predicted_std_s=std if np.isfinite(std) else None)
    except PerfmodelError as error:  # a feature that the kernel can't give; the others are judged all the same
        reason = reason or f"it cannot be predicted: {error}"
    return replace(result, left_out=FITTED if is_fitted else reason)


def _notes(calibration: Calibration, device: Mapping[str, Any], kernels: Sequence[Row]) -> list[str]:
    found = []
    if not calibration.rows:
        found.append(
            "this calibration comes without the list of kernels that it was fitted to; such kernels take part here, "
            "and make the errors look smaller"
        )
    own, there = calibration.device.get("key"), device.get("key")
    if own and own != there:
        found.append(f"the calibration is of {own}, the times are of {there}")
    if seen := sum(each.left_out == FITTED for each in kernels):
        found.append(
            f"the calibration was fitted to {seen} of {len(kernels)} kernels, which take no part in the errors"
        )
    if others := sum(bool(each.left_out) and each.left_out != FITTED for each in kernels):
        found.append(f"{others} of {len(kernels)} kernels have no time, or cannot be predicted, and take no part")
    return found
