"""Tells of a kernel's configurations what is known without running them: what they need, do, and take.

Whether a configuration can be launched is decided before anything is counted, which takes far longer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.errors import FeatureError, KernelError
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.resources import resources
from perfmodel.modelling.calibration import Calibration
from perfmodel.modelling.intervals import sensitivities
from perfmodel.modelling.prediction import feature_values
from perfmodel.tuning.pruning import C
from perfmodel.tuning.side_by_side import side_by_side

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Foreseen:
    """Holds what is known of one configuration.

    Attributes:
        refused: why it cannot be launched or counted; empty if it can.
        features: those that the model names.
        words: logarithm of the words of 32 bits that a work-item holds.
    """

    refused: str = ""
    features: Mapping[str, float] = field(default_factory=dict)
    words: float = 0.0


@dataclass(frozen=True)
class Foresight:
    """Holds what is known of N configurations.

    Attributes:
        every: of each.
        seconds: as predicted, shape (N,); NaN where nothing is.
        elasticities: relative change of each by relative change of each of the model's parameters, shape (N, P).
        words: logarithms of the words of 32 bits that a work-item holds, shape (N, 1).
    """

    every: Sequence[Foreseen]
    seconds: Floats
    elasticities: Floats
    words: Floats


def foresight(
    configs: Sequence[C], kernel: Callable[[C], Kernel], calibration: Calibration, workers: int | None = None
) -> Foresight:
    """Returns what is known of all configurations, which are counted side by side.

    Args:
        kernel: gives the kernel of a configuration.
        workers: see `side_by_side`.
    """

    def known(config: C) -> Foreseen:
        try:
            return foreseen(kernel(config), calibration)
        except (KernelError, FeatureError) as error:
            return Foreseen(str(error))

    every = side_by_side(known, configs, workers)
    there = [place for place, each in enumerate(every) if not each.refused]
    seconds = np.full(len(every), math.nan)
    elasticities = np.zeros((len(every), len(calibration.parameters)))
    if there:
        model = calibration.model.string
        columns = {
            name: np.array([every[place].features[name] for place in there]) for name in calibration.model.features
        }
        seconds[there] = model.compile()(calibration.parameters, columns)
        slopes = sensitivities(model, calibration.parameters, columns, len(there))
        elasticities[there, : len(slopes)] = np.array(list(slopes.values())).T
    return Foresight(every, seconds, elasticities, np.array([[each.words] for each in every]))


def foreseen(kernel: Kernel, calibration: Calibration) -> Foreseen:
    """Returns what is known of a kernel on the calibration's device.

    Raises:
        KernelError: for a kernel that the device cannot launch.
        FeatureError: for one that cannot be counted.
    """
    demand = resources(kernel)
    check_launch(kernel, demand.local_bytes, calibration.device)
    features = {name: float(value) for name, value in feature_values(calibration, kernel, {}).items()}
    return Foreseen("", features, math.log((demand.registers or 1) + demand.private_bytes / 4))


def check_launch(kernel: Kernel, local_bytes: int, device: Mapping[str, Any]) -> None:
    """Raises KernelError for a kernel that a device cannot launch, by what a calibration knows of the device."""
    items = math.prod(kernel.launch().local_size)
    most, room = device.get("max_work_group_size"), device.get("local_memory")
    if most and items > most:
        raise KernelError(f"its work-groups have {items} work-items, and the device takes {most}")
    if room and local_bytes > room:
        raise KernelError(f"its work-groups take {local_bytes} bytes of local memory, and there are {room}")
