"""Warns of launches that a user describes and no device runs as they stand: arrays too small, work-groups too large,
too much shared memory."""

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
    from perfmodel.kernels.ptx_program import PtxProgram
    from perfmodel.modelling.prediction import PredictionWarning

    for kernel in kernels:
        reasons: list[str] = []
        if isinstance(kernel.program, OpenCLProgram):
            reasons += [*_group_too_large(calibration, kernel), *_arrays_too_small(calibration, kernel)]
        if isinstance(kernel.program, PtxProgram):
            reasons += _too_much_shared(calibration, kernel)
        for reason in reasons:
            warnings.warn(f"kernel {kernel.name!r} {reason}", PredictionWarning, stacklevel=2)


def _group_too_large(calibration: Calibration, kernel: Kernel) -> Iterator[str]:
    most, items = calibration.device.get("max_work_group_size"), math.prod(kernel.launch().local_size)
    if most and items > most:
        name = calibration.device.get("name", "the device")
        yield f"has work-groups of {items} work-items, and {name} takes up to {most}; use a smaller --local"


def _too_much_shared(calibration: Calibration, kernel: Kernel) -> Iterator[str]:
    from perfmodel.tuning.limits import Limits  # keeps start-up quick

    unit, shared = Limits.of(calibration.device).unit, kernel.launch().shared_bytes
    if unit is not None and shared > unit.local_bytes_per_group:
        name, most = calibration.device.get("name", "the device"), unit.local_bytes_per_group
        yield f"has {shared} bytes of dynamic shared memory, and {name} gives a block up to {most}; use less --shared"


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
