"""Chooses how a kernel is counted for a calibration: by its source, or by the machine code that a compiler makes of
it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache

from numpy.typing import ArrayLike

from perfmodel.basics.errors import CountingError
from perfmodel.device.processor_here import facts_here
from perfmodel.kernels.bound_kernel import whole_sizes
from perfmodel.kernels.driver_code import TARGET, intel_processor
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.loopy_program import LoopyProgram
from perfmodel.kernels.opencl_program import OpenCLProgram
from perfmodel.kernels.program import Program
from perfmodel.kernels.transfers import WithTransfers
from perfmodel.modelling.fitted import Fitted
from perfmodel.modelling.transfer import facts_of
from perfmodel.vocabulary.named_features import CountedFeature

OF_CODE = "f_core_known"
"""This feature is 1 where a processor's machine code is counted."""
MOST_COMPILED = 16
"""Machine code is counted anew for each size, and takes some tenths of a second."""


def counted_form(calibration: Fitted, kernel: Kernel, sizes: Mapping[str, ArrayLike]) -> Kernel:
    """Returns a kernel in the form that it is counted in for a calibration at some sizes, of arrays by the first.

    The model of this machine's processor counts the machine code that Intel's driver makes of a kernel, where it is
    here; that of one of NVIDIA's GPUs the code that its compiler makes of OpenCL C for a Hopper, if it can, but for
    kernels that generators made, which are counted by their source as the fit did. More than 16 sizes at once are
    counted by their source, all of them; on GPUs not where data decide on work or addresses, or the source takes too
    long to count: there, source counts are off the most (docs/gpu-accuracy.md).
    """
    form = calibration.model.counted(kernel)
    program = kernel.program.program if isinstance(kernel.program, WithTransfers) else kernel.program
    if not calibration.model.is_of_compiled or not _may_be_code(calibration, kernel, program):
        return form
    given = {name: size for name, size in sizes.items() if name in kernel.program.sizes}
    numbers = {name: whole_sizes(kernel.name, name, size) for name, size in given.items()}
    if not all(size.size for size in numbers.values()):
        return form
    here = kernel.at(**{name: size.ravel()[:1].tolist()[0] for name, size in numbers.items()})
    if len(here.sizes) < len(kernel.program.sizes):
        return form
    are_few = max((size.size for size in numbers.values()), default=1) <= MOST_COMPILED
    if calibration.device["kind"] == "cpu":
        return kernel.as_core_code() if are_few else form
    if (are_few and _is_nvidia(calibration)) or _is_seen(calibration, here):
        return here.as_machine_code()
    return form


def _may_be_code(calibration: Fitted, kernel: Kernel, program: Program) -> bool:
    """Returns whether a kernel of this program may be counted by what a compiler makes of it: for GPUs not what was
    observed in another process."""
    match calibration.device.get("kind"):
        case "cpu":
            return isinstance(program, OpenCLProgram | LoopyProgram) and counts_core_code(calibration)
        case "gpu" if isinstance(program, OpenCLProgram) and not kernel.is_of_generator:
            return not program.observed or program.contents is not None
    return False


def counts_core_code(calibration: Fitted) -> bool:
    """Returns whether a calibration is of the processor that a driver makes code for here, this machine's or the one
    that `TARGET` names, and of measurements that were counted by such code."""
    _, most = calibration.ranges.get(OF_CODE, (0.0, 0.0))
    if not most or (device := intel_processor()) is None:
        return False
    if os.environ.get(TARGET):
        return True
    if specification := calibration.device.get("specification"):  # names such as AMD EPYC tell no architecture
        is_architecture = specification.get("architecture") == _architecture_here()
        return bool(device.name == calibration.device.get("name") and is_architecture)
    return bool(device.key == calibration.device.get("key"))


@lru_cache(maxsize=1)
def _architecture_here() -> str:
    here = facts_here()
    return here.architecture if here else ""


def _is_nvidia(calibration: Fitted) -> bool:
    """Returns whether a calibration is of one of NVIDIA's GPUs, measured or known by specification."""
    facts = facts_of(calibration)
    return facts.vendor == "NVIDIA" if facts else "NVIDIA" in str(calibration.device.get("vendor", ""))


def _is_seen(calibration: Fitted, kernel: Kernel) -> bool:
    """Returns whether what a kernel does had to be seen in some work-groups, or isn't known at all."""
    features = calibration.model.features.values()
    widths = {each.subgroup_size or 0 for each in features if isinstance(each, CountedFeature)}
    form = calibration.model.counted(kernel)
    try:
        form.counts_for(max(widths, default=0) or None)
    except CountingError:
        return True
    return form.is_observed
