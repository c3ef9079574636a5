"""A Loopy translation unit as a Program: its generated OpenCL C, its launch shape, its symbolic counts."""

from __future__ import annotations

import hashlib
import sqlite3
import warnings
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel.basics.brief import brief
from perfmodel.basics.errors import CountingError, KernelError
from perfmodel.counting.counts import CountingWarning, KernelCounts
from perfmodel.counting.usual_budget import USUAL, checked
from perfmodel.device.launch_shape import check_extent, check_shape
from perfmodel.kernels.arguments import Argument, Array, Scalar, WholeNumbers, check_range, whole_numbers
from perfmodel.kernels.launch import Launch

# Functions import Loopy, and what needs it: it is slow to import, and most programs are none of its.

if TYPE_CHECKING:
    from perfmodel.kernels.opencl_program import OpenCLProgram


class LoopyProgram:
    """A Loopy translation unit that can be counted and launched; see `perfmodel.kernels.program.Program`.

    Args:
        translation_unit: one entry point, all argument types known.
        statistics: see `perfmodel.Kernel`.
        budget: for counting, see `perfmodel.Kernel.with_budget`.

    Raises:
        KernelError: for anything else.
    """

    def __init__(
        self, translation_unit: Any, statistics: Mapping[str, float] | None = None, budget: float = USUAL
    ) -> None:
        import loopy as lp

        from perfmodel.counting.loopy.target import OpenCLTarget

        if not isinstance(translation_unit, lp.TranslationUnit):
            raise KernelError(
                f"{type(translation_unit).__name__} is not a kernel; give a Loopy program, as loopy.make_kernel returns"
            )
        if len(translation_unit.entrypoints) != 1:
            raise KernelError(
                f"the Loopy program has {len(translation_unit.entrypoints)} entry points; select one with "
                "translation_unit.with_entrypoints(name)"
            )
        if not isinstance(translation_unit.target, OpenCLTarget):
            translation_unit = translation_unit.copy(target=OpenCLTarget())
        self.translation_unit = translation_unit
        self.statistics, self.budget = dict(statistics or {}), checked(budget)
        self._counts: dict[int | None, KernelCounts | CountingError] = {}
        kernel = translation_unit.default_entrypoint
        self.name: str = kernel.name
        scalars = [arg for arg in kernel.args if isinstance(arg, lp.ValueArg)]
        self.arguments: tuple[str, ...] = tuple(arg.name for arg in scalars)
        self.sizes: tuple[str, ...] = tuple(
            a.name for a in scalars if a.dtype is None or a.dtype.numpy_dtype.kind in "iu"
        )

    @property
    def deciding(self) -> tuple[str, ...]:
        """None: predicates of other arguments than sizes are data's."""
        return ()

    def __reduce__(self) -> tuple[object, ...]:
        return (LoopyProgram, (self.translation_unit, self.statistics, self.budget))

    def with_budget(self, budget: float) -> LoopyProgram:
        return LoopyProgram(self.translation_unit, self.statistics, budget)

    def with_contents(self, contents: Mapping[str, Any]) -> OpenCLProgram:
        return self.as_opencl().with_contents(contents)

    def counts_for(self, subgroup_size: int | None = None, at: Mapping[str, Any] | None = None) -> KernelCounts:
        if subgroup_size not in self._counts:
            try:
                self._counts[subgroup_size] = self._counted(subgroup_size)
            except CountingError as error:
                self._counts[subgroup_size] = error
        found = self._counts[subgroup_size]
        if isinstance(found, CountingError):
            raise found
        return found

    def knows_addresses(self, subgroup_size: int | None = None, at: Mapping[str, Any] | None = None) -> bool:
        """True: it is counted for all sizes, or not at all."""
        return True

    def _counted(self, subgroup_size: int | None) -> KernelCounts:
        from perfmodel.counting.cache import cached_counts

        def count() -> KernelCounts:
            from perfmodel.counting.loopy.counts import count_loopy  # as Loopy is

            return count_loopy(self.translation_unit, self.statistics, subgroup_size, self.budget)

        counts = cached_counts(self.known_by, self.statistics, subgroup_size, count, self.budget)
        if not counts.exact:
            warnings.warn(
                f"counts of kernel {self.name!r} are bounds from above: the installed islpy cannot count; for "
                "exact ones, 'pip install --force-reinstall --no-deps islpy-barvinok==2025.2.5.post1'",
                CountingWarning,
                stacklevel=4,
            )
        return counts

    def known_by(self) -> str:
        """Returns the text by which counts of the program are kept; TypeError where Loopy can't know it again."""
        from perfmodel.counting.cache import loopy_key

        return loopy_key(self.translation_unit)

    @cached_property
    def content(self) -> str:
        source, name, arguments, grid = self._code
        text = "\n".join([source, name, repr([str(a) for a in arguments]), repr([str(g) for g in grid])])
        return hashlib.sha256(text.encode()).hexdigest()

    @cached_property
    def source(self) -> str:
        """The OpenCL C that Loopy generates."""
        return self._code[0]

    def check(self, sizes: Mapping[str, Any]) -> None:
        from perfmodel.counting.quasipolynomial import holds

        for name, value in sizes.items():
            if np.any(value < 0):
                raise KernelError(f"size {name}={int(np.min(value))} of kernel {self.name!r} is negative")
        check_range(self.name, sizes, self._integers)
        good = np.asarray(holds(self._assumptions, sizes))
        if not good.all():
            shape = np.broadcast_shapes(good.shape, *(np.shape(v) for v in sizes.values()))
            bad = int(np.argmin(np.broadcast_to(good, shape)))
            culprit = ", ".join(f"{n}={int(np.broadcast_to(v, shape).flat[bad])}" for n, v in sizes.items())
            raise KernelError(f"{culprit} breaks what kernel {self.name!r} assumes: {self._assumption_text}")

    @cached_property
    def _integers(self) -> dict[str, WholeNumbers]:
        """Returns which whole numbers each size's type holds, of those that have one."""
        arguments = self.translation_unit.default_entrypoint.arg_dict
        known = {name: arguments[name].dtype for name in self.sizes}
        return whole_numbers({name: dtype.numpy_dtype for name, dtype in known.items() if dtype is not None})

    def check_launch(self, sizes: Mapping[str, Any]) -> None:
        from perfmodel.counting.loopy.extents import evaluated

        groups, local = ([evaluated(extent, sizes) for extent in extents] for extents in self._grid)
        rank = max(len(groups), len(local), 1)
        groups, local = (axes + [1] * (rank - len(axes)) for axes in (groups, local))
        check_shape(self.name, [count * items for count, items in zip(groups, local, strict=True)], local, sizes)
        for extent, array in self._extents:
            check_extent(self.name, array, evaluated(extent, sizes), sizes)

    @cached_property
    def _extents(self) -> list[tuple[Any, str]]:
        """Returns the extents of arrays that follow from the sizes, different ones, each with the first array of it."""
        from perfmodel.counting.loopy.extents import depends_on

        arguments = self.translation_unit.default_entrypoint.args
        extents = [
            (extent, argument.name) for argument in arguments for extent in getattr(argument, "shape", None) or ()
        ]
        return list(
            {
                extent: (extent, name) for extent, name in reversed(extents) if depends_on(extent) <= set(self.sizes)
            }.values()
        )

    @cached_property
    def _grid(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Returns work-groups of the launch and work-items of one, along each axis, as expressions."""
        program = self.translation_unit
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                groups, local = program.default_entrypoint.get_grid_size_upper_bounds_as_exprs(program.callables_table)
            except Exception:  # where Loopy has still to choose axes; it raises anything
                groups, local = self._code[3]
        return tuple(groups), tuple(local)

    @cached_property
    def _assumptions(self) -> Any:
        import islpy as isl

        from perfmodel.counting.quasipolynomial import constraints

        assumptions = self.translation_unit.default_entrypoint.assumptions
        return constraints(isl.Set.from_basic_set(assumptions))

    @property
    def _assumption_text(self) -> str:
        text = str(self.translation_unit.default_entrypoint.assumptions)
        return text[text.index(":") + 1 : text.rindex("}")].strip() or "nothing"

    @cached_property
    def _code(self) -> tuple[str, str, tuple[Any, ...], tuple[Any, Any]]:
        """Returns source, kernel name, arguments in order, and (global, local) extents as expressions."""
        from loopy.schedule import CallKernel
        from loopy.schedule.tools import get_subkernel_arg_info

        from perfmodel.counting.loopy.counts import muted, one_line
        from perfmodel.counting.loopy.target import same_code

        with warnings.catch_warnings(), muted(), same_code():
            warnings.simplefilter("ignore")
            try:
                source, kernel, extents = _generated(self.translation_unit)
            except Exception as error:  # Loopy raises anything, from its own errors to KeyError
                raise KernelError(f"Loopy cannot generate code for kernel {self.name!r}: {one_line(error)}") from error
        calls = [item.kernel_name for item in kernel.linearization if isinstance(item, CallKernel)]
        if len(calls) != 1:
            raise KernelError(
                f"kernel {self.name!r} becomes {len(calls)} device kernels; split it at its global barriers, and "
                "measure each by itself"
            )
        info = get_subkernel_arg_info(kernel, calls[0])
        if info.passed_temporaries:
            raise KernelError(
                f"kernel {self.name!r} has temporaries in global memory ({', '.join(info.passed_temporaries)}); make "
                "them arguments"
            )
        arguments = tuple(kernel.arg_dict[name] for name in info.passed_arg_names)
        return source, calls[0], arguments, extents

    def launch(self, arguments: Mapping[str, float]) -> Launch:
        """Returns the launch at these scalar arguments (a value for each of `arguments`)."""
        import loopy as lp
        from pymbolic import evaluate

        source, name, declared, (groups, local) = self._code
        context = dict(arguments)
        local_size = tuple(int(evaluate(extent, context)) for extent in local) or (1,)
        group_counts = tuple(int(evaluate(extent, context)) for extent in groups) or (1,)
        rank = max(len(local_size), len(group_counts))
        local_size += (1,) * (rank - len(local_size))
        group_counts += (1,) * (rank - len(group_counts))
        bound: list[Argument] = []
        for argument in declared:
            dtype = argument.dtype.numpy_dtype
            if isinstance(argument, lp.ValueArg):
                # A scalar that only the generated code has is an array's offset; ours begin at their buffers' start.
                value = arguments.get(argument.name, 0)
                bound.append(Scalar(argument.name, dtype.name, value))
            else:
                size = self._elements(argument, context)
                bound.append(Array(argument.name, dtype.name, size, argument.is_output))
        return Launch(
            source=source,
            kernel_name=name,
            global_size=tuple(g * s for g, s in zip(group_counts, local_size, strict=True)),
            local_size=local_size,
            arguments=tuple(bound),
        )

    def as_opencl(self) -> OpenCLProgram:
        """Returns the generated OpenCL C as a program by itself, with the sizes of grid and arrays as expressions.

        Raises:
            KernelError: where these are more than sums, products and quotients.
        """
        return self._opencl

    @cached_property
    def _opencl(self) -> OpenCLProgram:
        import loopy as lp

        from perfmodel.kernels.arguments import Array, Scalar
        from perfmodel.kernels.opencl_program import OpenCLProgram

        source, name, declared, (groups, local) = self._code
        loops = self.translation_unit.default_entrypoint.all_inames()
        rank = max(len(groups), len(local), 1)
        local_size = [*map(str, local), *["1"] * (rank - len(local))]
        counts = [*map(str, groups), *["1"] * (rank - len(groups))]
        arguments: list[Argument] = []
        for argument in declared:
            dtype = argument.dtype.numpy_dtype.name
            if isinstance(argument, lp.ValueArg):
                arguments.append(Scalar(argument.name, dtype))
            else:
                arguments.append(Array(argument.name, dtype, self._elements_text(argument), argument.is_output))
        return OpenCLProgram(
            source,
            name,
            [f"({count}) * ({items})" for count, items in zip(counts, local_size, strict=True)],
            local_size,
            arguments,
            assumptions=" and ".join(map(str, self._assumptions[0])) if len(self._assumptions) == 1 else "",
            statistics={loop: iterations for loop, iterations in self.statistics.items() if loop in loops},
            budget=self.budget,
        )

    def _elements_text(self, array: Any) -> str:
        """Returns the number of elements that `_elements` gives, as an expression."""
        steps = self._steps(array)
        last = [f"(({extent}) - 1) * ({step})" for extent, step in zip(array.shape, steps, strict=True)]
        return " + ".join([*last, f"({array.offset or 0})", "1"])

    def _steps(self, array: Any) -> list[Any]:
        """Returns an array's strides in elements, by axis."""
        steps = [getattr(tag, "stride", None) for tag in array.dim_tags or (None,)]
        if array.shape is None or None in steps:
            raise KernelError(
                f"array {array.name!r} of kernel {self.name!r} has no shape of plain dimensions; give it shape=… "
                "without vector components"
            )
        return steps

    def _elements(self, array: Any, context: Mapping[str, float]) -> int:
        """Returns elements from the buffer's start to the array's last, with the gaps that its offset and strides
        leave."""
        from pymbolic import evaluate

        steps = self._steps(array)
        extents = [int(evaluate(extent, context)) for extent in array.shape]
        if 0 in extents:
            return 0
        last = sum((n - 1) * int(evaluate(step, context)) for n, step in zip(extents, steps, strict=True))
        last += self._offset(array, context)
        limit = np.iinfo(self.translation_unit.default_entrypoint.index_dtype.numpy_dtype).max
        if last >= limit:
            raise KernelError(
                f"array {array.name!r} of kernel {self.name!r} has {last + 1} elements, more than its "
                f"{limit.bit_length()}-bit index reaches; make the kernel with index_dtype=numpy.int64"
            )
        return last + 1

    def _offset(self, array: Any, context: Mapping[str, float]) -> int:
        """Returns an array's offset in its buffer: 0 where the generated code leaves it to the caller, see `launch`."""
        from loopy.symbolic import get_dependencies, parse
        from pymbolic import evaluate

        offset = parse(array.offset) if isinstance(array.offset, str) else array.offset or 0
        if not get_dependencies(offset) <= set(context):
            return 0
        value = int(evaluate(offset, context))
        if value < 0:
            raise KernelError(
                f"array {array.name!r} of kernel {self.name!r} has offset {value}, which is before its buffer; make it "
                "0 or more"
            )
        return value

    def __repr__(self) -> str:
        return brief(self, self.name, f"sizes {', '.join(self.sizes) or 'none'}")


def _generated(translation_unit: Any) -> tuple[str, Any, tuple[Any, Any]]:
    """Returns the source of a Loopy program, its kernel in the order in which it runs, and its extents.

    A cache of Loopy's that can't be read or written, on a full disk or where another process holds it, is no reason to
    be without code: all is generated again without it.
    """
    import loopy as lp

    def generated() -> tuple[str, Any, tuple[Any, Any]]:
        program = lp.preprocess_program(lp.infer_unknown_types(translation_unit))
        kernel = lp.get_one_linearized_kernel(program.default_entrypoint, program.callables_table)
        source = lp.generate_code_v2(program).device_code()
        return source, kernel, kernel.get_grid_size_upper_bounds_as_exprs(program.callables_table)

    try:
        return generated()
    except (sqlite3.Error, OSError):
        with lp.CacheMode(False):
            return generated()
