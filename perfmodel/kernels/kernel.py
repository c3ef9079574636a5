"""Kernel: a program with sizes and tags bound, ready to be counted, measured and predicted."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel.basics.errors import CountingError, KernelError, nearest
from perfmodel.kernels.program import Program

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfmodel.counting.counts import AccessCount, KernelCounts
    from perfmodel.kernels.launch import Launch
    from perfmodel.kernels.opencl_program import Array, LocalArray, Scalar


class Kernel:
    """A program bound to sizes and tags; immutable, hashable by content.

    Args:
        program: a Loopy translation unit, or any `Program`.
        tags: what a generator says of this kernel; free for your own kernels.
        statistics: what data decide, for a Loopy program's counts: the expected trip count of a loop by its loop
            variable, and the probability of a predicate by its text or by its instruction.
        arguments: sizes (``n=1024``) and other scalar arguments. Those left out stay open until `at` or a prediction
            gives them; scalars that are no sizes then run as 1. Any name will do: ``tags=`` and ``statistics=`` may be
            named like these, and are arguments where they are numbers.

    Raises:
        KernelError: for an argument that the program doesn't have, or a size that breaks its assumptions.
    """

    __slots__ = ("_arguments", "program", "tags")

    program: Program
    tags: Mapping[str, str]

    def __init__(
        self,
        program: Any,
        tags: Mapping[str, str] | None = None,
        statistics: Mapping[str, float] | None = None,
        /,
        **arguments: Any,
    ) -> None:
        if isinstance(arguments.get("tags"), Mapping):
            tags = arguments.pop("tags")
        if isinstance(arguments.get("statistics"), Mapping):
            statistics = arguments.pop("statistics")
        if hasattr(program, "launch"):
            if statistics:
                raise KernelError(f"kernel {program.name!r} is given statistics twice; give them with its program only")
            self.program = program
        else:
            self.program = _loopy_program(program, statistics)
        self.tags = dict(tags or {})
        self._arguments = {name: _plain(name, value) for name, value in sorted(arguments.items())}
        for name in self._arguments:
            if name not in self.program.arguments:
                raise KernelError(
                    f"kernel {self.name!r} has no size or argument {name!r}; it has "
                    f"{', '.join(self.program.arguments) or 'none'}{nearest(name, self.program.arguments)}"
                )
        bound = {n: _whole(self.name, n, self._arguments[n]) for n in self.program.sizes if n in self._arguments}
        self._arguments.update({name: int(value) for name, value in bound.items()})
        if len(bound) == len(self.program.sizes):
            self.program.check(bound)

    @classmethod
    def from_opencl(
        cls,
        source: str | Path,
        name: str,
        /,
        global_size: int | str | Sequence[int | str],
        local_size: int | str | Sequence[int | str],
        args: Mapping[str, int | str] | Sequence[Array | Scalar | LocalArray] | None = None,
        build_options: Sequence[str] = (),
        *,
        folders: Sequence[str | Path] = (),
        assumptions: str = "",
        statistics: Mapping[str, float] | None = None,
        tags: Mapping[str, str] | None = None,
        **arguments: Any,
    ) -> Kernel:
        """Returns a kernel of OpenCL C source: counted, measured, predicted and emulated like any other.

        >>> Kernel.from_opencl("blur.cl", "blur", ("n", "n"), (16, 16), {"image": "n*n", "out": "n*n"}, n=1024)

        Args:
            source: the text, or the path of a file.
            name: of the kernel in it.
            global_size, local_size, build_options, assumptions, statistics: see `perfmodel.kernels.opencl_program`.
            args: how many elements each array argument has, by its name (bytes for local memory), whole numbers or
                expressions over the sizes; all else is taken from the source. Or a full list of `Array`, `Scalar` and
                `LocalArray`, in the kernel's order.
            folders: where ``#include "…"`` looks; the file's own folder comes first.
            arguments: sizes and other scalar arguments, as for `Kernel`; give those that are named like a parameter
                here by ``.at(args=…)``.

        Raises:
            SourceError: for what is no OpenCL C, or not supported, with its line and column.
            KernelError: for what cannot be a kernel.
        """
        from perfmodel.kernels.opencl_file import opencl_program

        program = opencl_program(
            source, name, global_size, local_size, args or {}, build_options, folders, assumptions, statistics
        )
        return cls(program, tags, None, **arguments)

    def as_opencl(self) -> Kernel:
        """Returns the same kernel as OpenCL C source: of a Loopy program, the code that Loopy generates."""
        program = self.program.as_opencl()
        bound = {name: value for name, value in self._arguments.items() if name in program.arguments}
        return Kernel(program, self.tags, None, **bound)

    def as_observed(self, arrays: Mapping[str, Any] | None = None, groups: str = "sample", seed: int = 0) -> Kernel:
        """Returns the same kernel with statistics of what data decide in it, from emulating some of its work-groups.

        So a kernel whose loops and branches depend on data can be counted, and predicted, without saying how.

        Args:
            arrays, groups, seed: see `perfmodel.emulate`.
        """
        from perfmodel.kernels.emulation import emulate
        from perfmodel.opencl_c.static.observation import observed

        emulation = emulate(self, arrays, groups=groups, checks=False, seed=seed).emulation
        items = len(emulation.groups) * math.prod(emulation.local_size)
        executions = emulation.blocks[:, :, 0].sum(axis=0).tolist()
        program = self.program.as_opencl().as_observed(observed(emulation.kernel, executions, items))
        return Kernel(program, self.tags, None, **self._arguments)

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
        from perfmodel.kernels.emulated_program import EmulatedProgram
        from perfmodel.kernels.transfers import WithTransfers

        plain = self.as_opencl()
        scalars = {name: value for name, value in plain.bound.items() if name not in plain.program.sizes}
        program: Program = EmulatedProgram(plain.program.as_opencl(), scalars, arrays, groups, seed)
        if isinstance(self.program, WithTransfers):
            program = WithTransfers(program)
        return Kernel(program, self.tags, None, **plain.bound)

    def as_compiled(self) -> Kernel:
        """Returns the same kernel, counted as an optimizing compiler leaves it.

        What is computed or loaded twice counts once, what loops do not change counts before them, and index arithmetic
        has features: ``f_op_int32_mul_index``. It is still launched and stored as the kernel that it is. Models with
        such features count every kernel so by themselves.
        """
        from perfmodel.kernels.compiled import as_compiled

        return Kernel(as_compiled(self.program), self.tags, None, **self._arguments)

    def with_transfers(self) -> Kernel:
        """Returns the same kernel, with the copies of its inputs to the device and of its outputs from it in its time.

        Measured, it takes longer by these copies; counted, it has the features ``f_transfer_bytes_to`` and the like.
        """
        from perfmodel.kernels.transfers import WithTransfers

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
        from perfmodel.kernels.work_removal import with_one_access

        return with_one_access(self, keep)

    def with_each_access(self) -> list[Kernel]:
        """Returns a kernel for each distinct pattern of the global accesses, as `with_one_access` makes it.

        Accesses have one pattern if type, direction, strides, executions and the number of distinct elements are the
        same functions of the sizes.

        Warns:
            WorkRemovalWarning: an access cannot be isolated, and is left out.
        """
        from perfmodel.kernels.work_removal import with_each_access

        return with_each_access(self)

    @property
    def name(self) -> str:
        return self.tags.get("generator", self.program.name)

    @property
    def variant(self) -> str:
        """The tags that tell this kernel from its siblings, e.g. ``dtype=float32 prefetch=True``."""
        return " ".join(f"{key}={value}" for key, value in self.tags.items() if key != "generator")

    @property
    def sizes(self) -> dict[str, int]:
        return {name: int(self._arguments[name]) for name in self.program.sizes if name in self._arguments}

    @property
    def bound(self) -> dict[str, float]:
        """The scalar arguments that have a value, sizes and others."""
        return dict(self._arguments)

    def at(self, /, **arguments: float) -> Kernel:
        """Returns the same kernel with these sizes or arguments instead."""
        return Kernel(self.program, self.tags, None, **{**self._arguments, **arguments})

    def bind(self, sizes: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        """Returns all sizes as arrays that broadcast against each other, the kernel's own where `sizes` has none.

        Raises:
            KernelError: for sizes that are missing, unknown, outside what the kernel assumes, or those of no launch.
        """
        for name in sizes:
            if name not in self.program.sizes:
                raise KernelError(
                    f"kernel {self.name!r} has no size {name!r}; it has "
                    f"{', '.join(self.program.sizes) or 'none'}{nearest(name, self.program.sizes)}"
                )
        merged = {**self.sizes, **sizes}
        missing = [name for name in self.program.sizes if name not in merged]
        if missing:
            raise KernelError(f"kernel {self.name!r} needs a value for {', '.join(missing)}; give it as {missing[0]}=…")
        bound = {name: _whole(self.name, name, merged[name]) for name in self.program.sizes}
        try:
            np.broadcast_shapes(*(size.shape for size in bound.values()))
        except ValueError as error:
            shapes = ", ".join(f"{name} has {size.shape}" for name, size in bound.items())
            raise KernelError(f"sizes of kernel {self.name!r} do not go together: {shapes}; give one shape") from error
        self.program.check(bound)
        self.program.check_launch(bound)
        return bound

    def launch(self) -> Launch:
        """Returns what the device is asked to run."""
        self.bind({})
        ones = dict.fromkeys(self.program.arguments, 1)
        return self.program.launch({**ones, **self._arguments})

    @property
    def counts(self) -> KernelCounts:
        """The counts of what the kernel does, as functions of its sizes."""
        return self.counts_for()

    def counts_for(self, subgroup_size: int | None = None) -> KernelCounts:
        """Returns the counts with executions by sub-groups; only for the kernel's own sizes, where there is nothing
        more general.

        Raises:
            CountingError: for what data decide, without statistics of them.
        """
        if min(self.sizes.values(), default=0) < 0:  # counts for all sizes are for those that are not negative
            return self.program.counts_for(subgroup_size, self.sizes)
        is_bound = len(self.sizes) == len(self.program.sizes)
        try:
            counts = self.program.counts_for(subgroup_size)
        except CountingError:
            if not is_bound:
                raise
            return self.program.counts_for(subgroup_size, self.sizes)
        if is_bound and counts.unknown_places:
            here = self.program.counts_for(subgroup_size, self.sizes)
            return here if here.unknown_places < counts.unknown_places else counts
        return counts

    @property
    def label(self) -> str:
        """The kernel in one line: its name, what tells it from its siblings, and its arguments."""
        parts = [self.variant] if self.variant else []
        parts += [f"{name}={value}" for name, value in self._arguments.items()]
        return " ".join([self.name, *parts])

    def __repr__(self) -> str:
        return f"Kernel({self.label})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Kernel):
            return NotImplemented
        return self._arguments == other._arguments and self.program.content == other.program.content

    def __hash__(self) -> int:
        return hash((self.program.content, tuple(self._arguments.items())))


def as_kernel(given: Any, /) -> Kernel:
    """Returns a kernel as it is; makes one, without sizes of its own, of a Loopy program or another `Program`.

    Raises:
        KernelError: for anything else.
    """
    if isinstance(given, Kernel):
        return given
    if isinstance(given, list | tuple):
        raise KernelError(f"this takes one kernel and not {len(given)}; give one at a time, or compare them by rank")
    if isinstance(given, str | Path):
        raise KernelError(f"{str(given)[:40]!r} is no Kernel; make one of OpenCL C by Kernel.from_opencl(…)")
    return Kernel(given)


def as_kernels(given: Any, /) -> list[Kernel]:
    """Returns kernels as a list, of one or of several, each as `as_kernel` takes it."""
    return [as_kernel(each) for each in given] if isinstance(given, Iterable) else [as_kernel(given)]


def _loopy_program(translation_unit: Any, statistics: Mapping[str, float] | None) -> Program:
    from perfmodel.kernels.loopy_program import LoopyProgram

    return LoopyProgram(translation_unit, statistics)


def _plain(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise KernelError(f"{name}={value!r} is not a number; a kernel is bound to numbers")
    return int(value) if isinstance(value, int | np.integer) else float(value)


def _whole(kernel: str, name: str, value: Any) -> NDArray[Any]:
    try:
        array = np.asarray(value)
        fits = array.dtype.kind in "iuf" and bool(np.all(np.abs(array) < 2.0**63) and np.all(array == np.floor(array)))
    except ValueError:  # a ragged list
        fits = False
    if not fits:
        raise KernelError(
            f"size {name}={value!r} of kernel {kernel!r} is not a whole number; give an integer below 2**63"
        )
    return array.astype(np.int64)
