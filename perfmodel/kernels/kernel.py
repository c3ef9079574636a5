"""Kernel: a program with sizes and tags bound, ready to be counted, measured and predicted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from perfmodel.counting.counts import AccessCount
from perfmodel.counting.usual_budget import USUAL
from perfmodel.kernels.arguments import Argument
from perfmodel.kernels.compiled import as_compiled
from perfmodel.kernels.core_code import as_core_code
from perfmodel.kernels.counted_kernel import CountedKernel
from perfmodel.kernels.machine_code import as_machine_code
from perfmodel.kernels.opencl_file import opencl_program
from perfmodel.kernels.program import EmulatesItself, Program
from perfmodel.kernels.transfers import WithTransfers
from perfmodel.kernels.work_removal import with_each_access, with_one_access


class Kernel(CountedKernel):
    """A program bound to sizes and tags; immutable, hashable by content.

    Args:
        program: a Loopy translation unit, or any `Program`.
        tags: what a generator says of this kernel; free for your own kernels. ``name="mine"`` beside them is the name
            that tables, rankings and reports show; that of the program if it is left out.
        statistics: what data decide, for a Loopy program's counts: the expected trip count of a loop by its loop
            variable, and the probability of a predicate by its text or by its instruction.
        arguments: sizes (``n=1024``) and other scalar arguments. Those left out stay open until `at` or a prediction
            gives them; scalars that are no sizes then run as 1. A struct or vector by value is a numpy record, a
            mapping or a sequence (``shape={"dims": [64, 48]}``), or is given number by number: ``shape_dims_0=64``. Any
            name will do: ``tags=``, ``statistics=`` and ``name=`` may be named like these, and are arguments where they
            are numbers.

    Raises:
        KernelError: for an argument that the program doesn't have, or a size that breaks its assumptions.
    """

    __slots__ = ()

    @classmethod
    def from_opencl(
        cls,
        source: str | Path,
        name: str,
        /,
        global_size: int | str | Sequence[int | str],
        local_size: int | str | Sequence[int | str],
        args: Mapping[str, int | str] | Sequence[Argument] | None = None,
        options: Sequence[str] = (),
        *,
        folders: Sequence[str | Path] = (),
        assumptions: str = "",
        statistics: Mapping[str, float] | None = None,
        tags: Mapping[str, str] | None = None,
        budget: float = USUAL,
        **arguments: Any,
    ) -> Kernel:
        """Returns a kernel of OpenCL C source: counted, measured, predicted and emulated like any other.

        >>> Kernel.from_opencl("blur.cl", "blur", ("n", "n"), (16, 16), {"image": "n*n", "out": "n*n"}, n=1024)

        Args:
            source: the text, or the path of a file.
            name: of the kernel in it.
            global_size, local_size, options, assumptions, statistics: see `perfmodel.kernels.opencl_program`.
            args: how many elements each array argument has, by its name (bytes for local memory), whole numbers or
                expressions over the sizes; all else is taken from the source. Or a full list of the arguments of
                `perfmodel.kernels.arguments`, in the kernel's order.
            folders: where ``#include "…"`` looks; the file's own folder comes first.
            budget: see `with_budget`.
            arguments: sizes and other scalar arguments, as for `Kernel`; give those that are named like a parameter
                here by ``.at(args=…)``.

        Raises:
            SourceError: for what is no OpenCL C, or not supported, with its line and column.
            KernelError: for what cannot be a kernel.
        """
        program = opencl_program(source, name, global_size, local_size, args, options, folders, assumptions, statistics)
        return cls(program.with_budget(budget), tags, None, **arguments)

    @classmethod
    def from_cuda(
        cls,
        source: str | Path,
        name: str | None,
        /,
        grid: int | str | Sequence[int | str],
        block: int | str | Sequence[int | str],
        args: Mapping[str, int | str] | Sequence[Argument] | None = None,
        options: Sequence[str] = (),
        *,
        folders: Sequence[str | Path] = (),
        shared: int | str = 0,
        assumptions: str = "",
        tags: Mapping[str, str] | None = None,
        **arguments: Any,
    ) -> Kernel:
        """Returns a kernel of CUDA C++ source, counted and predicted by the PTX that NVIDIA's compiler makes of it.

        >>> Kernel.from_cuda("saxpy.cu", "saxpy", "(n + 255) / 256", 256, {"x": "n", "y": "n"}, n=1 << 20, a=2.0)

        The compiler comes with the optional extra ``nvidia``, and needs neither a GPU nor a driver.

        Args:
            source: the text, or the path of a file.
            name: of the kernel in it, a template's with its arguments: ``scale<float, 4>``; None for the only one.
            grid, block: blocks of the grid and threads of a block by axis, whole numbers or expressions over the sizes.
            args: elements of arrays by name, see `from_opencl`, or by the word of a struct, ``p_0``; 0 for a null one.
            options: of the compiler: ``-DWIDTH=8``, ``--use_fast_math``.
            folders: where ``#include "…"`` looks; the file's own folder comes first.
            shared: bytes of dynamic shared memory of a block.
            assumptions: see `from_opencl`.
            arguments: sizes and other scalar arguments, as for `Kernel`.

        Raises:
            SourceError: for what is no CUDA C++, or becomes PTX that is not supported.
            KernelError: for what cannot be a kernel, and where the compiler is not installed.
        """
        from perfmodel.kernels.cuda_file import cuda_kernel  # slow to import, and only for CUDA

        program = cuda_kernel(source, name, options, folders).program(grid, block, args, shared, assumptions)
        return cls(program, tags, None, **arguments)

    @classmethod
    def from_ptx(
        cls,
        text: str | Path,
        entry: str | None,
        /,
        grid: int | str | Sequence[int | str],
        block: int | str | Sequence[int | str],
        args: Mapping[str, int | str] | Sequence[Argument] | None = None,
        *,
        shared: int | str = 0,
        assumptions: str = "",
        tags: Mapping[str, str] | None = None,
        **arguments: Any,
    ) -> Kernel:
        """Returns a kernel of PTX text, whatever compiler wrote it, such as Triton.

        Args:
            text: the text, or the path of a file.
            entry: the kernel's name in it; None for the only one.
            args: as for `from_cuda`; parameters have the names that the text gives them.
            grid, block, shared, assumptions, arguments: as for `from_cuda`.

        Raises:
            SourceError: for what is no PTX, or has instructions that are not understood.
            KernelError: for what cannot be a kernel.
        """
        from perfmodel.kernels.cuda_file import ptx_kernel  # slow to import, and only for PTX

        program = ptx_kernel(text, entry).program(grid, block, args, shared, assumptions)
        return cls(program, tags, None, **arguments)

    @classmethod
    def from_triton(
        cls,
        fn: Any,
        grid: Any,
        args: Mapping[str, Any] | Sequence[Any] = (),
        /,
        *,
        target: str = "sm_90",
        assumptions: str = "",
        tags: Mapping[str, str] | None = None,
        **arguments: Any,
    ) -> Kernel:
        """Returns a kernel of Triton, counted and predicted by the PTX that Triton makes of it.

        >>> Kernel.from_triton(add, lambda meta: (triton.cdiv(n, meta["BLOCK"]),), (x, y, out, n), BLOCK=1024)
        >>> Kernel.from_triton(add, "(n + BLOCK - 1) // BLOCK", ("random:float32:n",) * 3, BLOCK=1024, n=10**7)

        Triton comes with the optional extra ``triton``, and needs neither a GPU nor a driver. As Triton does at a call,
        it compiles for the numbers that are given: for those that are 1, and for multiples of 16. Those that are left
        open may then be anything, but for what `assumptions` say (``n % 16 == 0``).

        Args:
            fn: a function under ``@triton.jit``, with or without ``@triton.heuristics`` and ``@triton.autotune``.
            grid: blocks of the grid by axis, whole numbers or expressions over sizes and constants; or a function of
                the constants and numbers, as Triton's.
            args: the arguments, in their order or by name: numpy arrays (or all that has ``dtype`` and ``shape``),
                numbers, words for arrays (``random:float32:n*n``, ``zeros:bfloat16:n*n``, ``FILE.npy``), expressions
                over sizes, and tuples of these; whole numbers that are left out are sizes.
            target: the architecture to compile for.
            assumptions: see `from_opencl`.
            arguments: constants (``tl.constexpr``), sizes and other numbers, and options of Triton's compiler
                (``num_warps``, ``num_stages``).

        Raises:
            SourceError: for what Triton does not compile, or becomes PTX that is not supported.
            KernelError: for what cannot be a kernel, and where Triton is not installed.
        """
        from perfmodel.kernels.triton_kernel import triton_program  # slow to import, and only for Triton

        named = _name_in(arguments)
        program, bound = triton_program(fn, grid, args, target, assumptions, arguments)
        return cls(program, tags, None, **named, **bound)

    @classmethod
    def from_numba(
        cls,
        fn: Any,
        grid: int | str | Sequence[int | str],
        block: int | str | Sequence[int | str],
        args: Mapping[str, Any] | Sequence[Any] = (),
        /,
        *,
        shared: int | str = 0,
        target: str = "sm_90",
        assumptions: str = "",
        tags: Mapping[str, str] | None = None,
        **arguments: Any,
    ) -> Kernel:
        """Returns a kernel of Numba, counted and predicted by the PTX that Numba makes of it.

        >>> Kernel.from_numba(axpy, "(n + 255) // 256", 256, (2.0, "random:float32:n", "random:float32:n"), n=10**7)

        Numba's compiler for CUDA comes with the optional extra ``numba``, and needs neither a GPU nor a driver.

        Args:
            fn: a function under ``@cuda.jit``, or what would stand under it.
            grid, block: blocks of the grid and threads of a block by axis, whole numbers or expressions over sizes.
            args: the arguments, in their order or by name, as for `from_triton`; arrays of several axes as
                ``random:float32:n, m``. Whole numbers that are left out are sizes.
            shared: bytes of dynamic shared memory of a block.
            target: the architecture to compile for.
            assumptions: see `from_opencl`.
            arguments: sizes and other numbers.

        Raises:
            SourceError: for what Numba does not compile, or becomes PTX that is not supported.
            KernelError: for what cannot be a kernel, and where Numba is not installed.
        """
        from perfmodel.kernels.numba_kernel import numba_program  # slow to import, and only for Numba

        named = _name_in(arguments)
        program, bound = numba_program(fn, grid, block, args, shared, target, assumptions, arguments)
        return cls(program, tags, None, **named, **bound)

    def with_budget(self, budget: float, /) -> Kernel:
        """Returns the same kernel, of which counting may take so many times the usual work: 10, or 0.1.

        What isn't counted for all sizes within the budget is counted at the kernel's own, and what isn't there either
        is seen in work-groups that are emulated; see `counts_for`. Where these take long, and of PTX, which is always
        emulated, some iterations of long loops then stand for the others. Usually this ends after a second or two. The
        budget is of work and not of time, so that a kernel has the same counts on every machine; hard sets take more
        time for the same work than others.

        Raises:
            KernelError: for a budget that leaves nothing.
        """
        return Kernel(self.program.with_budget(budget), self.tags, None, **self._arguments)

    def as_emulated(
        self, arrays: Mapping[str, Any] | None = None, groups: str | Sequence[Any] = "first", seed: int = 0
    ) -> Kernel:
        """Returns the same kernel, counted by emulating some of its work-groups, which stand for all of them.

        So one whose work data decide, or that is not affine, has the features that projections need: operations,
        accesses and their transactions, barriers, footprints of work-groups. Those that emulation can't give, such as
        strides, are refused. Arguments that are no sizes have the value that they have now.

        Args:
            arrays, groups, seed: see `perfmodel.emulate`.
        """
        if isinstance(self.program, EmulatesItself):
            return Kernel(self.program.as_observed(arrays, groups, seed), self.tags, None, **self._arguments)
        from perfmodel.kernels.emulated_program import EmulatedProgram  # slow to import

        plain = self.as_opencl()
        scalars = {name: value for name, value in plain.bound.items() if name not in plain.program.sizes}
        program: Program = EmulatedProgram(plain.program.as_opencl(), scalars, arrays, groups, seed)
        if isinstance(self.program, WithTransfers):
            program = WithTransfers(program)
        return Kernel(program, self.tags, None, **plain.bound)

    def as_compiled(self) -> Kernel:
        """Returns the same kernel, counted as an optimizing compiler leaves it.

        What is computed or loaded twice counts once, what loops do not change counts before them, and index arithmetic
        has features: ``f_op_int32_mul_index``. What NVIDIA's assembler makes of CUDA C++ and PTX, where it is
        installed, has features as well: ``f_issue_slots``. It is still launched and stored as the kernel that it is.
        Models with such features count every kernel so by themselves.
        """
        return Kernel(as_compiled(self.program), self.tags, None, **self._arguments)

    def as_machine_code(self) -> Kernel:
        """Returns the same kernel, counted by the PTX that NVIDIA's compiler makes of it.

        What a compiler unrolls, keeps in registers and moves out of loops counts as it does it (docs/gpu-counting.md).
        It is counted by emulating work-groups, at sizes that are numbers, on the arrays that `as_observed` was given,
        else on random numbers. It is still launched as the kernel that it is. The compiler comes with the optional
        extra ``nvidia``, and needs neither a GPU nor a driver; what it can't be given (images, functions of
        sub-groups) is counted as compiled, see `as_compiled`.
        """
        return Kernel(as_machine_code(self.program), self.tags, None, **self._arguments)

    def as_core_code(self) -> Kernel:
        """Returns the same kernel, counted as compiled, with what its machine code takes of a processor's cores.

        Intel's driver for processors builds it for this machine and tells the line of each instruction; features such
        as ``f_core_slots`` and ``f_core_waits`` follow from these and from how often the source's statements are
        executed, at sizes that are numbers (see docs/cpu-counting.md). They are 0 where no such driver is here, or a
        kernel is not in OpenCL C. It is still launched as the kernel that it is.
        """
        return Kernel(as_core_code(self.program), self.tags, None, **self._arguments)

    def with_transfers(self) -> Kernel:
        """Returns the same kernel, with the copies of its inputs to the device and of its outputs from it in its time.

        Measured, it takes longer by these copies; counted, it has the features ``f_transfer_bytes_to`` and the like.
        """
        return Kernel(WithTransfers(self.program), {**self.tags, "transfers": "True"}, None, **self._arguments)

    def with_one_access(self, keep: AccessCount | str, /) -> Kernel:
        """Returns a kernel with one of the global accesses left, with its loops, launch and addresses.

        What is loaded is summed up in a register, and stored if the sum is negative, which no compiler can know that it
        never is.

        Args:
            keep: one of ``counts.accesses``, or its text as ``perfmodel count`` shows it (``"a[i, k]"``), or the name
                of an array that has one access only; with ``load`` or ``store`` in front if there are both.

        Raises:
            KernelError: if there is no such access, it is not unique, or its address or whether it runs depends on
                data; and for a kernel that is no Loopy program.
        """
        return with_one_access(self, keep)

    def with_each_access(self) -> list[Kernel]:
        """Returns a kernel for each distinct pattern of the global accesses, as `with_one_access` makes it.

        Accesses have one pattern if type, direction, strides, executions and the number of distinct elements are the
        same functions of the sizes.

        Warns:
            WorkRemovalWarning: an access cannot be isolated, and is left out.
        """
        return with_each_access(self)


def _name_in(arguments: dict[str, Any]) -> dict[str, str]:
    """Takes a kernel's name out of its arguments."""
    return {"name": arguments.pop("name")} if isinstance(arguments.get("name"), str) else {}


def as_kernel(given: Any, /) -> Kernel:
    """Returns a kernel as it is, and a Loopy program or another `Program` as a kernel of no sizes of its own.

    Raises:
        KernelError: for anything else.
    """
    return Kernel.of(given)


def as_kernels(given: Any, /) -> list[Kernel]:
    """Returns kernels as a list, of one or of several, each as `as_kernel` takes it."""
    return [as_kernel(each) for each in given] if isinstance(given, Iterable) else [as_kernel(given)]
