"""The syntax tree of a kernel becomes its `LoweredKernel`: calls inlined, side effects in order, addresses explicit."""

from perfmodel.opencl_c.lowering.relaxation import relaxed
from perfmodel.opencl_c.lowering.statements import lower

__all__ = ["lower", "relaxed"]
