"""A program counted as an optimizing compiler leaves it, and launched as it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

from perfmodel.basics.errors import CountingError
from perfmodel.counting.counts import AccessCount, KernelCounts
from perfmodel.kernels.derived_program import DerivedProgram
from perfmodel.kernels.opencl_program import OpenCLProgram
from perfmodel.kernels.program import EmulatesItself, Program
from perfmodel.kernels.transfers import WithTransfers


def as_compiled(program: Program) -> Program:
    """Returns the program in this form, itself if it has it."""
    if isinstance(program, EmulatesItself):
        return program.as_compiled()
    if isinstance(program, DerivedProgram) and program.is_of_compiler:
        return program
    if isinstance(program, WithTransfers):
        return WithTransfers(as_compiled(program.program))
    return Compiled.of(program)


class Compiled(DerivedProgram[Program]):
    """A program counted as compiled, see `perfmodel.Kernel.as_compiled`; of a Loopy program its OpenCL C, if
    possible."""

    is_of_compiler = True

    @cached_property
    def source(self) -> OpenCLProgram:
        return self.program.as_opencl().as_compiled()

    def counts_for(self, subgroup_size: int | None = None, at: Mapping[str, Any] | None = None) -> KernelCounts:
        try:
            return self.source.counts_for(subgroup_size, at)
        except CountingError:
            if at is None or not set(self.sizes) <= at.keys() or self.program.as_opencl() is self.program:
                raise
            # Code that Loopy writes may be beyond counting where what it was written from is not.
            counts = self.program.counts_for(subgroup_size, at)
            accesses = tuple(map(self._waited_for, counts.accesses))
            return replace(counts, accesses=accesses, index_operations=())

    def knows_addresses(self, subgroup_size: int | None = None, at: Mapping[str, Any] | None = None) -> bool:
        return self.source.knows_addresses(subgroup_size, at)

    def _waited_for(self, access: AccessCount) -> AccessCount:
        """Returns an access of a Loopy program with how its loads are waited for in the code that Loopy writes."""
        wait = self.source.waits.get(access.variable)
        if wait is None or access.direction != "load":
            return access
        return replace(access, wait=wait.share, level=wait.level, depth=wait.depth)

    def as_opencl(self) -> OpenCLProgram:
        return self.source
