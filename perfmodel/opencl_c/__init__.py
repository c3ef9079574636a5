"""OpenCL C source is read here into a typed tree, counted without running it, and emulated a work-group at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perfmodel.opencl_c.lowered import LoweredKernel


def lowered_kernel(source: str, name: str, options: Sequence[str] = ()) -> LoweredKernel:
    """Returns a kernel of a source, read, with its calls inlined; the last ones are remembered.

    Raises:
        SourceError: for what is no OpenCL C, or not supported, with its place.
        KernelError: if the source has no such kernel.
    """
    return _lowered_kernel(source, name, tuple(options))


@lru_cache(maxsize=256)
def _lowered_kernel(source: str, name: str, options: tuple[str, ...]) -> LoweredKernel:
    from perfmodel.opencl_c.lowering import lower, relaxed  # slow to import
    from perfmodel.opencl_c.reading import read

    kernel = relaxed(lower(read(source, options, kernels=(name,)), name), options)
    return replace(kernel, is_exact="-cl-fp32-correctly-rounded-divide-sqrt" in options)
