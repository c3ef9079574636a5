"""One launch of a kernel, as plain values."""

from __future__ import annotations

from dataclasses import dataclass

from perfmodel.kernels.arguments import Argument, Array


@dataclass(frozen=True)
class Launch:
    """One launch of a kernel: everything that decides what the device does.

    Attributes:
        global_size: work-items along each axis.
        local_size: work-items of a work-group along each axis; divides `global_size`.
        arguments: in the kernel's order.
        build_options: given to the OpenCL compiler.
        language: of the source: ``OpenCL C``, or ``PTX``, which is not measured.
        copied_in, copied_out: arrays copied to the device before, and from it after, as part of what is timed.
    """

    source: str
    kernel_name: str
    global_size: tuple[int, ...]
    local_size: tuple[int, ...]
    arguments: tuple[Argument, ...]
    build_options: tuple[str, ...] = ()
    copied_in: tuple[str, ...] = ()
    copied_out: tuple[str, ...] = ()
    language: str = "OpenCL C"

    def arrays(self) -> list[Array]:
        return [argument for argument in self.arguments if isinstance(argument, Array)]
