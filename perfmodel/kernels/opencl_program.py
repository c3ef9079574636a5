"""OpenCL C source as a Program, whose launches follow from its sizes by expressions given beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel.basics.brief import brief
from perfmodel.basics.errors import CountingError, KernelError, UnknownAddressError
from perfmodel.counting.counts import KernelCounts
from perfmodel.counting.symbolic import number
from perfmodel.counting.usual_budget import USUAL, checked
from perfmodel.counting.waits import Wait
from perfmodel.device.launch_shape import check_shape
from perfmodel.kernels.arguments import C_TYPES, Argument, Array, Derived, Image, LocalArray, Sampler, Scalar, Struct
from perfmodel.kernels.declared_program import DeclaredProgram
from perfmodel.kernels.launch import Launch
from perfmodel.kernels.size_expression import SizeExpression
from perfmodel.kernels.touched import TouchedByGroups
from perfmodel.opencl_c import lowered_kernel

if TYPE_CHECKING:
    from perfmodel.counting.symbolic import Polynomial
    from perfmodel.opencl_c.lowered import LoweredKernel
    from perfmodel.opencl_c.static.accesses import GlobalArray
    from perfmodel.opencl_c.static.branch_statistics import Observed
    from perfmodel.opencl_c.static.grid import Grid
    from perfmodel.x86.source import Source


class OpenCLProgram(DeclaredProgram):
    """A kernel in OpenCL C with its launch and arguments; see `perfmodel.kernels.program.Program`.

    Its sizes are the scalar arguments of integer type. Expressions over them are whole numbers or strings such as
    ``"(n + 15) // 16 * 16"``, with Python's ``+ - * // %`` and brackets.

    >>> OpenCLProgram(source, "scale", "n", 64, [Array("a", "float32", "n", is_output=True), Scalar("n", "int32")])

    Args:
        name: of the kernel in the source.
        global_size, local_size: work-items of the launch and of a work-group, an expression for each axis (or one
            for a single axis); the former has to be a multiple of the latter.
        arguments: an `Array`, `Image`, `Sampler`, `Scalar`, `Struct` or `LocalArray` of `perfmodel.kernels.arguments`
            for each of the kernel's arguments, in its order.
        options: for the OpenCL compiler, such as ``-DWIDTH=8``.
        assumptions: what holds for the sizes, as expressions that are compared: ``"n % 16 == 0 and n >= m"``; other
            sizes are refused.
        statistics: what data decide, for the counts: the expected iterations of a loop, by its variable or as
            ``loop_LINE``, and the probability of a branch, as ``if_LINE``.
        observed: the same as `perfmodel.Kernel.as_observed` saw it, for what `statistics` leaves out.
        is_compiled: whether it is counted as an optimizing compiler leaves it, see `perfmodel.Kernel.as_compiled`.
        is_sampled: whether `observed` stands for what ids decide, too, as counting that takes too long.
        touched: what was seen of accesses whose addresses data decide on.
        budget: for counting, see `perfmodel.Kernel.with_budget`.

    Attributes:
        contents: what is known that arrays hold, by name; None where nobody said so.

    Raises:
        KernelError: for what cannot be a kernel.
    """

    KINDS = (Array, Image, Sampler, Scalar, Struct, LocalArray)

    def __init__(
        self,
        source: str,
        name: str,
        global_size: int | str | Sequence[int | str],
        local_size: int | str | Sequence[int | str],
        arguments: Sequence[Argument],
        options: Sequence[str] = (),
        assumptions: str = "",
        statistics: Mapping[str, float] | None = None,
        observed: Mapping[int, Observed] | None = None,
        is_compiled: bool = False,
        is_sampled: bool = False,
        budget: float = USUAL,
        touched: TouchedByGroups | None = None,
    ) -> None:
        if not isinstance(source, str) or not isinstance(name, str):
            raise KernelError(f"kernel {name!r} has no source; give the text of its OpenCL C and its name in there")
        if isinstance(options, str) or not all(isinstance(option, str) for option in options):
            raise KernelError(f"options {options!r} of kernel {name!r} are no strings; give a list of them")
        for option in options:
            first, *others = option.split() or [""]
            if not first or len(others) > (first in ("-D", "-U", "-I")):
                raise KernelError(
                    f"option {option!r} of kernel {name!r} has blanks, where drivers split it; write it without"
                )
        if not isinstance(statistics, Mapping | None):
            raise KernelError(f"statistics={statistics!r:.40} say nothing by name; give them as {{'loop_4': 10}}")
        super().__init__(name, arguments, assumptions)
        self.source, self.options = source, tuple(options)
        self._global_size = self._axes("global size", global_size)
        self._local_size = self._axes("local size", local_size)
        if len(self._global_size) != len(self._local_size) or not 1 <= len(self._local_size) <= 3:
            raise KernelError(
                f"kernel {name!r} has {len(self._global_size)} axes of work-items and {len(self._local_size)} of "
                "work-groups; give 1 to 3, the same for both"
            )
        self._follows(*self._global_size, *self._local_size)
        self.statistics, self.observed = dict(statistics or {}), dict(observed or {})
        self.is_compiled, self.is_sampled, self.budget = is_compiled, is_sampled, checked(budget)
        self.touched = touched
        self.contents: Mapping[str, Any] | None = None
        self.samples: dict[object, OpenCLProgram] = {}
        self.touched_at: dict[object, TouchedByGroups | None] = {}
        self._counts: dict[Any, KernelCounts | CountingError] = {}

    def __reduce__(self) -> tuple[object, ...]:
        how = (self.statistics, self.observed, self.is_compiled, self.is_sampled, self.budget, self.touched)
        return (OpenCLProgram, (*self._given, self.assumptions, *how), {"contents": self.contents})

    @property
    def _given(self) -> tuple[object, ...]:
        return (
            self.source,
            self.name,
            tuple(axis.text for axis in self._global_size),
            tuple(axis.text for axis in self._local_size),
            self.declared,
            self.options,
        )

    @cached_property
    def deciding(self) -> tuple[str, ...]:
        from perfmodel.opencl_c.static.deciding import deciding  # slow to import

        return deciding(self.lowered) if len(self.sizes) < len(self.arguments) else ()

    def counts_for(self, subgroup_size: int | None = None, at: Mapping[str, Any] | None = None) -> KernelCounts:
        counted = self._kept(subgroup_size, at)
        if isinstance(counted, CountingError):
            raise counted
        return counted

    def knows_addresses(self, subgroup_size: int | None = None, at: Mapping[str, Any] | None = None) -> bool:
        counted = self._kept(subgroup_size, at, ends_early=self.touched is None)
        if isinstance(counted, CountingError):
            return not isinstance(counted, UnknownAddressError)
        return not counted.unknown_addresses

    def _kept(
        self, subgroup_size: int | None, at: Mapping[str, Any] | None, ends_early: bool = False
    ) -> KernelCounts | CountingError:
        """Returns counts, or why there are none; those that `ends_early` ended are made when somebody asks for them."""
        at = at or None  # without sizes, there is nothing to be more general about
        key = (subgroup_size, None if at is None else tuple(at.items()))
        if key not in self._counts or (not ends_early and isinstance(self._counts[key], UnknownAddressError)):
            from perfmodel.counting.cache import cached_counts  # slow to import

            observed = [(n, str(f)) for n, f in sorted(self.observed.items())]
            parts = [self.content, self.assumptions, key[1], observed, self.is_compiled, self.is_sampled, ends_early]
            count = partial(self._counted, subgroup_size, at, ends_early)
            try:
                found = cached_counts(lambda: parts, self.statistics, subgroup_size, count, self.budget)
                self._counts[key] = found if self.touched is None else self.touched.counts(found)
            except CountingError as error:
                self._counts[key] = error
        return self._counts[key]

    def _counted(
        self, subgroup_size: int | None, at: Mapping[str, Any] | None = None, ends_early: bool = False
    ) -> KernelCounts:
        from perfmodel.opencl_c.optimization import optimized  # slow to import
        from perfmodel.opencl_c.static.counter import count_opencl

        lowered = optimized(self.lowered) if self.is_compiled else self.lowered
        numbers, grid, arrays = self._launched(at)
        counts = count_opencl(
            lowered,
            grid,
            arrays,
            self.statistics,
            subgroup_size,
            numbers,
            self.observed,
            self.is_compiled,
            {name: value for name, value in (at or {}).items() if name not in self.sizes},
            self.is_sampled,
            self._allowed,
            ends_early,
        )
        local = [extent.polynomial().replaced(numbers) for extent in self.local_arguments]
        return replace(counts, local_bytes=sum(local, number(lowered.local_bytes)).quasipolynomial())

    def executed_source(self, lanes: int, at: Mapping[str, Any]) -> Source:
        """Returns where the source's statements stand, and how often a work-group executes them, on average.

        Args:
            lanes: work-items of a vector.
            at: a value for each of `arguments`.

        Raises:
            CountingError: for what cannot be counted.
        """
        from perfmodel.opencl_c.static.executed_source import executed_source  # slow to import

        numbers, grid, arrays = self._launched(at)
        return executed_source(
            self.lowered,
            grid,
            arrays,
            self.statistics,
            lanes,
            numbers,
            self.observed,
            {name: value for name, value in at.items() if name not in self.sizes},
            self.is_sampled,
            self._allowed,
        )

    @property
    def _allowed(self) -> float:
        """The budget; of a sample no less than the usual one, as there is nothing less to fall back on."""
        return max(self.budget, USUAL) if self.is_sampled else self.budget

    def _launched(self, at: Mapping[str, Any] | None) -> tuple[dict[str, Polynomial], Grid, dict[str, GlobalArray]]:
        """Returns the sizes that are numbers, and the grid and arrays of a launch with these."""
        from perfmodel.opencl_c.static.accesses import GlobalArray  # slow to import
        from perfmodel.opencl_c.static.grid import Grid

        numbers = {name: number(value) for name, value in (at or {}).items() if name in self.sizes}
        global_size, local_size = (
            [axis.polynomial().replaced(numbers) for axis in axes] for axes in (self._global_size, self._local_size)
        )
        items = [axis.constant for axis in local_size]
        if None in items:
            raise CountingError(
                f"kernel {self.name!r} has work-groups of a size that depends on {', '.join(self.sizes)}; to count it, "
                "give the local size as numbers"
            )
        arrays = {
            a.name: GlobalArray(
                str(a.dtype),
                self._item(a),
                self._extents[a.name].polynomial().replaced(numbers),
                a.pixel_bytes if isinstance(a, Image) else None,
            )
            for a in self.declared
            if isinstance(a, Array)
        }
        conditions = [text for condition in self._conditions if (text := condition.isl(numbers)) is not None]
        sizes = [name for name in self.sizes if name not in numbers]
        grid = Grid(self.name, sizes, global_size, [size for size in items if size is not None], conditions)
        self._check_signature()
        return numbers, grid, arrays

    @cached_property
    def waits(self) -> Mapping[str, Wait]:
        """Returns how loads of each array are waited for, see `perfmodel.opencl_c.static.waits.of_arrays`."""
        from perfmodel.opencl_c.optimization import optimized  # slow to import
        from perfmodel.opencl_c.static.waits import of_arrays

        return of_arrays(optimized(self.lowered))

    def _item(self, array: Array) -> int:
        """Returns how many bytes lie between elements, as the lowered kernel has them: pixels as what they are read
        as."""
        if not isinstance(array, Image):
            return int(np.dtype(array.dtype).itemsize)
        pixels = [access.bytes for access in self.lowered.accesses if access.variable == array.name]
        return max(max(pixels, default=0) // array.channels, 1)

    @property
    def local_arguments(self) -> tuple[SizeExpression, ...]:
        """The bytes of the local memory that the launch provides to a work-group, by argument."""
        return tuple(self._extents[a.name] for a in self.declared if isinstance(a, LocalArray))

    @cached_property
    def lowered(self) -> LoweredKernel:
        """Reads and lowers the source: what is counted and emulated.

        Raises:
            SourceError: for what is no OpenCL C, or not supported, with line and column.
        """
        return lowered_kernel(self.source, self.name, self.options)

    def _check_signature(self) -> None:
        """Refuses arguments that are not those that the source declares."""
        names = [parameter.name for parameter in self.lowered.parameters]
        given = [argument.name for argument in self.declared]
        if names != given:
            raise KernelError(
                f"kernel {self.name!r} has the arguments {', '.join(names) or 'none'} in its source, but "
                f"{', '.join(given) or 'none'} beside it; name them as in the source, in its order"
            )

    def as_opencl(self) -> OpenCLProgram:
        return self

    def as_observed(
        self, observed: Mapping[int, Observed], is_sampled: bool = False, touched: TouchedByGroups | None = None
    ) -> OpenCLProgram:
        """Returns the same program with other statistics of its branches; of what ids decide, too, if it is sampled."""
        twin = self._twin()
        twin.observed, twin.is_sampled = dict(observed), is_sampled
        twin.touched = touched or self.touched
        return twin

    def with_contents(self, contents: Mapping[str, Any]) -> OpenCLProgram:
        twin = self._twin()
        twin.contents = {**(self.contents or {}), **contents}
        return twin

    def as_compiled(self) -> OpenCLProgram:
        """Returns the same program, counted as an optimizing compiler leaves it."""
        twin = self._twin()
        twin.is_compiled = True
        return twin

    def with_budget(self, budget: float) -> OpenCLProgram:
        twin = self._twin()
        twin.budget = checked(budget)
        return twin

    def with_source(self, source: str) -> OpenCLProgram:
        """Returns a program of another text, launched in the same way."""
        _, name, global_size, local_size, declared, options = self._given
        return self._made(source, name, global_size, local_size, declared, options, self.assumptions)

    def written_apart(self) -> OpenCLProgram:
        """Returns the same program without macros and with each statement on a line of its own, as lines and columns do
        not tell apart what a macro stands for."""
        from perfmodel.opencl_c.reading.written_apart import written_apart  # slow to import

        apart = self.with_source(written_apart(self.source, self.options))
        return apart.as_observed(self.observed, self.is_sampled, self.touched)

    def with_options(self, options: Sequence[str]) -> OpenCLProgram:
        """Returns the same text built with other options."""
        source, name, global_size, local_size, declared, _ = self._given
        return self._made(source, name, global_size, local_size, declared, tuple(options), self.assumptions)

    def with_global_size(self, global_size: Sequence[int | str]) -> OpenCLProgram:
        """Returns the same text launched with other work-items."""
        source, name, _, local_size, declared, options = self._given
        return self._made(source, name, tuple(global_size), local_size, declared, options, self.assumptions)

    def with_local_size(self, local_size: Sequence[int | str]) -> OpenCLProgram:
        """Returns the same text in other work-groups."""
        source, name, global_size, _, declared, options = self._given
        return self._made(source, name, global_size, tuple(local_size), declared, options, self.assumptions)

    def _made(self, *given: Any) -> OpenCLProgram:
        """Returns a program of what the device is given, which is counted as this one but for what was observed."""
        made = OpenCLProgram(*given)
        made.statistics, made.is_compiled, made.budget = self.statistics, self.is_compiled, self.budget
        return made

    def _twin(self) -> OpenCLProgram:
        """Returns the same program, to be counted in another way."""
        twin = copy(self)
        twin._counts, twin.samples, twin.touched_at = {}, {}, {}
        return twin

    def check_launch(self, sizes: Mapping[str, Any]) -> None:
        global_size, local_size = (
            [axis.values(sizes) for axis in axes] for axes in (self._global_size, self._local_size)
        )
        check_shape(self.name, global_size, local_size, self._shaping_of(sizes))
        self._check_extents(sizes)

    def launch(self, arguments: Mapping[str, float]) -> Launch:
        """Returns the launch at these scalar arguments (a value for each of `arguments`)."""
        sizes = {name: int(arguments[name]) for name in self.sizes}
        global_size = tuple(axis.at(sizes) for axis in self._global_size)
        local_size = tuple(axis.at(sizes) for axis in self._local_size)
        check_shape(self.name, global_size, local_size, self._shaping_of(sizes))
        bound = tuple(self._bound(argument, arguments, sizes) for argument in self.declared)
        return Launch(
            source=self.source,
            kernel_name=self.name,
            global_size=global_size,
            local_size=local_size,
            arguments=bound,
            options=self.options,
        )

    def _dtype(self, declared: Array | Scalar | Derived) -> str:
        try:
            dtype = "" if declared.dtype is None else super()._dtype(declared)
        except TypeError:
            dtype = ""
        if dtype not in C_TYPES:
            raise KernelError(
                f"argument {declared.name!r} of kernel {self.name!r} has dtype {declared.dtype!r}; give one of "
                f"{', '.join(C_TYPES)}"
            )
        return dtype

    def __repr__(self) -> str:
        return brief(
            self, self.name, f"sizes {', '.join(self.sizes) or 'none'}", "as compiled" if self.is_compiled else ""
        )
