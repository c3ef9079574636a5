"""Warns of launches that a user describes and no device runs as they stand: arrays too small, work-groups too large."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from perfmodel.basics.errors import PerfmodelError

if TYPE_CHECKING:
    from perfmodel.kernels.kernel import Kernel
    from perfmodel.modelling.calibration import Calibration


def tell(calibration: Calibration, kernels: Iterable[Kernel]) -> None:
    """Warns of each kernel of a source whose options cannot be those of a launch on the calibration's device."""
    from perfmodel.kernels.opencl_program import OpenCLProgram  # keeps start-up quick
    from perfmodel.modelling.prediction import PredictionWarning

    for kernel in kernels:
        if isinstance(kernel.program, OpenCLProgram):
            for reason in (*_group_too_large(calibration, kernel), *_arrays_too_small(calibration, kernel)):
                warnings.warn(f"kernel {kernel.name!r} {reason}", PredictionWarning, stacklevel=2)


def _group_too_large(calibration: Calibration, kernel: Kernel) -> Iterator[str]:
    most, items = calibration.device.get("max_work_group_size"), math.prod(kernel.launch().local_size)
    if most and items > most:
        name = calibration.device.get("name", "the device")
        yield f"has work-groups of {items} work-items, and {name} takes up to {most}; use a smaller --local"


def _arrays_too_small(calibration: Calibration, kernel: Kernel) -> Iterator[str]:
    """Yields what is touched beyond an array's end, where that is exactly known."""
    from perfmodel.counting.counts import SUBGROUP_SIZE  # keeps start-up quick

    with suppress(PerfmodelError):  # the prediction says why it cannot be counted
        counts, sizes = calibration.model.counted(kernel).counts_for(SUBGROUP_SIZE), kernel.bind({})
        if not counts.exact or counts.sampled:
            return
        told = set()
        for each in counts.footprints:
            if each.space == "global" and each.elements is not None and each.size is not None:
                touched, size = float(each.elements(sizes)), float(each.size(sizes))
                if touched > size and each.variable not in told:
                    told.add(each.variable)
                    yield (
                        f"touches {touched:.0f} elements of {each.variable!r}, which has {size:.0f}; give it more by "
                        f"--arg {each.variable}=…"
                    )
