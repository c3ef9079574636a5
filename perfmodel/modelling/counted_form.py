"""Chooses how a kernel is counted for a calibration: by its source, or by the machine code that a compiler makes of
it."""

from __future__ import annotations

from collections.abc import Mapping

from numpy.typing import ArrayLike

from perfmodel.basics.errors import CountingError
from perfmodel.kernels.bound_kernel import whole_sizes
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.opencl_program import OpenCLProgram
from perfmodel.kernels.transfers import WithTransfers
from perfmodel.modelling.fitted import Fitted
from perfmodel.vocabulary.named_features import CountedFeature

ARCHITECTURE = "hopper"
"""Machine code is that of a GPU like this."""
MOST_COMPILED = 16
"""Machine code is counted anew for each size, and takes some tenths of a second."""


def counted_form(calibration: Fitted, kernel: Kernel, sizes: Mapping[str, ArrayLike]) -> Kernel:
    """Returns a kernel in the form that it is counted in for a calibration at some sizes, of arrays by the first.

    The model of one of NVIDIA's GPUs counts the machine code that its compiler makes of a kernel in OpenCL C, if it
    can, and of those that generators made the source, as fits do. At more than 16 sizes at once it counts the source,
    for all of them, unless data decide on work or addresses, or the source takes too long to count: there, source
    counts are off the most (docs/gpu-model.md).
    """
    form = calibration.model.counted(kernel)
    if not calibration.model.is_of_compiled or calibration.device.get("kind") != "gpu" or kernel.is_of_generator:
        return form
    program = kernel.program.program if isinstance(kernel.program, WithTransfers) else kernel.program
    given = {name: size for name, size in sizes.items() if name in kernel.program.sizes}
    numbers = {name: whole_sizes(kernel.name, name, size) for name, size in given.items()}
    if not isinstance(program, OpenCLProgram) or not all(size.size for size in numbers.values()):
        return form
    here = kernel.at(**{name: size.ravel()[:1].tolist()[0] for name, size in numbers.items()})
    if len(here.sizes) < len(program.sizes) or (program.observed and program.contents is None):
        return form  # where sizes are missing, or what was observed in another process
    are_few = max((size.size for size in numbers.values()), default=1) <= MOST_COMPILED
    if (are_few and _is_like_hopper(calibration)) or program.contents is not None or _is_seen(calibration, here):
        return here.as_machine_code()
    return form


def _is_like_hopper(calibration: Fitted) -> bool:
    """Returns whether machine code for a Hopper says what a device does: NVIDIA's do, of those known by specification
    alone only a Hopper itself."""
    specification = calibration.device.get("specification")
    if specification:
        return bool(specification.get("architecture") == ARCHITECTURE)
    return "NVIDIA" in str(calibration.device.get("vendor", ""))


def _is_seen(calibration: Fitted, kernel: Kernel) -> bool:
    """Returns whether what a kernel does had to be seen in some work-groups, or isn't known at all."""
    features = calibration.model.features.values()
    widths = {each.subgroup_size or 0 for each in features if isinstance(each, CountedFeature)}
    form = calibration.model.counted(kernel)
    try:
        form.counts_for(max(widths, default=0) or None)
    except CountingError:
        return True
    return bool(form.program.as_opencl().samples)
