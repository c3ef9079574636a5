"""Takes what kernels took on other devices into account where predictions are for a device that never ran them.

How much longer than predicted a kernel takes is much the same on devices that are alike: of one architecture, or of one
that does about as much a clock. So predictions are multiplied by the weighted mean of these ratios, as far as there are
devices alike.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perfmodel.basics.errors import PerfmodelError
from perfmodel.device.facts import OWN, DeviceFacts

Floats = NDArray[np.float64]

SCALE = 0.3
"""Devices at this distance weigh 0.37 as much as those of one architecture."""
DOUBT = 0.1
"""The model itself weighs as much as a device of this likeness would that has no errors."""
SHARED = ("launch", "l2_latency", "dram_latency", "subgroup", "group_items", "group_local_bytes")
"""Facts of architectures that say little of how a compute unit works."""


def likeness(first: DeviceFacts, second: DeviceFacts) -> float:
    """Returns how alike the compute units of two devices are: 1 for those of one architecture, down to 0.

    It falls exponentially with the root mean square of the logarithms, to base 2, of the ratios of what they do a clock
    and how long they take.
    """
    if first.kind != second.kind:
        return 0.0
    names = [name for name in first.facts if name not in (*OWN, *SHARED)]
    distance = np.sqrt(np.mean([np.log2(first[name] / second[name]) ** 2 for name in names]))
    return float(np.exp(-distance / SCALE))


def corrected(
    predicted: ArrayLike,
    device: DeviceFacts,
    others: Mapping[str, DeviceFacts],
    measured_there: Mapping[str, ArrayLike],
    predicted_there: Mapping[str, ArrayLike],
) -> Floats:
    """Returns predictions for a device, corrected by how wrong those for other devices are.

    Args:
        predicted: seconds of N kernels on the device, shape (N,).
        others: facts of other devices, by name.
        measured_there: seconds of the same kernels on these, shape (N,) each; NaN where one did not run.
        predicted_there: what the model predicts of them, shape (N,) each.

    Raises:
        PerfmodelError: if a device lacks its times or predictions, or has them of other numbers of kernels.
    """
    seconds = np.asarray(predicted, dtype=np.float64)
    total, weights = np.zeros(seconds.shape), np.zeros(seconds.shape)
    scale = weight_of_all = 0.0
    for name, facts in others.items():
        found = [np.asarray(each.get(name, ()), dtype=np.float64) for each in (measured_there, predicted_there)]
        if any(each.shape != seconds.shape for each in found):
            raise PerfmodelError(f"device {name!r} has not one measured and one predicted time for each kernel")
        with np.errstate(all="ignore"):
            ratios = np.log(found[0] / found[1])
        known = np.isfinite(ratios)
        if not known.any():
            continue
        weight, usual = likeness(device, facts), float(np.median(ratios[known]))
        total += np.where(known, weight * (ratios - usual), 0.0)
        weights += weight * known
        scale += weight * usual
        weight_of_all += weight
    return np.asarray(seconds * np.exp(total / (weights + DOUBT) + scale / (weight_of_all + DOUBT)))
