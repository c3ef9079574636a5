"""Tells of a kernel's configurations what is known without running them: what they need, do, and take.

Whether a configuration can be launched is decided before anything is counted, which takes far longer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.errors import FeatureError, KernelError
from perfmodel.basics.side_by_side import side_by_side
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.resources import resources
from perfmodel.modelling.calibration import Calibration
from perfmodel.modelling.intervals import sensitivities
from perfmodel.modelling.prediction import feature_values
from perfmodel.tuning.limits import Limits
from perfmodel.tuning.pruning import C

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Foreseen:
    """Holds what is known of one configuration.

    Attributes:
        refused: why it cannot be launched or counted; empty if it can.
        features: those that the model names.
        words: logarithm of the words of 32 bits that a work-item holds.
        spills: why some of these are most likely in memory; empty where they are not.
    """

    refused: str = ""
    features: Mapping[str, float] = field(default_factory=dict)
    words: float = 0.0
    spills: str = ""


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
    limits = Limits.of(calibration.device)
    every = side_by_side(lambda config: foreseen(lambda: kernel(config), calibration, limits), configs, workers)
    return together(every, calibration)


def together(every: Sequence[Foreseen], calibration: Calibration) -> Foresight:
    """Returns what a calibration makes of what is known of all configurations."""
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


def foreseen(kernel: Callable[[], Kernel], calibration: Calibration, limits: Limits) -> Foreseen:
    """Returns what is known of a kernel on a device, or why it cannot be launched there or counted."""
    try:
        made = kernel()
        demand = resources(made)
        limits.check(made, demand)
        counted = calibration.model.counted(made)  # by the source, as there may be thousands
        features = {name: float(value) for name, value in feature_values(calibration, counted, {}).items()}
    except (KernelError, FeatureError) as error:
        return Foreseen(str(error))
    words = (demand.registers or 1) + demand.private_bytes / 4
    return Foreseen("", features, math.log(words), limits.spills(made, demand))
