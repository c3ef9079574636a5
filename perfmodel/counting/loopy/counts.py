"""Symbolic counts of a Loopy program (Stevens & Klöckner 2016, section 3, Algorithms 1 and 2)."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any

import islpy as isl
import loopy as lp
from loopy.diagnostic import LoopyError
from loopy.kernel.data import IlpBaseTag, UnrollTag
from loopy.kernel.instruction import Assignment, BarrierInstruction, CallInstruction, NoOpInstruction
from loopy.schedule import Barrier, CallKernel, EnterLoop, LeaveLoop, RunInstruction
from loopy.symbolic import get_dependencies

from perfmodel.basics.errors import CountingError, nearest
from perfmodel.counting.budget import within_budget
from perfmodel.counting.counts import AccessCount, BranchCount, ChainCount, Executions, KernelCounts, OperationCount
from perfmodel.counting.domains import Region
from perfmodel.counting.loopy.accesses import Accesses
from perfmodel.counting.loopy.chains import operations_behind
from perfmodel.counting.loopy.domains import LoopyDomains
from perfmodel.counting.loopy.expressions import OperationCounter, index_of
from perfmodel.counting.loopy.target import same_code
from perfmodel.counting.loopy.types import Typing
from perfmodel.counting.quasipolynomial import QuasiPolynomial
from perfmodel.counting.symbolic import number
from perfmodel.counting.usual_budget import USUAL


def count_loopy(
    translation_unit: Any,
    statistics: Mapping[str, float] | None = None,
    subgroup_size: int | None = None,
    budget: float = USUAL,
) -> KernelCounts:
    """Returns the counts of a Loopy translation unit's entry point.

    Args:
        statistics: what data decide: the expected trip count of a loop, by its loop variable, and the probability of a
            predicate, by its text or by its instruction.
        subgroup_size: work-items of a sub-group; None counts no sub-groups.
        budget: see `perfmodel.counting.budget`.

    Raises:
        CountingError: for loops or predicates that depend on data and have no statistics, calls of other kernels, and
            C instructions; for what takes more than the budget.

    Returns:
        Exact counts; bounds from above, and marked so, where the installed isl library cannot count integer points.
    """
    # Loopy keeps the order of instructions that it finds here, and writes code in that order later.
    with warnings.catch_warnings(), muted(), same_code():
        warnings.simplefilter("ignore", lp.LoopyWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            program = lp.preprocess_program(lp.infer_unknown_types(translation_unit))
            kernel = program.default_entrypoint
            order = lp.get_one_linearized_kernel(kernel, program.callables_table).linearization
        except Exception as error:  # Loopy raises anything, from its own errors to KeyError
            raise CountingError(
                f"Loopy cannot analyse kernel {translation_unit.default_entrypoint.name!r}: {one_line(error)}"
            ) from error
        try:
            counter = _LoopyCounter(program, order, dict(statistics or {}), subgroup_size)
            with within_budget(kernel.name, budget):
                return counter.counts()
        except (LoopyError, isl.Error) as error:
            raise CountingError(f"kernel {kernel.name!r} cannot be counted: {one_line(error)}") from error


@contextmanager
def muted() -> Iterator[None]:
    """Hides the kernel that Loopy prints when it fails, beside raising an error."""
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        yield


def one_line(error: Exception) -> str:
    """Returns an error of Loopy's, whose messages may be whole reports, as part of one sentence."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300].rstrip('.')}"


