"""Symbolic counts of a Loopy program (Stevens & Klöckner 2016, section 3, Algorithms 1 and 2)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import reduce
from typing import Any

import islpy as isl
import loopy as lp
from loopy.diagnostic import LoopyError
from loopy.kernel.data import AddressSpace, GroupInameTag, LocalInameTag
from loopy.kernel.instruction import Assignment, BarrierInstruction, CallInstruction, NoOpInstruction
from loopy.symbolic import (
    CoefficientCollector,
    condition_to_set,
    get_access_map,
    get_dependencies,
    simplify_using_aff,
)
from loopy.type_inference import TypeReader
from pymbolic import evaluate, flatten, var

from perfmodel.counting.counts import AccessCount, KernelCounts, OperationCount, Stride
from perfmodel.counting.expressions import OperationCounter, access_tags, subscripts, variable_of
from perfmodel.counting.quasipolynomial import QuasiPolynomial, from_isl
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
            return _LoopyCounter(translation_unit).counts()
        except (LoopyError, isl.Error) as error:
            raise CountingError(f"Loopy cannot analyse this kernel: {error}") from error


class _LoopyCounter:
    def __init__(self, translation_unit: Any) -> None:
        program = lp.preprocess_program(lp.infer_unknown_types(translation_unit))
        self.kernel = lp.get_one_linearized_kernel(program.default_entrypoint, program.callables_table)
        callees = [name for name, c in program.callables_table.items() if hasattr(c, "subkernel")]
        if len(callees) > 1:
            raise CountingError(
                f"kernel {self.kernel.name!r} calls other kernels ({', '.join(map(str, callees))}), which are not "
                "counted; inline them with loopy.inline_callable_kernel"
            )
        self.type_reader = TypeReader(self.kernel, program.callables_table)
        self.group_counts, self.local_sizes = self.kernel.get_grid_size_upper_bounds(program.callables_table)
        spaces = [domain.space.params() for domain in self.kernel.domains]
        self.space = reduce(
            lambda space, other: space.align_params(other), spaces, self.kernel.assumptions.space.params()
        )

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
        counter = OperationCounter(self.dtype_of)
        counter(instruction.expression)
        return [
            OperationCount(kind, dtype, times, executions) for (kind, dtype), times in counter.counts.items() if times
        ]

    def accesses(self, instruction: Any, domain: Any, executions: QuasiPolynomial) -> list[AccessCount]:
        stores = list(instruction.assignees)
        loads = subscripts(instruction.expression)
        for part in (*(i for s in stores for i in getattr(s, "index_tuple", ())), *instruction.predicates):
            loads += subscripts(part)
        found = [self.access(e, "load", instruction, domain, executions) for e in loads]
        found += [self.access(e, "store", instruction, domain, executions) for e in stores]
        return [access for access in found if access is not None]

    def access(
        self, expression: Any, direction: str, instruction: Any, domain: Any, executions: QuasiPolynomial
    ) -> AccessCount | None:
        """The access, or None where it touches no memory (registers, sizes, loop variables)."""
        name = variable_of(expression).name
        array = self.kernel.arg_dict.get(name) or self.kernel.temporary_variables.get(name)
        index = getattr(expression, "index_tuple", ())
        space = SPACES.get(getattr(array, "address_space", None))
        if array is None or space is None or isinstance(array, lp.ValueArg):
            return None
        return AccessCount(
            space,
            name,
            access_tags(expression),
            array.dtype.numpy_dtype.name,
            direction,
            self.strides(array, index, instruction.within_inames, LocalInameTag),
            self.strides(array, index, instruction.within_inames, GroupInameTag),
            executions,
            self.footprint(domain, index),
            str(expression),
        )

    def strides(self, array: Any, index: Any, inames: frozenset[str], tag_type: Any) -> Mapping[int, Stride]:
        found: dict[int, Stride] = {}
        for iname in sorted(inames):
            tags = self.kernel.iname_tags_of_type(iname, tag_type)
            if tags and iname in get_dependencies(index):
                (tag,) = tags
                found[tag.axis] = self.stride(array, index, iname)
        return found

    def stride(self, array: Any, index: Any, iname: str) -> Stride:
        """The coefficient of `iname` in the flattened index, in elements."""
        total: Any = 0
        for position, tag in zip(index, array.dim_tags or (), strict=False):
            try:
                coefficients = CoefficientCollector([iname])(simplify_using_aff(self.kernel, position))
            except LoopyError:
                return None
            total = total + coefficients.get(var(iname), 0) * tag.stride
        if not get_dependencies(total) <= self.kernel.outer_params():
            return None
        return SizeExpression(flatten(total))

    def footprint(self, domain: Any, index: Any) -> QuasiPolynomial | None:
        if not index:
            return from_isl(self.one())
        try:
            touched = get_access_map(domain, tuple(index), self.kernel.assumptions).range()
        except (LoopyError, isl.Error, TypeError):
            return None
        return from_isl(self.cardinality(touched))

    def synchronization(self) -> tuple[QuasiPolynomial, QuasiPolynomial]:
        """Barriers met by all work-items together, and kernel launches, from the schedule's loops."""
        from loopy.schedule import Barrier, CallKernel, EnterLoop, LeaveLoop

        barriers, launches = self.zero(), self.zero()
        loops: list[str] = []
        for position, item in enumerate(self.kernel.linearization):
            if isinstance(item, EnterLoop):
                loops.append(item.iname)
            elif isinstance(item, LeaveLoop):
                loops.pop()
            elif isinstance(item, Barrier) and item.synchronization_kind == "local":
                inames = frozenset(loops) | self.group_inames_after(position)
                groups = self.cardinality(self.domain(inames, frozenset(), "barrier"))
                unused = self.unused(self.group_counts, inames, GroupInameTag)
                barriers += groups * self.product((*unused, *self.local_sizes))
            elif isinstance(item, CallKernel):
                launches += self.cardinality(self.domain(frozenset(loops), frozenset(), "launch"))
        return from_isl(self.gist(barriers)), from_isl(self.gist(launches))

    def group_inames_after(self, position: int) -> frozenset[str]:
        """Group axes of the instruction that a barrier stands before: its loops may depend on them."""
        from loopy.schedule import RunInstruction

        instruction = next(i for i in self.kernel.linearization[position:] if isinstance(i, RunInstruction))
        inames = self.kernel.id_to_insn[instruction.insn_id].within_inames
        return frozenset(i for i in inames if self.kernel.iname_tags_of_type(i, GroupInameTag))

    def domain(self, inames: frozenset[str], predicates: frozenset[Any], instruction: str) -> Any:
        """The iterations of `inames` in which all predicates hold, with the kernel's assumptions."""
        domain = self.kernel.get_inames_domain(inames).project_out_except(inames, [isl.dim_type.set])
        domain = isl.Set.from_basic_set(domain) if isinstance(domain, isl.BasicSet) else domain
        hidden = set(domain.get_var_names(isl.dim_type.param)) - self.kernel.outer_params()
        if hidden:
            raise CountingError(
                f"the loops around instruction {instruction!r} depend on {', '.join(sorted(hidden))}, known only when "
                "the kernel runs; make the bound a size of the kernel"
            )
        for predicate in predicates:
            condition = condition_to_set(domain.space, predicate)
            if condition is None:
                raise CountingError(
                    f"instruction {instruction!r} runs only if {predicate}, which depends on data; only affine "
                    "conditions on loop variables and sizes can be counted"
                )
            domain = domain & condition
        return domain.intersect_params(self.assumptions(domain))

    def executions(self, domain: Any, inames: frozenset[str]) -> QuasiPolynomial:
        return from_isl(self.gist(self.raw_executions(domain, inames)))

    def raw_executions(self, domain: Any, inames: frozenset[str]) -> Any:
        """Points of the domain, times the grid axes that it doesn't use: there every work-item repeats the work."""
        return self.cardinality(domain) * self.product(
            (
                *self.unused(self.group_counts, inames, GroupInameTag),
                *self.unused(self.local_sizes, inames, LocalInameTag),
            )
        )

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
        return self.gist(domain.align_params(self.space).card())

    def gist(self, count: Any) -> Any:
        return count.gist_params(self.kernel.assumptions.align_params(count.space.params()))

    def assumptions(self, domain: Any) -> Any:
        return isl.Set.from_basic_set(self.kernel.assumptions).align_params(domain.space.params()).params()

    def one(self) -> Any:
        return isl.Set.universe(self.space.add_dims(isl.dim_type.set, 0)).card()

    def zero(self) -> Any:
        return self.one() * 0

    def dtype_of(self, expression: Any) -> str:
        dtype = self.type_reader(expression)
        return str(getattr(dtype, "numpy_dtype", dtype))


class SizeExpression:
    """A pymbolic expression in the sizes, evaluated over arrays of sizes."""

    def __init__(self, expression: Any) -> None:
        self.expression = expression

    def __call__(self, sizes: Mapping[str, Any]) -> Any:
        return evaluate(self.expression, dict(sizes))

    def __str__(self) -> str:
        return str(self.expression)
