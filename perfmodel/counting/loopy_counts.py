"""Symbolic counts of a Loopy program (Stevens & Klöckner 2016, section 3, Algorithms 1 and 2)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import islpy as isl
import loopy as lp
from loopy.diagnostic import LoopyError, UnableToDetermineAccessRangeError
from loopy.kernel.data import AddressSpace, GroupInameTag, LocalInameTag
from loopy.kernel.instruction import Assignment, BarrierInstruction, CallInstruction, NoOpInstruction
from loopy.symbolic import (
    CoefficientCollector,
    LinearSubscript,
    condition_to_set,
    get_access_map,
    get_dependencies,
    simplify_using_aff,
)
from pymbolic import evaluate, flatten, var

from perfmodel.counting.counts import AccessCount, KernelCounts, OperationCount, Stride
from perfmodel.counting.expressions import OperationCounter, access_tags, index_of, subscripts, variable_of
from perfmodel.counting.quasipolynomial import QuasiPolynomial, from_isl
from perfmodel.counting.types import Typing
from perfmodel.errors import CountingError

SPACES = {AddressSpace.GLOBAL: "global", AddressSpace.LOCAL: "local"}


def count_loopy(translation_unit: Any) -> KernelCounts:
    """Counts of a Loopy translation unit's entry point.

    Raises:
        CountingError: for loops or predicates that depend on data, calls of other kernels, C instructions, and where
            the installed isl library cannot count.
    """
    if not hasattr(isl.Set, "card"):
        raise CountingError(
            "the installed islpy cannot count integer points; replace it by "
            "'pip install --force-reinstall --no-deps islpy-barvinok'"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            program = lp.preprocess_program(lp.infer_unknown_types(translation_unit))
            kernel = lp.get_one_linearized_kernel(program.default_entrypoint, program.callables_table)
        except Exception as error:  # Loopy raises anything, from its own errors to KeyError
            raise CountingError(
                f"Loopy cannot analyse kernel {translation_unit.default_entrypoint.name!r}: {one_line(error)}"
            ) from error
        try:
            return _LoopyCounter(program, kernel).counts()
        except (LoopyError, isl.Error) as error:
            raise CountingError(f"kernel {kernel.name!r} cannot be counted: {one_line(error)}") from error


def one_line(error: Exception) -> str:
    """An error of Loopy's, whose messages may be whole reports, as part of one sentence."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300].rstrip('.')}"


