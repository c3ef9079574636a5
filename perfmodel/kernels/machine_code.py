"""A program in OpenCL C counted by the PTX that NVIDIA's compiler makes of it, without a GPU or a driver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel.basics.errors import PerfmodelError
from perfmodel.counting.counts import KernelCounts
from perfmodel.kernels.arguments import Argument, Image, LocalArray, Sampler
from perfmodel.kernels.array_contents import ArrayContents
from perfmodel.kernels.counted_at_numbers import CountedAtNumbers
from perfmodel.kernels.launch import Launch
from perfmodel.kernels.opencl_program import OpenCLProgram
from perfmodel.kernels.program import EmulatesItself, Program
from perfmodel.kernels.transfers import WithTransfers

if TYPE_CHECKING:
    from perfmodel.kernels.ptx_program import PtxProgram
    from perfmodel.opencl_c.lowered import LoweredKernel

ROUNDED_ROUGHLY = ("-prec-div=false", "-prec-sqrt=false")
"""OpenCL's quotients and square roots of floats may be off by 2.5 and 3 units in the last place."""
MOST_SECONDS = 20
"""The compiler may take so long; what takes it longer is counted by its source."""


def as_machine_code(program: Program) -> Program:
    """Returns the program in this form, itself if it is machine code."""
    if isinstance(program, MachineCode | EmulatesItself):
        return program
    if isinstance(program, WithTransfers):
        return WithTransfers(as_machine_code(program.program))
    return MachineCode.of(program)


class MachineCode(CountedAtNumbers[Program]):
    """A program counted as machine code, see `perfmodel.Kernel.as_machine_code`, and launched as it is."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self._made: dict[tuple[tuple[str, Any], ...], PtxProgram | None] = {}

    def counts_for(self, subgroup_size: int | None = None, at: Mapping[str, Any] | None = None) -> KernelCounts:
        known = self.numbers(at)
        made = self.made_at(known)
        if made is not None:
            try:
                return made.counts_for(subgroup_size, known)
            except PerfmodelError:  # such as addresses where nothing lies, in arrays of random contents
                self._made[tuple(known.items())] = None
        return self.compiled_counts(subgroup_size, known)

    def made_at(self, values: Mapping[str, Any]) -> PtxProgram | None:
        """Returns the program in PTX at these arguments; None where it has no form in CUDA C++."""
        key = tuple(values.items())
        if key not in self._made:
            try:
                program = self.program.as_opencl()
                launch = program.launch({**dict.fromkeys(program.arguments, 1), **values})
                self._made[key] = None if program.statistics else machine_code(program, launch)
            except PerfmodelError:
                self._made[key] = None
        return self._made[key]


def machine_code(program: OpenCLProgram, launch: Launch) -> PtxProgram:
    """Returns the program of a launch in PTX, counted on what its arrays are known to hold.

    Raises:
        SourceError: for functions of work-items together, which have no form in CUDA C++ here.
        KernelError: where the compiler is not installed.
    """
    from perfmodel.kernels.cuda_compiler import compiled  # slow to import, and only for this
    from perfmodel.kernels.ptx_program import PtxProgram
    from perfmodel.opencl_c.cuda_text import cuda_text
    from perfmodel.opencl_c.lowering.relaxation import OPTIONS

    is_relaxed = bool(OPTIONS & set(program.options))
    kernel = program.lowered
    room = {each.name: each.size for each in launch.arguments if isinstance(each, LocalArray)}
    images = {each.name: each.pixels for each in launch.arguments if isinstance(each, Image)}
    text = cuda_text(kernel, room, images, len(launch.global_size), is_relaxed)
    found = compiled(text.text, text.name, _options(program, kernel, is_relaxed), MOST_SECONDS)
    grid = [total // own for total, own in zip(launch.global_size, launch.local_size, strict=True)]
    return PtxProgram(
        text.with_places(found.ptx),
        found.name,
        program.name,
        grid,
        launch.local_size,
        [_read_by(launch.arguments[position], text.samplers, launch) for position in text.parameters],
        arrays=_contents(program.contents or {}, launch),
        budget=program.budget,
        has_vectors=False,
    ).as_compiled()


def _read_by(argument: Argument, samplers: Mapping[str, int | str], launch: Launch) -> Argument:
    """Returns an argument, an image with the flags of the sampler that it is read by first."""
    if not isinstance(argument, Image):
        return argument
    sampler = samplers.get(argument.name, 0)
    given = {each.name: each.flags for each in launch.arguments if isinstance(each, Sampler)}
    return replace(argument, flags=given[sampler] if isinstance(sampler, str) else sampler)


def _options(program: OpenCLProgram, kernel: LoweredKernel, is_relaxed: bool) -> list[str]:
    """Returns the compiler's options for those of OpenCL."""
    options = ["-default-device", *(() if kernel.is_exact else ROUNDED_ROUGHLY)]
    if is_relaxed or "-cl-denorms-are-zero" in program.options:
        options.append("--ftz=true")
    return options


def _contents(given: Mapping[str, Any], launch: Launch) -> dict[str, Any]:
    """Returns what arrays hold, as words or in the types of the launch, again and again where they are longer than what
    was given; nothing of those that are given otherwise."""
    found: dict[str, Any] = {}
    for each in launch.arrays():
        content = given.get(each.name)
        if isinstance(content, ArrayContents) and content.array is not None:
            content = content.array
        if isinstance(content, ArrayContents):
            found[each.name] = content
        elif isinstance(content, np.ndarray) and content.nbytes % np.dtype(each.dtype).itemsize == 0 and content.size:
            plain = np.ascontiguousarray(content).reshape(-1).view(np.uint8).view(each.dtype)
            found[each.name] = plain if plain.size == each.size else np.resize(plain, each.size)
    return found
