"""One launch of a kernel of CUDA C++ by CuPy: what was launched, on what, and the kernel that is counted."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel.basics.errors import KernelError, PerfmodelError
from perfmodel.interception.arguments import LaunchArgument
from perfmodel.interception.built import Built
from perfmodel.interception.given import Given, GivenBuffer, GivenBytes, GivenNull, GivenOther
from perfmodel.interception.record import LaunchRecord
from perfmodel.kernels.kernel import Kernel

if TYPE_CHECKING:
    from perfmodel.kernels.cuda_file import CompiledKernel
    from perfmodel.opencl_c.emulation import Emulation

Dtypes = tuple[str | None, ...]


class CudaLaunchRecord(LaunchRecord):
    """A launch of CUDA C++ that a program made.

    Attributes:
        shared: bytes of dynamic shared memory of a block.
        dtypes: what the program's arrays and scalars are of, numpy's names; None for other arguments.
    """

    def __init__(
        self,
        built: Built,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        given: tuple[Given, ...],
        dtypes: Dtypes,
        shared: int,
        device: str,
    ) -> None:
        axes = max(len(grid), len(block))
        self.grid, block = (each + (1,) * (axes - len(each)) for each in (grid, block))
        threads = tuple(count * size for count, size in zip(self.grid, block, strict=True))
        super().__init__(built, threads, block, (), given, device)
        self.shared, self.dtypes = shared, dtypes

    @cached_property
    def key(self) -> tuple[object, ...]:
        """A value that is equal for launches of the same kernel on the same device with the same sizes and values."""
        return (*super().key, self.shared, self.dtypes)

    @cached_property
    def _compiled(self) -> CompiledKernel | PerfmodelError:
        """The kernel as NVIDIA's compiler reads it, or the error that says why it does not."""
        from perfmodel.kernels.cuda_file import cuda_kernel  # slow to import, and only for CUDA

        try:
            if self.source is None:
                raise KernelError(self.built.problem)
            found = cuda_kernel(self.source, self.name, self.options)
            if len(found.declared) != len(self.given):
                raise KernelError(
                    f"kernel {self.name!r} has {len(found.declared)} arguments and was launched with "
                    f"{len(self.given)}; give each of them"
                )
        except PerfmodelError as error:
            return error
        return found

    @cached_property
    def problem(self) -> str:
        return str(self._compiled) if isinstance(self._compiled, PerfmodelError) else ""

    @cached_property
    def arguments(self) -> tuple[LaunchArgument, ...]:
        """The arguments in the kernel's order."""
        names = [f"#{position}" for position in range(len(self.given))]
        if not isinstance(self._compiled, PerfmodelError):
            names = [each.name for each in self._compiled.declared]
        both = zip(names, self.given, self.dtypes, strict=True)
        return tuple(_argument(name, given, dtype) for name, given, dtype in both)

    def kernel_with(self, statistics: Mapping[str, float]) -> Kernel:
        """Returns the kernel; what its data decide is read from its code, so there are no statistics to give.

        Raises:
            SourceError, KernelError: for a source or arguments that perfmodel does not support.
        """
        if statistics:
            raise KernelError(f"kernel {self.name!r} is of CUDA C++, which takes no statistics; leave them out")
        compiled = self._compiled
        if isinstance(compiled, PerfmodelError):
            raise compiled
        extents: dict[str, int | str] = {}
        scalars: dict[str, Any] = {}
        for argument in self.arguments:
            is_pointer = argument.name in compiled.pointers
            if is_pointer and argument.kind in ("array", "null"):
                extents[argument.name] = (argument.n_bytes or 0) // compiled.item_bytes(argument.name)
            elif not is_pointer and isinstance(argument.value, np.generic):
                scalars[argument.name] = argument.value.item()
            else:
                raise KernelError(
                    f"argument {argument.name!r} of kernel {self.name!r} is not known "
                    f"({argument.problem or argument.kind}); give it as an array or a number"
                )
        return Kernel.from_cuda(
            self.source or "",
            self.name,
            self.grid,
            self.group_size,
            extents,
            self.options,
            shared=self.shared,
            **scalars,
        )

    def emulate(self, **options: Any) -> Emulation:
        """Refuses: work-groups are emulated of kernels of OpenCL C.

        Raises:
            KernelError: always.
        """
        raise KernelError(f"kernel {self.name!r} is of CUDA C++, of which no work-group is emulated; leave it out")


def _argument(name: str, given: Given, dtype: str | None) -> LaunchArgument:
    match given:
        case GivenBuffer():
            return LaunchArgument(
                name, "array", dtype=dtype, n_bytes=given.n_bytes, problem="contents are kept of OpenCL's arrays only"
            )
        case GivenBytes():
            value = np.frombuffer(given.data, dtype)[0]
            return LaunchArgument(name, "scalar", dtype=dtype, n_bytes=len(given.data), value=value)
        case GivenNull():
            return LaunchArgument(name, "null", n_bytes=0)
        case GivenOther():
            return LaunchArgument(name, "unknown", problem=given.what)
    return LaunchArgument(name, "unknown", problem=type(given).__name__)
