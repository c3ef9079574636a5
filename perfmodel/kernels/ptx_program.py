"""A kernel in PTX as a Program: what CUDA C++, Triton and other compilers for NVIDIA's GPUs make."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from perfmodel.basics.errors import CountingError, KernelError
from perfmodel.counting.counts import KernelCounts
from perfmodel.counting.usual_budget import USUAL, checked
from perfmodel.device.launch_shape import check_shape, listed
from perfmodel.kernels.arguments import Argument, Array, Derived, Described, Scalar, Struct
from perfmodel.kernels.declared_program import DeclaredProgram
from perfmodel.kernels.launch import PTX, Launch
from perfmodel.kernels.sample_size import large_enough
from perfmodel.kernels.size_expression import Extent, SizeExpression
from perfmodel.kernels.struct_pointers import no_arrays, pointers_without_arrays

if TYPE_CHECKING:
    from perfmodel.ptx.code import Code
    from perfmodel.ptx.emulation.emulation import Emulation
    from perfmodel.sass.machine_code import MachineCode
    from perfmodel.sass.toolchain import Held

MOST_THREADS = 1024
"""NVIDIA's GPUs take blocks of up to so many threads."""
MOST_SHARED = 232_448
"""Those of compute capability 9.0 and 10.0 give a block up to so many bytes of shared memory, and no other more."""
WIDEST_GRID, WIDEST_BLOCK = (2**31 - 1, 65535, 65535), (1024, 1024, 64)
"""Blocks of a grid and threads of a block by axis, at most."""
MOST_WORK = 110_000
"""So many instructions of few lanes are emulated with the usual budget, for about a second, before some iterations of
loops stand for others."""
MOST_ASSEMBLED = 15_000
"""The assembler is not asked about code of more statements, for which it takes seconds."""