class _LoopyCounter:
    def __init__(self, program: Any, kernel: Any) -> None:
        self.kernel = kernel
        callees = [
            name for name, c in program.callables_table.items() if hasattr(c, "subkernel") and name != kernel.name
        ]
        if callees:
            raise CountingError(
                f"kernel {kernel.name!r} calls other kernels ({', '.join(map(str, callees))}), which are not "
                "counted; inline them with loopy.inline_callable_kernel"
            )
        self.typing = Typing(kernel, program.callables_table)
        self.group_counts, self.local_sizes = kernel.get_grid_size_upper_bounds(program.callables_table)
        self.sizes = frozenset(a.name for a in kernel.args if isinstance(a, lp.ValueArg) and a.dtype.is_integral())
        self.space = isl.Space.create_from_names(isl.DEFAULT_CONTEXT, set=[], params=sorted(self.sizes)).params()
        assumptions = isl.Set.from_basic_set(kernel.assumptions).project_out_except(self.sizes, [isl.dim_type.param])
        self.assumptions = assumptions.align_params(self.space)

    def counts(self) -> KernelCounts:
        operations: list[OperationCount] = []
        accesses: list[AccessCount] = []
        for instruction in self.kernel.instructions:
            if isinstance(instruction, NoOpInstruction | BarrierInstruction):
                continue
            if not isinstance(instruction, Assignment | CallInstruction):
                raise CountingError(
                    f"instruction {instruction.id!r} is {type(instruction).__name__}, whose work can't be seen; "
                    "write it as Loopy assignments"
                )
            domain = self.domain(instruction.within_inames, instruction.predicates, instruction.id)
            executions = self.executions(domain, instruction.within_inames)
            operations += self.operations(instruction, executions)
            accesses += self.accesses(instruction, domain, executions)
        barriers, launches = self.synchronization()
        return KernelCounts(
            tuple(operations),
            tuple(accesses),
            barriers,
            launches,
            from_isl(self.product(self.group_counts)),
            from_isl(self.product((*self.group_counts, *self.local_sizes))),
        )

    def operations(self, instruction: Any, executions: QuasiPolynomial) -> list[OperationCount]:
        target, *others = instruction.assignee_var_names()
        context = None if others else self.kernel.get_var_descriptor(target).dtype.numpy_dtype.name
        counter = OperationCounter(self.typing, context)
        counter(instruction.expression)
        return [
            OperationCount(kind, dtype, times, executions) for (kind, dtype), times in counter.counts.items() if times
        ]

    def accesses(self, instruction: Any, domain: Any, executions: QuasiPolynomial) -> list[AccessCount]:
        stores = list(instruction.assignees)
        loads = subscripts(instruction.expression)
        loads += [load for store in stores for index in index_of(store) for load in subscripts(index)]
        found = [self.access(e, "load", instruction, domain, executions) for e in loads]
        found += [self.access(e, "store", instruction, domain, executions) for e in stores]
        return [access for access in found if access is not None]

    def access(
        self, expression: Any, direction: str, instruction: Any, domain: Any, executions: QuasiPolynomial
    ) -> AccessCount | None:
        """The access, or None where it touches no memory (registers, sizes, loop variables)."""
        name = variable_of(expression).name
        array = self.kernel.arg_dict.get(name) or self.kernel.temporary_variables.get(name)
        space = SPACES.get(getattr(array, "address_space", None))
        if array is None or space is None or isinstance(array, lp.ValueArg):
            return None
        return AccessCount(
            space,
            name,
            access_tags(expression),
            array.dtype.numpy_dtype.name,
            direction,
            self.strides(array, expression, instruction.within_inames, LocalInameTag),
            self.strides(array, expression, instruction.within_inames, GroupInameTag),
            executions,
            self.footprint(space, index_of(expression), domain, instruction.within_inames),
            str(expression),
        )

    def strides(self, array: Any, access: Any, inames: frozenset[str], tag_type: Any) -> Mapping[int, Stride]:
        used = get_dependencies(index_of(access))
        # What a private variable holds may depend on any axis.
        unknown = any(
            self.kernel.temporary_variables[name].address_space == AddressSpace.PRIVATE
            for name in used & self.kernel.temporary_variables.keys()
        )
        found: dict[int, Stride] = {}
        for iname in sorted(inames):
            tags = self.kernel.iname_tags_of_type(iname, tag_type)
            if tags and (unknown or iname in used):
                (tag,) = tags
                found[tag.axis] = None if unknown else self.stride(array, access, iname)
        return found

    def stride(self, array: Any, access: Any, iname: str) -> Stride:
        """The coefficient of `iname` in the flattened index, in elements."""
        steps = (1,) if isinstance(access, LinearSubscript) else [getattr(t, "stride", None) for t in array.dim_tags]
        total: Any = 0
        for position, step in zip(index_of(access), steps, strict=True):
            try:
                coefficients = CoefficientCollector([iname])(simplify_using_aff(self.kernel, position))
            except (LoopyError, RuntimeError):  # not affine
                return None
            coefficient = coefficients.get(var(iname), 0)
            if step is None and coefficient:  # an axis of vector components
                return None
            total = total + coefficient * (step or 0)
        return SizeExpression(flatten(total)) if get_dependencies(total) <= self.sizes else None

    def footprint(
        self, space: str, index: tuple[Any, ...], domain: Any, inames: frozenset[str]
    ) -> QuasiPolynomial | None:
        """Distinct elements; each work-group has local elements of its own."""
        repeats: list[Any] = []
        if space == "local":
            index = (*map(var, sorted(self.group_inames(inames))), *index)
            repeats = self.unused(self.group_counts, inames, GroupInameTag)
        try:
            touched = get_access_map(domain, index).range()
        except (UnableToDetermineAccessRangeError, isl.Error):
            return None
        return from_isl(self.gist(self.cardinality(touched) * self.product(repeats)))

    def synchronization(self) -> tuple[QuasiPolynomial, QuasiPolynomial]:
        """Barriers met by all work-items together, and kernel launches, from the schedule's loops."""
        from loopy.schedule import Barrier, CallKernel, EnterLoop, LeaveLoop

        barriers, launches = self.zero(), self.zero()
        loops: list[str] = []
        for item in self.kernel.linearization:
            if isinstance(item, EnterLoop):
                loops.append(item.iname)
            elif isinstance(item, LeaveLoop):
                loops.pop()
            elif isinstance(item, Barrier) and item.synchronization_kind == "local":
                inames = frozenset(loops) | self.groups_around(frozenset(loops))
                meetings = self.cardinality(self.domain(inames, frozenset(), "barrier"))
                unused = self.unused(self.group_counts, inames, GroupInameTag)
                barriers += meetings * self.product((*unused, *self.local_sizes))
            elif isinstance(item, CallKernel):
                launches += self.cardinality(self.domain(frozenset(loops), frozenset(), "launch"))
        return from_isl(self.gist(barriers)), from_isl(self.gist(launches))

    def groups_around(self, loops: frozenset[str]) -> frozenset[str]:
        """Group axes that the loops' bounds may depend on; outside all loops every group meets a barrier."""
        if not loops:
            return frozenset()
        return self.group_inames(next(i.within_inames for i in self.kernel.instructions if loops <= i.within_inames))

    def group_inames(self, inames: frozenset[str]) -> frozenset[str]:
        return frozenset(i for i in inames if self.kernel.iname_tags_of_type(i, GroupInameTag))

    def domain(self, inames: frozenset[str], predicates: frozenset[Any], instruction: str) -> Any:
        """The iterations of `inames` in which all predicates hold, with the kernel's assumptions."""
        domain = self.kernel.get_inames_domain(inames).project_out_except(inames, [isl.dim_type.set])
        domain = isl.Set.from_basic_set(domain) if isinstance(domain, isl.BasicSet) else domain
        hidden = set(domain.get_var_names(isl.dim_type.param)) - self.sizes
        if hidden:
            raise CountingError(
                f"the loops around instruction {instruction!r} depend on {', '.join(sorted(hidden))}, known only when "
                "the kernel runs; make the bound a size of the kernel"
            )
        domain = domain.align_params(self.space)
        for predicate in predicates:
            condition = condition_to_set(domain.space, predicate)
            if condition is None:
                raise CountingError(
                    f"instruction {instruction!r} runs only if {predicate}, which depends on data; only affine "
                    "conditions on loop variables and sizes can be counted"
                )
            domain = domain & condition
        return domain.intersect_params(self.assumptions)

    def executions(self, domain: Any, inames: frozenset[str]) -> QuasiPolynomial:
        """Points of the domain, times the grid axes that it doesn't use: there every work-item repeats the work."""
        groups = self.unused(self.group_counts, inames, GroupInameTag)
        items = self.unused(self.local_sizes, inames, LocalInameTag)
        return from_isl(self.gist(self.cardinality(domain) * self.product((*groups, *items))))

    def unused(self, extents: Any, inames: frozenset[str], tag_type: Any) -> list[Any]:
        used = {tag.axis for iname in inames for tag in self.kernel.iname_tags_of_type(iname, tag_type)}
        return [extent for axis, extent in enumerate(extents) if axis not in used]

    def product(self, extents: Any) -> Any:
        result = self.one()
        for extent in extents:
            if isinstance(extent, int):
                result = result * extent
            else:
                result = result * isl.PwQPolynomial.from_pw_aff(extent.align_params(self.space))
        return self.gist(result)

    def cardinality(self, domain: Any) -> Any:
        return self.gist(domain.card())

    def gist(self, count: Any) -> Any:
        return count.gist_params(self.assumptions)

    def one(self) -> Any:
        return isl.Set.universe(self.space.add_dims(isl.dim_type.set, 0)).card()

    def zero(self) -> Any:
        return self.one() * 0


class SizeExpression:
    """A pymbolic expression in the sizes, evaluated over arrays of sizes."""

    def __init__(self, expression: Any) -> None:
        self.expression = expression

    def __call__(self, sizes: Mapping[str, Any]) -> Any:
        return evaluate(self.expression, dict(sizes))

    def __str__(self) -> str:
        return str(self.expression)
