"""A lowered kernel is counted without running it, as functions of its sizes, where loops and conditions are affine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import islpy as isl

from perfmodel.basics.errors import CountingError, UnknownAddressError
from perfmodel.counting.budget import extended, within_budget
from perfmodel.counting.counts import RESERVED, ChainCount, CollectiveCount, Executions, KernelCounts
from perfmodel.counting.domains import Region
from perfmodel.counting.symbolic import (
    ZERO,
    Pieces,
    Polynomial,
    name,
    plain,
)
from perfmodel.counting.usual_budget import USUAL
from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import walks
from perfmodel.opencl_c.static.accesses import GlobalArray
from perfmodel.opencl_c.static.branch_statistics import Observed
from perfmodel.opencl_c.static.chains import carried_operations
from perfmodel.opencl_c.static.control_flow import Active
from perfmodel.opencl_c.static.grid import Grid
from perfmodel.opencl_c.static.known_numbers import known
from perfmodel.opencl_c.static.loops import Loops
from perfmodel.opencl_c.static.scratch import words_in_registers
from perfmodel.opencl_c.static.values import Components, PointsTo, Value
from perfmodel.opencl_c.types import Pointer, Vector, element_of, is_float


def count_opencl(
    kernel: low.LoweredKernel,
    grid: Grid,
    arrays: Mapping[str, GlobalArray],
    statistics: Mapping[str, float] | None = None,
    subgroup_size: int | None = None,
    at: Mapping[str, Polynomial] | None = None,
    observed: Mapping[int, Observed] | None = None,
    as_compiled: bool = False,
    scalars: Mapping[str, Any] | None = None,
    is_sampled: bool = False,
    budget: float = USUAL,
    ends_early: bool = False,
) -> KernelCounts:
    """Returns the counts of a kernel in OpenCL C.

    Args:
        grid: the launch, as functions of the sizes.
        arrays: the kernel's arguments in global and constant memory.
        statistics: what data decide: the expected iterations of a loop, by its variable or as ``loop_LINE``, and the
            probability of a branch, as ``if_LINE``.
        subgroup_size: work-items of a sub-group; None counts no sub-groups.
        at: scalar arguments that are numbers, and no sizes of the grid.
        observed: what was seen of branches, by their numbers, for those that `statistics` leaves out.
        as_compiled: whether operations are a compiler's, see `KernelOperations`, and index arithmetic is counted.
        scalars: arguments of floating-point type that have a value.
        is_sampled: whether `observed` also stands for what work-items' ids decide, as that is too hard to count.
        budget: see `perfmodel.counting.budget`.
        ends_early: whether counting ends at the first access whose address only sizes that are numbers tell.

    Raises:
        UnknownAddressError: counting ended early.
        CountingError: for loops and branches that depend on data and have no statistics, or are not affine; for what
            takes more than the budget.
    """
    _check_length(kernel)
    counter = StaticCounter(
        kernel,
        grid,
        arrays,
        dict(statistics or {}),
        subgroup_size,
        at or {},
        observed or {},
        as_compiled,
        scalars or {},
        is_sampled,
    )
    with counting(kernel.name, budget):
        return counter.counts(ends_early)


@contextmanager
def counting(kernel: str, budget: float) -> Iterator[None]:
    """Lets a kernel be counted within a budget.

    Raises:
        CountingError: isl refuses something, or the budget is used up.
    """
    try:
        with within_budget(kernel, budget):
            yield
    except isl.Error as error:
        raise CountingError(f"kernel {kernel!r} cannot be counted: {' '.join(str(error).split())[:200]}") from error


MOST_FOOTPRINTS = 2_000_000
"""Footprints take no more of isl's operations; those that are left then are not known."""
MOST_ACCESSES, MOST_BRANCHES = 12_000, 1_000
"""No more are counted than takes a minute; hand-written kernels reach a hundred, written-out ciphers ten thousand."""


def _check_length(kernel: low.LoweredKernel) -> None:
    branches = sum(isinstance(statement, low.If | low.Loop) for statement in walks.statements(kernel.body))
    for number, most, what in (
        (branches, MOST_BRANCHES, "loops and branches"),
        (len(kernel.accesses), MOST_ACCESSES, "accesses to memory"),
    ):
        if number > most:
            raise CountingError(
                f"kernel {kernel.name!r} has {number} {what} in its source, more than the {most} that are counted; use "
                "loops, or predict it by kernel.as_emulated()"
            )