class _LoopyCounter:
    def __init__(self, program: Any, order: Any, statistics: Mapping[str, float], subgroup_size: int | None) -> None:
        # Not the kernel that knows its order: this one remembers what Loopy had to find out of it for that.
        self.kernel = kernel = program.default_entrypoint
        self.order = order
        callees = [
            name for name, c in program.callables_table.items() if hasattr(c, "subkernel") and name != kernel.name
        ]
        if callees:
            raise CountingError(
                f"kernel {kernel.name!r} calls other kernels ({', '.join(map(str, callees))}), which are not "
                "counted; inline them with loopy.inline_callable_kernel"
            )
        _check_statistics(kernel, statistics)
        self.typing = Typing(kernel, program.callables_table)
        self.domains = LoopyDomains(kernel, program.callables_table, statistics, subgroup_size)
        self.loops = dict(_loops_around(order))
        # Their iterations stand one after the other in the source.
        self.unrolled = {i for i in kernel.all_inames() if kernel.iname_tags_of_type(i, (UnrollTag, IlpBaseTag))}
        self.decided: set[tuple[str, frozenset[str]]] = set()

    def counts(self) -> KernelCounts:
        operations: list[OperationCount] = []
        accesses = Accesses(self.kernel, self.domains)
        chains: list[ChainCount] = []
        found: list[AccessCount] = []
        for instruction in self.kernel.instructions:
            if isinstance(instruction, NoOpInstruction | BarrierInstruction):
                continue
            if not isinstance(instruction, Assignment | CallInstruction):
                raise CountingError(
                    f"instruction {instruction.id!r} is {type(instruction).__name__}, whose work can't be seen; "
                    "write it as Loopy assignments"
                )
            found += self.deciding(instruction, accesses, operations)
            region = self.domains.region(instruction.within_inames, instruction.predicates, instruction.id)
            operations += self.operations(instruction, region)
            chains += self.chains(instruction)
            found += accesses.of(instruction, region, self.loops.get(instruction.id, ()))
        barriers, launches = self.synchronization()
        return KernelCounts(
            operations=tuple(operations),
            chains=tuple(chains),
            accesses=tuple(found),
            footprints=accesses.footprints(),
            branches=tuple(self.branches()),
            barriers=barriers,
            launches=launches,
            work_groups=self.domains.finished(self.domains.product(self.domains.group_counts)),
            work_items=self.domains.finished(
                self.domains.product((*self.domains.group_counts, *self.domains.local_sizes))
            ),
            local_size=tuple(self.domains.finished(self.domains.product([size])) for size in self.domains.local_sizes),
            subgroup_size=self.domains.subgroup_size,
            exact=self.domains.exact,
            grid=tuple(self.domains.finished(self.domains.product([count])) for count in self.domains.group_counts),
            local_bytes=self.local_bytes(),
        )

    def local_bytes(self) -> QuasiPolynomial | None:
        """Returns the bytes of the temporaries that lie in local memory; None where their shapes are no numbers."""
        local = [t for t in self.kernel.temporary_variables.values() if t.address_space == lp.AddressSpace.LOCAL]
        if not all(isinstance(extent, int) for each in local for extent in each.shape):
            return None
        return number(sum(math.prod(each.shape) * each.dtype.itemsize for each in local)).quasipolynomial()

    def deciding(self, instruction: Any, accesses: Accesses, operations: list[OperationCount]) -> list[AccessCount]:
        """Returns the loads of an instruction's predicates that depend on data; one around several instructions counts
        once."""
        inames, found = instruction.within_inames, []
        depending = [p for p in instruction.predicates if self.domains.depends_on_data(p, inames, instruction.id)]
        for predicate in sorted(depending, key=str):
            if (str(predicate), inames) not in self.decided:
                self.decided.add((str(predicate), inames))
                region = self.domains.region(inames, instruction.predicates - set(depending), instruction.id)
                found += accesses.of_predicate(predicate, region, self.loops.get(instruction.id, ()), instruction.id)
                operations += self.counted(predicate, None, region)
        return found

    def operations(self, instruction: Any, region: Region) -> list[OperationCount]:
        target, *others = instruction.assignee_var_names()
        context = None if others else self.kernel.get_var_descriptor(target).dtype.numpy_dtype.name
        return self.counted(instruction.expression, context, region)

    def counted(self, expression: Any, context: str | None, region: Region) -> list[OperationCount]:
        counter = OperationCounter(self.typing, context)
        counter(expression)
        counted = [(kind, dtype, times) for (kind, dtype), times in counter.counts.items() if times]
        if not counted:
            return []
        executions = self.domains.executions(region)
        return [OperationCount(kind, dtype, times, executions) for kind, dtype, times in counted]

    def chains(self, instruction: Any) -> list[ChainCount]:
        """Returns the operations that an instruction does, iteration by iteration, to its own result."""
        if len(instruction.assignees) != 1:
            return []
        (target,) = instruction.assignees
        loops = self.loops.get(instruction.id, ())
        apart = {name for index in index_of(target) for name in get_dependencies(index)} & set(loops)
        turning = [loop for loop in loops if loop not in apart | self.unrolled]
        if not turning or self.sets_anew(instruction, target, turning[-1]):
            return []
        context = self.kernel.get_var_descriptor(instruction.assignee_var_names()[0]).dtype.numpy_dtype.name
        operations = operations_behind(target, instruction.expression, self.typing, context)
        if not operations:
            return []
        # Predicates that those loops decide can't be told without them; the others hold as for the instruction.
        predicates = [p for p in instruction.predicates if not get_dependencies(p) & apart]
        region = self.domains.region(instruction.within_inames - apart, predicates, instruction.id)
        counted = tuple((kind, dtype, times) for (kind, dtype), times in sorted(operations.items()))
        return [ChainCount(counted, self.domains.executions(region), loops)]

    def sets_anew(self, instruction: Any, target: Any, loop: str) -> bool:
        """Returns whether each iteration of a loop gives a variable a value of its own before an instruction changes
        it, so that none goes on to the next."""
        (variable,) = instruction.assignee_var_names()
        before = self.kernel.recursive_insn_dep_map()[instruction.id]
        others = (self.kernel.id_to_insn[name] for name in before if loop in self.loops.get(name, ()))
        return any(
            target in other.assignees and not other.predicates and variable not in other.read_dependency_names()
            for other in others
            if isinstance(other, Assignment)
        )

    def branches(self) -> Iterator[BranchCount]:
        """Yields the predicates of instructions, all those of one together; what is around several instructions,
        once."""
        around: dict[tuple[str, frozenset[str]], Any] = {}
        for instruction in self.kernel.instructions:
            if instruction.predicates:
                text = " and ".join(sorted(map(str, instruction.predicates)))
                around.setdefault((text, instruction.within_inames), instruction)
        for (text, inames), instruction in around.items():
            met = self.domains.region(inames, (), instruction.id)
            taken = self.domains.region(inames, instruction.predicates, instruction.id)
            if any(self.domains.depends_on_data(p, inames, instruction.id) for p in instruction.predicates):
                times, taken_times = self.domains.executions(met), self.domains.executions(taken)
                yield BranchCount(
                    kind="if", text=text, met=times, taken=taken_times, divergence="by data", divergent=None
                )
            else:
                yield self.domains.branch("if", text, met, taken)

    def synchronization(self) -> tuple[Executions, QuasiPolynomial]:
        """Returns the local barriers and the kernel launches, as the schedule has them."""
        items, subgroups, groups, launches = (self.domains.zero() for _ in range(4))
        for item, loops in _scheduled(self.order):
            if isinstance(item, Barrier) and item.synchronization_kind == "local":
                by_item, by_subgroup, by_group = self.domains.meetings(frozenset(loops))
                items, groups = items + by_item, groups + by_group
                subgroups = None if subgroups is None or by_subgroup is None else subgroups + by_subgroup
            elif isinstance(item, CallKernel):
                launches += self.domains.cardinality(self.domains.region(frozenset(loops), (), "launch").points)
        finished = self.domains.finished
        by_subgroups = None if subgroups is None else finished(subgroups)
        by_item = finished(items)
        return Executions(by_item, by_subgroups, finished(groups), (by_item,)), finished(launches)


def _check_statistics(kernel: Any, statistics: Mapping[str, float]) -> None:
    """Refuses statistics of what the kernel doesn't have: a misspelt name would change nothing, silently."""
    known = {*kernel.all_inames(), *(i.id for i in kernel.instructions)}
    known |= {str(predicate) for i in kernel.instructions for predicate in i.predicates}
    for name in statistics:
        if name not in known:
            raise CountingError(
                f"kernel {kernel.name!r} has no loop variable, predicate or instruction {name!r} to have statistics of"
                f"{nearest(name, known)}"
            )


def _scheduled(schedule: Any) -> Iterator[tuple[Any, tuple[str, ...]]]:
    """Yields every item of a schedule that is no loop, with the sequential loops around it, the outermost first."""
    loops: list[str] = []
    for item in schedule:
        if isinstance(item, EnterLoop):
            loops.append(item.iname)
        elif isinstance(item, LeaveLoop):
            loops.pop()
        else:
            yield item, tuple(loops)


def _loops_around(schedule: Any) -> Iterator[tuple[str, tuple[str, ...]]]:
    for item, loops in _scheduled(schedule):
        if isinstance(item, RunInstruction):
            yield item.insn_id, loops
