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


def counted_form(calibration: Fitted, kernel: Kernel, sizes: Mapping[str, ArrayLike]) -> Kernel:
    """Returns a kernel in the form that it is counted in for a calibration at some sizes, of arrays by the first.

    What ids and arguments decide is counted by the source, for all sizes. Where data decide on work or addresses of a
    kernel in OpenCL C, or its source takes too long to count, a GPU's model counts the PTX that NVIDIA's compiler makes
    of it, if it can: there, source counts are off the most (docs/gpu-model.md).
    """
    form = calibration.model.counted(kernel)
    if not calibration.model.is_of_compiled or calibration.device.get("kind") != "gpu":
        return form
    program = kernel.program.program if isinstance(kernel.program, WithTransfers) else kernel.program
    given = {name: size for name, size in sizes.items() if name in kernel.program.sizes}
    numbers = {name: whole_sizes(kernel.name, name, size) for name, size in given.items()}
    if not isinstance(program, OpenCLProgram) or not all(size.size for size in numbers.values()):
        return form
    here = kernel.at(**{name: size.ravel()[:1].tolist()[0] for name, size in numbers.items()})
    if len(here.sizes) < len(program.sizes):
        return form
    if program.contents is not None or _is_seen(calibration, here):
        return here.as_machine_code()
    return form


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
