"""One launch of a kernel, as plain values."""

from __future__ import annotations

from dataclasses import dataclass

from perfmodel.basics.brief import brief, number_of
from perfmodel.kernels.arguments import Argument, Array, arrays_of

OPENCL_C, PTX = "OpenCL C", "PTX"
"""The languages of launches; the one runs by way of OpenCL, the other of CUDA."""


@dataclass(frozen=True, repr=False)
class Launch:
    """One launch of a kernel: everything that decides what the device does.

    Attributes:
        global_size: work-items along each axis.
        local_size: work-items of a work-group along each axis; divides `global_size`.
        arguments: in the kernel's order.
        options: given to the OpenCL compiler.
        language: of the source: `OPENCL_C` or `PTX`.
        copied_in, copied_out: arrays copied to the device before, and from it after, as part of what is timed.
        shared_bytes: dynamic shared memory of a block, of PTX.
    """

    source: str
    kernel_name: str
    global_size: tuple[int, ...]
    local_size: tuple[int, ...]
    arguments: tuple[Argument, ...]
    options: tuple[str, ...] = ()
    copied_in: tuple[str, ...] = ()
    copied_out: tuple[str, ...] = ()
    language: str = OPENCL_C
    shared_bytes: int = 0

    def __repr__(self) -> str:
        sizes = " × ".join(map(str, self.global_size)), " × ".join(map(str, self.local_size))
        arguments = number_of(len(self.arguments), "argument")
        return brief(self, self.kernel_name, f"{sizes[0]} work-items in groups of {sizes[1]}", arguments)

    def arrays(self) -> list[Array]:
        """Returns the arrays that the kernel accesses, also by pointers in structs, in the arguments' order."""
        return [array for argument in self.arguments for array in arrays_of(argument)]
