"""Tells a kernel's demand on a device's registers and memories: what the driver says, or an estimate from its source.

Registers and local memory decide how many work-groups a device runs at a time (Karan Kumar, "occupancy").
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from perfmodel.counting.counts import RESERVED
from perfmodel.counting.symbolic import Polynomial, number
from perfmodel.device.device import CUDA, Device, find_device
from perfmodel.kernels.demand import Resources
from perfmodel.kernels.kernel import Kernel, as_kernel
from perfmodel.kernels.opencl_program import OpenCLProgram
from perfmodel.kernels.program import EmulatesItself
from perfmodel.opencl_c.lowered import LoweredKernel
from perfmodel.opencl_c.static.scratch import scratch_arrays, words_in_registers

_COMPILING = re.compile(r"Compiling entry function '(?P<name>[^']+)'")
_REGISTERS = re.compile(r"Used (?P<number>\d+) registers")
_SHARED = re.compile(r"(?P<number>\d+) bytes smem")


@dataclass(frozen=True)
class ResourceEstimate:
    """Holds an estimate from a kernel's source; see `Resources`. Local memory may depend on the sizes."""

    registers: int
    local_bytes: Polynomial
    private_bytes: int


def resources(kernel: Kernel, device: str | Device | None = None) -> Resources:
    """Returns a kernel's demand on a device, asked from its driver; without a device, an estimate from its source.

    Of CUDA and PTX, NVIDIA's assembler tells it without a device, where the extra ``sass`` is installed.

    The estimate's local memory is exact. Its registers are the words of 32 bits that live at once in the source as it
    stands, and a few more: no more than a hint, as compilers unroll loops, reorder and keep small arrays in registers.

    Raises:
        KernelError: for a kernel that can't be read or built, or sizes that are missing for its local memory.
        DeviceError: for a device that is not here.
    """
    kernel = as_kernel(kernel)
    if isinstance(kernel.program, EmulatesItself):
        from perfmodel.kernels.ptx_resources import resources_of_ptx  # slow to import, and only for PTX

        return resources_of_ptx(kernel, None if device is None else find_device(device, runtime=CUDA))
    kernel = kernel.as_opencl()
    program: OpenCLProgram = kernel.program  # type: ignore[assignment]
    launched = 0
    if program.local_arguments:
        kernel.bind({})
        launched = sum(n_bytes.at(kernel.sizes) for n_bytes in program.local_arguments)
    if device is not None:
        usage = find_device(device).session().usage(program.source, program.name, program.options)
        registers, local_bytes = compiled(usage.log, program.name) or (None, usage.local_bytes)
        return Resources(
            registers=registers, local_bytes=local_bytes + launched, private_bytes=usage.private_bytes, source="driver"
        )
    lowered = program.lowered
    return Resources(
        registers=_registers(lowered),
        local_bytes=lowered.local_bytes + launched,
        private_bytes=lowered.private_bytes,
        source="estimate",
    )


def estimate(program: OpenCLProgram) -> ResourceEstimate:
    """Estimates a program's resources from its source, for all sizes."""
    lowered = program.lowered
    launched = [n_bytes.polynomial() for n_bytes in program.local_arguments]
    return ResourceEstimate(_registers(lowered), sum(launched, number(lowered.local_bytes)), lowered.private_bytes)


def _registers(lowered: LoweredKernel) -> int:
    return words_in_registers(lowered, scratch_arrays(lowered)) + RESERVED


def compiled(log: str, kernel: str) -> tuple[int, int] | None:
    """Returns registers and bytes of local memory of a kernel in the log of NVIDIA's compiler; None if it has none.

    The log is more exact than what the driver says of local memory, which is 1 byte where there is none.
    """
    current = None
    for line in log.splitlines():
        if compiling := _COMPILING.search(line):
            current = compiling["name"]
        elif current == kernel and (used := _REGISTERS.search(line)):
            shared = _SHARED.search(line)
            return int(used["number"]), int(shared["number"]) if shared else 0
    return None
