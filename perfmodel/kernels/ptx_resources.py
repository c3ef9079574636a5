"""Tells what a kernel of PTX needs of a device: by its driver, by NVIDIA's assembler, or as an estimate."""

from __future__ import annotations

from perfmodel.counting.counts import RESERVED
from perfmodel.device.device import CUDA, Device
from perfmodel.kernels.bound_kernel import BoundKernel
from perfmodel.kernels.demand import Resources
from perfmodel.kernels.ptx_program import PtxProgram
from perfmodel.ptx.liveness import words_at_once
from perfmodel.sass.machine_code import machine_code_here


def ptx_resources(program: PtxProgram, launched: int, device: Device | None) -> Resources:
    """Returns what a program needs.

    Args:
        launched: bytes of shared memory that the launch provides to a block.
        device: of CUDA's, whose driver is asked; others tell nothing of PTX.
    """
    if device is not None and device.runtime == CUDA:
        session = device.cuda_session()
        function = session.function(program.text, program.entry)
        registers, shared, private = (
            session.driver.function_attribute(function, name)
            for name in ("NUM_REGS", "SHARED_SIZE_BYTES", "LOCAL_SIZE_BYTES")
        )
        return Resources(registers, shared + launched, private, "driver")
    if (code := machine_code_here(program.text, program.entry)) is not None:
        spilled = code.spill_store_bytes + code.spill_load_bytes
        return Resources(
            registers=code.registers,
            local_bytes=code.shared_bytes + launched,
            private_bytes=code.stack_bytes,
            source="assembler",
            spilled_bytes=spilled,
        )
    return _estimated(program, launched)


def resources_of_ptx(kernel: BoundKernel, device: Device | None) -> Resources:
    """Returns what a kernel of PTX needs at its sizes; see `ptx_resources`."""
    program = kernel.program
    assert isinstance(program, PtxProgram)
    return ptx_resources(program, program.dynamic_shared.at(kernel.sizes), device)


def _estimated(program: PtxProgram, launched: int) -> Resources:
    variables = program.code.kernel.variables.values()
    shared, private = (sum(each.n_bytes for each in variables if each.space == space) for space in ("shared", "local"))
    return Resources(words_at_once(program.code) + RESERVED, shared + launched, private, "estimate")
