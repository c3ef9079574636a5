"""Work-groups of an OpenCL C kernel run in numpy, which shows what they do: how often, where in memory, and what wrong.

All work-items of one or several groups run in lock-step, as lanes of arrays under a mask (`lanes`). A kernel becomes
Python code (`code_generation`, `expression_code`), of which accesses to memory (`access_handlers`, `atomics`) and the
counts of everything (`recording`) are kept by patterns that repeat (`access_patterns`). `emulate` is the way in.
"""

from perfmodel.opencl_c.emulation.arguments import Argument, LocalBytes, Random, Zeros
from perfmodel.opencl_c.emulation.code_generation import code_of
from perfmodel.opencl_c.emulation.emulation import Emulation, emulate
from perfmodel.opencl_c.emulation.endless import EndlessError
from perfmodel.opencl_c.emulation.extrapolation import Extrapolated
from perfmodel.opencl_c.emulation.findings import Finding
from perfmodel.opencl_c.emulation.images import Image
from perfmodel.opencl_c.emulation.machine import Machine

__all__ = [
    "Argument",
    "Emulation",
    "EndlessError",
    "Extrapolated",
    "Finding",
    "Image",
    "LocalBytes",
    "Machine",
    "Random",
    "Zeros",
    "code_of",
    "emulate",
]
