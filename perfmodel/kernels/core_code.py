"""A program counted as compiled, with what the machine code that a driver makes of it takes of a processor's cores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel.basics.errors import PerfmodelError
from perfmodel.counting.counts import CoreWork, KernelCounts
from perfmodel.kernels.counted_at_numbers import CountedAtNumbers
from perfmodel.kernels.launch import Launch
from perfmodel.kernels.opencl_program import OpenCLProgram
from perfmodel.kernels.program import EmulatesItself, Program
from perfmodel.kernels.transfers import WithTransfers

if TYPE_CHECKING:
    from perfmodel.x86.object_code import Binaries
    from perfmodel.x86.source import Source

USUAL_LANES = 8
"""Work-items of a vector where the driver makes none; nothing is counted by them then."""


def as_core_code(program: Program) -> Program:
    """Returns the program in this form, itself if it has it, or if it is in CUDA C++ or PTX."""
    if isinstance(program, CoreCode | EmulatesItself):
        return program
    if isinstance(program, WithTransfers):
        return WithTransfers(as_core_code(program.program))
    return CoreCode.of(program)


class CoreCode(CountedAtNumbers[Program]):
    """A program counted in this form, see `perfmodel.Kernel.as_core_code`, and launched as it is."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self._work: dict[tuple[tuple[str, Any], ...], CoreWork | None] = {}

    def counts_for(self, subgroup_size: int | None = None, at: Mapping[str, Any] | None = None) -> KernelCounts:
        known = self.numbers(at)
        counts = self.compiled_counts(subgroup_size, known)
        return replace(counts, core=self.work_at(known, self.as_opencl()))

    def work_at(self, values: Mapping[str, Any], program: OpenCLProgram) -> CoreWork | None:
        """Returns what the launch takes of cores at these arguments, with branches as a program says of them; None
        where no driver tells its machine code, or it can't be compared with the source."""
        key = tuple(values.items())
        if key not in self._work:
            try:
                self._work[key] = _work(program, {**dict.fromkeys(program.arguments, 1), **values})
            except (PerfmodelError, ValueError):
                self._work[key] = None
        return self._work[key]


def _work(program: OpenCLProgram, values: Mapping[str, Any]) -> CoreWork | None:
    from perfmodel.x86.work import work_of  # slow to import, and only for this

    launch = program.launch(values)
    made = code_of(program, launch, values)
    if made is None:
        return None
    found = work_of(*made)
    groups = float(np.prod(launch.global_size) / np.prod(launch.local_size))
    units = {unit: amount * groups for unit, amount in found.units.items()}
    return CoreWork(units, found.waits * groups, found.lanes, found.axis)


def code_of(
    program: OpenCLProgram, launch: Launch, values: Mapping[str, Any]
) -> tuple[Binaries, Source, int, bool] | None:
    """Returns what a driver makes of a program, as `perfmodel.x86.work.work_of` takes it: binaries, the source as it
    is executed, the work-items of a vector, and whether there are any; None where no driver tells its machine code.

    Args:
        launch: of the program, at these values.
        values: of all arguments.
    """
    from perfmodel.kernels.driver_code import driver_code  # slow to import, and only for this

    made = driver_code(launch.source, launch.kernel_name, tuple(launch.options))
    if made is None:
        return None
    lanes = made.lanes.get(launch.kernel_name, 0)
    source = program.executed_source(lanes or USUAL_LANES, values)
    if source.has_loops_at_one_place and not program.statistics:  # which say lines of the source as it is
        apart = program.written_apart()
        again = driver_code(apart.source, launch.kernel_name, tuple(launch.options))
        if again is not None:
            made, source = again, apart.executed_source(lanes or USUAL_LANES, values)
    return made.binaries, source, lanes or USUAL_LANES, bool(lanes)
