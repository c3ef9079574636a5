"""The properties of a kernel that do not depend on its launch are found once for all counts of it."""

from __future__ import annotations

from functools import cached_property, lru_cache

from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c.operations import KernelOperations
from perfmodel.opencl_c.static.moved_sums import MovedSums, moved_sums
from perfmodel.opencl_c.static.scratch import scratch_arrays
from perfmodel.opencl_c.static.uniformity import Uniformity
from perfmodel.opencl_c.static.vectorization import Vectorization, operations_of_scalar_code
from perfmodel.opencl_c.static.waits import Waits
from perfmodel.opencl_c.static.written_out import WrittenOut


class Properties:
    """Holds what is known of a kernel without its launch.

    Attributes:
        operations: of each of its blocks.
        scratch: what of private arrays lies in memory.
        waits: how its loads are waited for.
        vectorization: what a processor's compiler sees of its accesses.
        uniformity: which of its branches such a compiler masks.
    """

    def __init__(self, kernel: low.LoweredKernel, as_compiled: bool) -> None:
        self._kernel = kernel
        self.operations = KernelOperations(kernel, as_compiled)
        self.scratch = scratch_arrays(kernel)
        self.waits = Waits(kernel, self.operations, self.scratch)
        self.vectorization = Vectorization(kernel, self.operations, self.waits.written_out)
        self.uniformity = Uniformity(kernel)

    @cached_property
    def scalar_operations(self) -> float:
        """The operations that an instruction does at once where work-items become no lanes; 0 where they do."""
        return operations_of_scalar_code(self._kernel)

    @cached_property
    def moved_sums(self) -> MovedSums:
        """The words that a work-item keeps where a compiler moves sums to where they are stored."""
        return moved_sums(self._kernel, self.waits.written_out)

    @cached_property
    def written_out(self) -> WrittenOut:
        """The index arithmetic that is left of loops which a compiler writes out; made where it is counted."""
        return WrittenOut(self._kernel, self.operations, self.waits.written_out)


@lru_cache(maxsize=8)
def properties_of(kernel: low.LoweredKernel, as_compiled: bool) -> Properties:
    """Returns the properties of a kernel; those of the last ones are remembered."""
    return Properties(kernel, as_compiled)