class StaticCounter(Loops):
    """Counts one kernel."""

    ends_early = False

    def counts(self, ends_early: bool = False) -> KernelCounts:
        self.ends_early = ends_early
        self.walk()
        counts = self.without_addresses()
        with extended(MOST_FOOTPRINTS):
            footprints = self.accesses.footprints()
            return replace(counts, accesses=self.accesses.accesses(), footprints=footprints, exact=self.domains.exact)

    def walk(self) -> None:
        """Goes through the kernel once, with its arguments as they are known.

        Raises:
            CountingError: for a statistic of nothing that depends on data.
        """
        for register in self.kernel.registers:
            if register.parameter is not None:
                self.environment[register] = self.parameter(register)
        self.run(self.kernel.body, self.grid.everywhere(Active, self.domains))
        for key in self.statistics:
            if key not in self.used_statistics:
                raise CountingError(
                    f"kernel {self.kernel.name!r} has no loop or branch {key!r} that depends on data; leave its "
                    "statistic out, or name one as the loop's variable, loop_LINE or if_LINE"
                )

    def without_addresses(self) -> KernelCounts:
        """Returns the counts but for what accesses touch."""
        finished, items, subgroups, groups = self.domains.finished, *self.barriers
        by_item = finished(items)
        by_subgroup = None if subgroups is None else finished(subgroups)
        group_counts, local_sizes = self.domains.group_counts, self.domains.local_sizes
        return KernelCounts(
            operations=tuple(self.found_operations),
            chains=tuple(self.chain_counts()),
            accesses=(),
            footprints=(),
            branches=tuple(self.found_branches),
            barriers=Executions(by_item, by_subgroup, finished(groups), (by_item,)),
            launches=finished(self.domains.one()),
            work_groups=finished(self.domains.product(group_counts)),
            work_items=finished(self.domains.product((*group_counts, *local_sizes))),
            local_size=tuple(finished(self.domains.product([size])) for size in local_sizes),
            subgroup_size=self.domains.subgroup_size,
            exact=self.domains.exact,
            index_operations=None if self.index_operations is None else tuple(self.index_operations),
            collectives=tuple(self.collectives),
            sampled=self.is_sampled,
            scratch=tuple((name, each.bytes) for name, each in self.scratch.items()),
            grid=tuple(finished(self.domains.product([count])) for count in group_counts),
            registers=words_in_registers(self.kernel, self.scratch) + RESERVED,
            scalar_operations=self.properties.scalar_operations,
            moved_words=self.properties.moved_sums.words,
            moved_steps=self.properties.moved_sums.steps,
        )

    def parameter(self, register: low.Register) -> Value:
        if isinstance(register.type, Pointer):
            return PointsTo(register.name, plain(ZERO))
        if isinstance(register.type, Vector):
            names = [f"{register.name}_{component}" for component in range(register.type.width)]
            if is_float(register.type):
                numbers = [self.scalars.get(each) for each in names]
                return None if None in numbers else known(numbers, register.type)
            return Components(tuple(map(self.size, names)))
        if is_float(register.type):
            given = self.scalars.get(register.name)
            return None if given is None else known(given, register.type)
        return self.size(register.name)

    def size(self, argument: str) -> Pieces | None:
        """Returns the value of a scalar argument, or number of a struct; None for one that is no size."""
        if argument in self.at:
            return plain(self.at[argument])
        return plain(name(argument)) if argument in self.domains.sizes else None

    # --- what is counted

    def count(self, statement: Any, region: Region) -> None:
        self.accesses_of(statement, region)
        self.chain(statement, region)
        if isinstance(statement, low.Collective):
            dtype, scope = element_of(statement.result.type).dtype, "workgroup" if statement.is_of_group else "subgroup"
            executions = self.domains.executions(region)
            self.collectives.append(CollectiveCount(statement.kind, scope, dtype, executions))
        if isinstance(statement, low.Barrier) and statement.is_of_group:
            self.barrier(region)

    def accesses_of(self, statement: Any, region: Region) -> None:
        for node in walks.accesses_of(statement):
            place, access = self.evaluate(node.pointer), node.access
            self.accesses.add(access, low.direction_of(node), node.pointer, place, region, self.loops, self.current)
            if self.ends_early and self.accesses.needs_numbers and not self.operations.depends_on_data(node.pointer):
                raise UnknownAddressError(
                    f"kernel {self.kernel.name!r} has its addresses at {access.place} only for sizes that are numbers; "
                    "give them"
                )
        if isinstance(statement, low.Assign):
            self.accesses.private(statement, self.operations, region, self.loops)

    def chain(self, statement: Any, region: Region) -> None:
        """Adds the operations that a statement does, iteration by iteration, to its own result."""
        if not self.loops and not self.current:
            return
        if isinstance(statement, low.Assign) and not (
            self.operations.counts(statement.register) and self._is_carried(statement.register)
        ):
            return
        operations, apart = carried_operations(statement, self.evaluate, [self.loop_name(loop) for loop in self.loops])
        kept = [loop for loop in self.loops if self.loop_name(loop) not in apart]
        if not operations or not (kept or self.current):
            return
        around = region.without(apart)
        iterations = self.domains.executions(around)
        # Statements that change one variable at the same points wait for each other.
        result = statement.register if isinstance(statement, low.Assign) else self.evaluate(statement.pointer)
        loops = (*(loop.name for loop in self.loops), *map(str, self.current))
        key = (result, loops, bool(kept), str(around.points), region.factor)
        before, _ = self.chains.get(key, (Counter(), iterations))
        self.chains[key] = (before + operations, iterations)

    def chain_counts(self) -> Iterator[ChainCount]:
        """Yields the chains; what only one iteration of a loop does that is gone through one by one is none."""
        found_in: dict[Any, set[tuple[str, ...]]] = {}
        for result, loops, *_ in self.chains:
            found_in.setdefault(result, set()).add(loops)
        for (result, loops, is_looped, *_), (operations, iterations) in self.chains.items():
            if is_looped or len(found_in[result]) > 1:
                yield ChainCount(tuple((*key, times) for key, times in sorted(operations.items())), iterations, loops)

    def _is_carried(self, register: low.Register) -> bool:
        """Returns whether a value goes on from iteration to iteration of the loop that was entered last, of either
        kind; loops are met again and again."""
        innermost = [*self.loops[-1:], *(iteration.loop for iteration in self.current[-1:])]
        for loop in innermost:
            if loop.name not in self.carried:
                self.carried[loop.name] = walks.carried_registers((*loop.test, *loop.body, *loop.step))
        return any(register in self.carried[loop.name] for loop in innermost)

    def barrier(self, region: Region) -> None:
        met = self.domains.met(region.without(self.domains.along("local", region.inames)))
        old = self.barriers
        subgroups = None if old[1] is None or met[1] is None else old[1] + met[1]
        self.barriers = (old[0] + met[0], subgroups, old[2] + met[2])
