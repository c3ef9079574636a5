"""A kernel whose counts follow from a sample of work-groups, as the sample shows it with other weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from perfmodel.counting.counts import KernelCounts
from perfmodel.kernels.derived_program import DerivedProgram
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.program import Program


class Replica(DerivedProgram[Program]):
    """A program with the executions of one replica of a kernel's sample, see `perfmodel.counting.resampling`."""

    def __init__(self, kernel: Kernel, number: int) -> None:
        super().__init__(kernel.program)
        self.kernel, self.number = kernel, number

    def counts_for(self, subgroup_size: int | None = None, at: Mapping[str, Any] | None = None) -> KernelCounts:
        if at is not None and set(self.sizes) <= set(at):
            counts = self.kernel.at(**at).counts_for(subgroup_size)
        else:
            counts = self.program.counts_for(subgroup_size, at)
        return counts.replica(self.number)


def replicas(kernel: Kernel, subgroup_size: int | None) -> Iterator[Kernel]:
    """Yields the kernel with the counts of each replica; nothing for one whose counts are no estimates."""
    for number in range(kernel.counts_for(subgroup_size).replicas):
        yield Kernel(Replica(kernel, number), kernel.tags, None, **kernel.bound)