class PtxProgram(DeclaredProgram):
    """A kernel in PTX with its launch and arguments; see `perfmodel.kernels.program.Program`.

    It is counted by emulating blocks of its grid, so that counts are known at sizes that are numbers. It is as compiled
    already.

    Args:
        text: of the PTX module.
        entry: the kernel's name there; `name`: the one that is shown.
        grid, block: blocks of the grid and threads of a block, an expression over the sizes for each axis.
        arguments: an `Array`, `Scalar`, `Struct` or `Derived` of `perfmodel.kernels.arguments` for each of the
            kernel's parameters, in its order.
        shared: bytes of dynamic shared memory of a block, an expression over the sizes.
        assumptions: what holds for the sizes, see `perfmodel.kernels.opencl_program`.
        arrays: what arrays hold, by name, as for `perfmodel.emulate`; of others, random numbers.
        groups, seed: the blocks that are emulated to count it, see `perfmodel.emulate`.
        free: sizes that are no arguments: grid, arrays and derived numbers follow from them.
        budget: for counting, see `perfmodel.Kernel.with_budget`.
        has_vectors: see `perfmodel.ptx.counting.launch.EmulatedLaunch`.

    Raises:
        SourceError: for what is no PTX, or not supported.
        KernelError: for what cannot be a kernel.
    """

    KINDS = (Array, Scalar, Struct, Derived)
    is_machine_code = True

    def __init__(
        self,
        text: str,
        entry: str,
        name: str,
        grid: Extent | Sequence[Extent],
        block: Extent | Sequence[Extent],
        arguments: Sequence[Argument | Derived],
        shared: Extent = 0,
        assumptions: str = "",
        arrays: Mapping[str, Any] | None = None,
        groups: str | Sequence[Any] = "sample",
        seed: int = 0,
        free: Sequence[str] = (),
        budget: float = USUAL,
        has_vectors: bool = True,
    ) -> None:
        self.has_vectors, self.is_assembled = has_vectors, False
        self._assembled: tuple[PtxProgram | None, PtxProgram] = None, self
        super().__init__(name, arguments, assumptions, free)
        self.text, self.entry = text, entry
        self._grid, self._block = self._axes("grid", grid), self._axes("block", block)
        if not 1 <= len(self._grid) <= 3 or not 1 <= len(self._block) <= 3:
            raise KernelError(
                f"kernel {name!r} has {len(self._grid)} axes of blocks and {len(self._block)} of threads; "
                "give 1 to 3 of each"
            )
        self._shared = self._expression("dynamic shared memory", shared)
        self._follows(*self._grid, *self._block, self._shared)
        self.arrays, self.groups, self.seed = dict(arrays or {}), groups, seed
        self.budget = checked(budget)
        self._counts: dict[Any, KernelCounts] = {}
        if len(self.code.kernel.parameters) != len(self.declared):
            raise KernelError(
                f"kernel {name!r} has {len(self.code.kernel.parameters)} parameters in its PTX, and "
                f"{len(self.declared)} arguments are declared; give one for each"
            )

    def __reduce__(self) -> tuple[object, ...]:
        how = (self.assumptions, self.arrays, self.groups, self.seed, self.free, self.budget, self.has_vectors)
        return (PtxProgram, (*self._given, *how), {"is_assembled": self.is_assembled})

    @property
    def _given(self) -> tuple[object, ...]:
        """Returns all that the device is given, as plain values in one form."""
        grid, block = (tuple(axis.text for axis in axes) for axes in (self._grid, self._block))
        return (self.text, self.entry, self.name, grid, block, self.declared, self._shared.text)

    @property
    def code(self) -> Code:
        from perfmodel.ptx.code import code_of  # slow to import, and only for PTX

        return code_of(self.text, self.entry)

    @cached_property
    def open_pointers(self) -> tuple[str, ...]:
        """The first words of pointers in structs that the code follows, and that nobody gave an array for."""
        from perfmodel.ptx.parameters import parameters_of  # slow to import, and only for PTX

        return pointers_without_arrays(self.declared, parameters_of(self.code))

    @cached_property
    def deciding(self) -> tuple[str, ...]:
        return tuple(name for name in self.arguments if name not in self.sizes)

    def counts_for(self, subgroup_size: int | None = None, at: Mapping[str, Any] | None = None) -> KernelCounts:
        known = dict(at or {})
        if missing := [name for name in self.sizes if name not in known]:
            if pointers := [name for name in self.open_pointers if name in missing]:
                raise CountingError(no_arrays(self.name, pointers))
            raise CountingError(
                f"kernel {self.name!r} is counted by emulation, at sizes that are numbers; give {', '.join(missing)}"
            )
        from perfmodel.ptx.counting.counter import counts_of  # slow to import

        values = {**dict.fromkeys(self.arguments, 1), **known}
        key = subgroup_size, tuple(sorted(values.items()))
        if key not in self._counts:
            options: dict[str, Any] = {
                "groups": self.groups,
                "width": subgroup_size or 32,
                "seed": self.seed,
                "extrapolate": True,
                "budget": self.budget * MOST_WORK,
            }
            with self._assembling():
                emulation = large_enough(
                    self.groups,
                    lambda parts: self.emulated(values, **options, samples=parts),
                    lambda found: found.work,
                    lambda found: found.nominal_s,
                    self.budget,
                    self._can_be_cut,
                )
                outstanding = self._outstanding(emulation)
                if outstanding:
                    emulation = self.emulated(values, **options, samples=emulation.samples, outstanding=outstanding)
            arrays = {each.name: (str(each.dtype), each.size) for each in self.launch(values).arrays()}
            self._counts[key] = counts_of(
                emulation,
                arrays | self._variables,
                frozenset(self.arrays),
                subgroup_size,
                has_vectors=self.has_vectors,
                has_scratch=self._held is None or self._held.stack_bytes > 0,
                registers=None if self._held is None else self._held.registers,
                code=None if self._machine_code is None else self._machine_code.instructions,
            )
        return self._counts[key]

    @cached_property
    def _variables(self) -> dict[str, tuple[str, int]]:
        """The type and number of elements of each variable of the program in global memory."""
        found = (each for each in self.code.kernel.variables.values() if each.space == "global" and each.n_bytes)
        return {each.name: (each.type.dtype, each.n_bytes // each.type.bytes) for each in found}

    @cached_property
    def _held(self) -> Held | None:
        """The registers and the stack that the assembler gives a thread; None where it is not there or not asked."""
        from perfmodel.sass.toolchain import Held, held  # slow to import, and only for PTX

        if (code := self._machine_code) is not None:
            return Held(code.registers, code.stack_bytes)
        return held(self.text, self.entry) if self._is_short else None

    @property
    def _machine_code(self) -> MachineCode | None:
        """The machine code that it is counted by; None where the assembler is not there, or not asked."""
        from perfmodel.sass.machine_code import machine_code_here  # slow to import, and only for PTX

        return machine_code_here(self.text, self.entry) if self.is_assembled and self._is_short else None

    @contextmanager
    def _assembling(self) -> Iterator[None]:
        """Has the assembler, a process of its own, say what it makes of the text while the caller emulates."""
        with ThreadPoolExecutor(1) as beside:
            beside.submit(lambda: self._held)
            yield

    @cached_property
    def _is_short(self) -> bool:
        return self.text.count(";") <= MOST_ASSEMBLED

    @cached_property
    def _can_be_cut(self) -> bool:
        from perfmodel.ptx.emulation.deciding import Deciding  # slow to import

        deciding = Deciding(self.code)
        return all(deciding.rough_plan(loop) is not None for loop in self.code.flow.loops)

    def _outstanding(self, emulation: Emulation) -> tuple[int, ...]:
        """Returns blocks that a sample has to have, as their loops are much longer than those of most."""
        if self.groups != "sample" or not self.arrays or len(emulation.sample.blocks) == emulation.launch.blocks:
            return ()
        from perfmodel.ptx.emulation.scouting import longest_blocks  # slow to import

        return longest_blocks(self.code, emulation.launch, self.budget)

    def knows_addresses(self, subgroup_size: int | None = None, at: Mapping[str, Any] | None = None) -> bool:
        """True: there are no counts for all sizes."""
        return True

    def emulated(
        self, values: Mapping[str, float], arrays: Mapping[str, Any] | None = None, **options: Any
    ) -> Emulation:
        """Emulates blocks at these scalar arguments, on the program's arrays and these; see
        `perfmodel.kernels.ptx_emulation.emulated`."""
        from perfmodel.kernels.ptx_emulation import emulated  # slow to import

        bound = {**dict.fromkeys(self.arguments, 1), **values}
        arrays = {**self.arrays, **(arrays or {})}
        return emulated(self.code, self.launch(bound), arrays, **options)

    def as_observed(self, arrays: Mapping[str, Any] | None, groups: Any = "sample", seed: int = 0) -> PtxProgram:
        """Returns the same program, counted on what these arrays hold, beside those that it has already."""
        twin = copy(self)
        twin.arrays, twin.groups, twin.seed, twin._counts = {**self.arrays, **(arrays or {})}, groups, seed, {}
        return twin

    def with_contents(self, contents: Mapping[str, Any]) -> PtxProgram:
        return self.as_observed(contents)

    def with_budget(self, budget: float) -> PtxProgram:
        twin = copy(self)
        twin.budget, twin._counts = checked(budget), {}
        return twin

    def as_compiled(self) -> PtxProgram:
        """Returns the same program, counted by what the assembler makes of it, too; the same object each time."""
        if self.is_assembled:
            return self
        original, found = self._assembled
        if original is not self:  # a copy has that of its original
            found = copy(self)
            found.is_assembled, found._counts = True, {}
            self._assembled = self, found
        return found

    def as_opencl(self) -> NoReturn:
        raise KernelError(f"kernel {self.name!r} is PTX, which has no form in OpenCL C")

    def check_launch(self, sizes: Mapping[str, Any]) -> None:
        self._check_most(self._block, MOST_THREADS, "threads in a block", sizes)
        for what, axes, most in (("blocks", self._grid, WIDEST_GRID), ("threads", self._block, WIDEST_BLOCK)):
            for axis, (extent, widest) in enumerate(zip(axes, most, strict=False)):
                self._check_most([extent], widest, f"{what} along axis {axis}", sizes)
        grid, block = ([axis.values(sizes) for axis in axes] for axes in (self._grid, self._block))
        rank = max(len(grid), len(block))
        grid, block = ([*axes, *[1] * (rank - len(axes))] for axes in (grid, block))
        check_shape(self.name, [g * b for g, b in zip(grid, block, strict=True)], block, self._shaping_of(sizes))
        self._check_most([self._shared], MOST_SHARED, "bytes of dynamic shared memory", sizes)
        shared = self._shared.values(sizes)
        if np.any(shared < 0):
            raise KernelError(
                f"kernel {self.name!r} has {int(np.min(shared))} bytes of dynamic shared memory; give 0 or more"
            )
        self._check_extents(sizes)

    def _check_most(self, extents: Sequence[SizeExpression], most: int, what: str, sizes: Mapping[str, Any]) -> None:
        """Refuses a launch with more of something, the product of its extents, than any of NVIDIA's GPUs takes."""
        found = math.prod(extent.values(sizes) for extent in extents)
        if np.any(found > most):
            shaping = {name: sizes[name] for extent in extents for name in extent.names}
            at = f" at {listed(shaping)}" if shaping and not np.ndim(found) else ""
            raise KernelError(
                f"kernel {self.name!r} has {int(np.max(found))} {what}{at}; NVIDIA's GPUs take up to {most}"
            )

    def shape(self, arguments: Mapping[str, float]) -> tuple[tuple[int, ...], tuple[int, ...], int]:
        """Returns blocks of the grid and threads of a block by axis, and the bytes of dynamic shared memory."""
        sizes = {name: int(arguments[name]) for name in self.sizes}
        grid, block = (tuple(axis.at(sizes) for axis in axes) for axes in (self._grid, self._block))
        rank = max(len(grid), len(block))
        grid, block = ((*axes, *(1,) * (rank - len(axes))) for axes in (grid, block))
        return grid, block, self._shared.at(sizes)

    @property
    def dynamic_shared(self) -> SizeExpression:
        """The bytes of shared memory that a launch provides to a block."""
        return self._shared

    def launch(self, arguments: Mapping[str, float]) -> Launch:
        grid, block, shared = self.shape(arguments)
        sizes = {name: int(arguments[name]) for name in self.sizes}
        global_size = tuple(g * b for g, b in zip(grid, block, strict=True))
        check_shape(self.name, global_size, block, self._shaping_of(sizes))
        bound = tuple(self._bound(argument, arguments, sizes) for argument in self.declared)
        return Launch(
            source=self.text,
            kernel_name=self.entry,
            global_size=global_size,
            local_size=block,
            arguments=bound,
            language=PTX,
            shared_bytes=shared,
        )

    def _bound(self, argument: Argument | Derived, values: Mapping[str, float], sizes: Mapping[str, int]) -> Argument:
        found = super()._bound(argument, values, sizes)
        if not isinstance(found, Described):
            return found
        axes = range(len(found.box))
        shape, strides = (
            tuple(self._extents[f"{found.name}_{what}_{axis}"].at(sizes) for axis in axes)
            for what in ("shape", "strides")
        )
        return replace(found, sizes=shape, strides=strides)

    def _expression(self, role: str, given: Extent) -> SizeExpression:
        """Returns an expression, in which a quotient may be written as in C."""
        return super()._expression(role, re.sub(r"(?<!/)/(?!/)", "//", given) if isinstance(given, str) else given)
