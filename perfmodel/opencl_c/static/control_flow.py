"""Follows control through a lowered kernel, with the points of the grid and of loops at which each statement is
executed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import islpy as isl

from perfmodel.basics.errors import CountingError, DecidedByDataError
from perfmodel.counting.budget import unless_too_hard
from perfmodel.counting.chains import Operations
from perfmodel.counting.counts import SUBGROUP_SIZE, BranchCount, CollectiveCount, Executions, OperationCount
from perfmodel.counting.domains import Domains, Region, projected_on, statistic
from perfmodel.counting.frequency import ALWAYS, Frequency
from perfmodel.counting.symbolic import (
    EVERYWHERE,
    NOWHERE,
    Polynomial,
    both,
    coordinate,
    opposite,
)
from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import walks
from perfmodel.opencl_c.static.accesses import GlobalArray, StaticAccesses
from perfmodel.opencl_c.static.branch_statistics import Observed
from perfmodel.opencl_c.static.constant_tables import ConstantTables
from perfmodel.opencl_c.static.deciding import arguments_behind
from perfmodel.opencl_c.static.grid import Grid
from perfmodel.opencl_c.static.iteration import Iteration
from perfmodel.opencl_c.static.iteration_sets import points_where, with_counter
from perfmodel.opencl_c.static.properties import properties_of
from perfmodel.opencl_c.static.sampling import AddressSampler
from perfmodel.opencl_c.static.symbolic_values import Evaluator
from perfmodel.opencl_c.static.values import Components, Environment, Truth, Value, of_components
from perfmodel.opencl_c.types import width_of
from perfmodel.opencl_c.visitor import Dispatch

MOST_ASKING = 100_000
"""Asking whether a condition holds nowhere takes no more of isl's operations; else it may hold."""


@dataclass(frozen=True)
class Active:
    """Holds where control is: the points of grid and loops, and how often at each on average.

    Attributes:
        issued: where vectors of a processor are, see `Region.issued`; it has the same dimensions.
    """

    points: Any
    dimensions: tuple[str, ...]
    factor: Frequency = ALWAYS
    issued: Active | None = None

    @property
    def region(self) -> Region:
        issued = None if self.issued is None else self.issued.region
        return Region(self.points, frozenset(self.dimensions), self.factor, issued=issued)

    def within(self, points: Any) -> Active:
        """Returns where control is at these points of here."""
        issued = None if self.issued is None else self.issued.within(points)
        return replace(self, points=(self.points & points).coalesce(), issued=issued)

    def often(self, factor: Frequency) -> Active:
        """Returns the same points, each executed `factor` times as often."""
        issued = None if self.issued is None else self.issued.often(factor)
        return replace(self, factor=self.factor * factor, issued=issued)

    def masked_by(self, all_of: Active) -> Active:
        """Returns the same where only a part of the lanes is active, and whole vectors go on under a mask."""
        return replace(self, issued=all_of.issued or all_of)

    def with_counter(self, counter: str) -> Active:
        """Returns the same inside of a loop, at any iteration."""
        issued = None if self.issued is None else self.issued.with_counter(counter)
        points = with_counter(self.points, counter)
        return Active(points, (*self.dimensions, counter), self.factor, issued)


@dataclass
class Exit:
    """Holds the work-items that left for a label, the registers' values there, and under which condition they left
    (None where it is unknown)."""

    parts: list[Active] = field(default_factory=list)
    values: list[tuple[Truth | None, Environment]] = field(default_factory=list)


class Walk(ABC):
    """Goes through statements, scopes and branches; loops and what is counted are left to classes built on it."""

    def __init__(
        self,
        kernel: low.LoweredKernel,
        grid: Grid,
        arrays: Mapping[str, GlobalArray],
        statistics: Mapping[str, float],
        subgroup_size: int | None,
        at: Mapping[str, Polynomial],
        observed: Mapping[int, Observed],
        as_compiled: bool,
        scalars: Mapping[str, Any],
        is_sampled: bool,
    ) -> None:
        self.at, self.observed, self.scalars, self.is_sampled = at, observed, scalars, is_sampled
        self.kernel, self.grid, self.statistics = kernel, grid, statistics
        self.domains: Domains = grid.domains(subgroup_size)
        self.bounds = dict(grid.bounds)
        items = grid.with_subgroups(kernel.subgroup_size or subgroup_size or SUBGROUP_SIZE)
        self.evaluate = Evaluator(items, self.bounds, self.is_never, ConstantTables(kernel.objects))
        self.properties = properties_of(kernel, as_compiled)
        self.operations, self.scratch = self.properties.operations, self.properties.scratch
        self.waits = self.properties.waits
        self.accesses = StaticAccesses(
            self.domains,
            arrays,
            self.sampler(),
            self.scratch,
            self.waits,
            self.properties.vectorization,
            as_compiled,
            self.bounds,
            {each.name: each.type.size for each in kernel.objects if each.is_of_program},
        )
        self.exits: dict[str, Exit] = {}
        self.path: list[Truth | None] = []
        self.starts: dict[str, int] = {}
        self.loops: list[low.Loop] = []
        self.current: tuple[Iteration, ...] = ()
        self.is_dry = False
        self.now: Active | None = None
        self.used_statistics: set[str] = set()
        self.found_operations: list[OperationCount] = []
        self.index_operations: list[OperationCount] | None = [] if as_compiled else None
        self.chains: dict[Any, tuple[Operations, Executions]] = {}
        self.carried: dict[str, frozenset[low.Register]] = {}
        self.found_branches: list[BranchCount] = []
        self.collectives: list[CollectiveCount] = []
        self.barriers: tuple[Any, Any, Any] = (self.domains.zero(),) * 3

    def sampler(self) -> AddressSampler | None:
        """Returns what looks at single work-items; only where the launch is of known size."""
        counts = [groups.constant for groups in self.grid.groups]
        known = [count for count in counts if count]
        arguments = {size: value.constant for size, value in self.at.items() if value.constant is not None}
        if self.grid.sizes or len(known) < len(counts):
            return None
        return AddressSampler(self.operations.assigned, known, self.grid.local_size, arguments)

    @property
    def environment(self) -> Environment:
        return self.evaluate.environment

    @abstractmethod
    def count(self, statement: Any, region: Region) -> None:
        """Counts a simple statement that is executed at the points of a region."""

    # --- statements

    def run(self, body: tuple[low.Statement, ...], active: Active | None) -> Active | None:
        """Goes through statements and returns where control is afterwards, None for nowhere."""
        seen = None
        for statement in body:
            if active is None or (active is not seen and active.points.is_empty()):
                return None
            seen = active
            self.now = active
            active = self.visit(statement, active)
        return active

    visit = Dispatch[[Active], "Active | None"](low.Statement)
    """Goes through a statement and returns where control is afterwards, None for nowhere."""

    @visit.on(low.Loop)
    @abstractmethod
    def loop(self, loop: low.Loop, active: Active) -> Active | None:
        """Goes through all iterations of a loop."""

    @visit.on(low.Leave)
    def leave(self, leave: low.Leave, active: Active) -> None:
        left = self.exits.setdefault(leave.label, Exit())
        left.parts.append(active)
        left.values.append((self.way_from(leave.label), dict(self.environment)))

    @visit.on(low.Straight)
    def straight(self, block: low.Straight, active: Active) -> Active:
        region = active.region
        if not self.is_dry:
            executions = None
            for (kind, dtype), times in self.operations.of(block).values.items():
                executions = executions or self.domains.executions(region)
                self.found_operations.append(OperationCount(kind, dtype, times, executions))
            if self.index_operations is not None:
                self.index_operations += self.index_arithmetic(block, region)
        for statement in block.statements:
            if not self.is_dry:
                self.count(statement, region)
            match statement:
                case low.Assign():
                    value = self.evaluate(statement.value)
                    if statement.components is not None:
                        value = self.with_components(statement, value)
                    self.environment[statement.register] = value
                case low.Atomic() | low.Collective() if statement.result is not None:
                    self.environment[statement.result] = None
        return active

    def index_arithmetic(self, block: low.Straight, region: Region) -> Iterator[OperationCount]:
        """Yields the index arithmetic of a block; what loops that are written out repeat only once."""
        around = [loop.name for loop in self.loops] + [each.loop.name for each in self.current]
        later = {each.loop.name for each in self.current if each.number > 0}
        found: dict[frozenset[str], Operations] = {}
        for once, operations in self.properties.written_out.of_block(block, around):
            if not later.intersection(once):
                dropped = region.inames & {coordinate(name) for name in once}
                found[dropped] = found.get(dropped, Operations()) + operations
        for dropped, operations in found.items():
            executions = self.domains.executions(region.without(dropped))
            for (kind, dtype), times in operations.items():
                yield OperationCount(kind, dtype, times, executions)

    def with_components(self, statement: low.Assign, value: Value) -> Value:
        """Returns a vector of which some components get a value."""
        width = width_of(statement.register.type)
        components = list(of_components(self.environment.get(statement.register), width))
        parts = of_components(value, width_of(statement.value.type))
        for component, part in zip(statement.components or (), parts, strict=True):
            components[component] = part
        return Components(tuple(components))

    @visit.on(low.Scope)
    def scope(self, scope: low.Scope, active: Active) -> Active | None:
        self.starts[scope.label] = len(self.path)
        after = self.run(scope.body, active)
        left = self.exits.pop(scope.label, Exit())
        self.now = active
        # Who leaves first is asked first: conditions of later ones do not say that earlier ones did not hold.
        values = None if after is None else self.environment
        for condition, others in reversed(left.values):
            values = others if values is None else self.merged(condition, others, values)
        if values is not None:
            self.evaluate.environment = values
        return self.joined(after, left, active)

    def merged(self, condition: Truth | None, then: Environment, otherwise: Environment) -> Environment:
        registers = dict.fromkeys((*then, *otherwise))
        return {r: self.evaluate.select(condition, then.get(r), otherwise.get(r)) for r in registers}

    def way_from(self, label: str) -> Truth | None:
        """Returns under which condition control came here from the start of a scope; None if that is not known."""
        text = EVERYWHERE
        for condition in self.path[self.starts.get(label, 0) :]:
            if condition is None:
                return None
            text = both(text, condition.text)
        return Truth(text)

    def joined(self, after: Active | None, left: Exit, before: Active) -> Active | None:
        """Returns where control is at the end of something that can be left."""
        if not left.parts:
            return after
        if any(part.factor != before.factor for part in left.parts) or (after and after.factor != before.factor):
            return before  # parts of a probability come together again
        points = after.points if after is not None else isl.Set.empty(before.points.space)
        for part in left.parts:
            points = points | projected_on(part.points, before.dimensions)
        return replace(before, points=points.coalesce())

    @contextmanager
    def dry(self) -> Iterator[None]:
        """Goes through statements only to see what they do to registers and where they leave to."""
        state = self.is_dry, self.exits, self.now, dict(self.environment), dict(self.bounds)
        self.is_dry, self.exits = True, {}
        yield
        self.is_dry, self.exits, self.now, environment, bounds = state
        self.evaluate.environment = environment
        self.bounds.clear()
        self.bounds.update(bounds)

    # --- branches

    @visit.on(low.If)
    def branch(self, branch: low.If, active: Active) -> Active | None:
        condition = self.environment.get(branch.condition)
        holds, sides = self.decided(condition, active), None
        kind = "choice" if branch.is_choice else "if"
        if holds is not None:
            then_active, other_active = active.within(holds), active.within(holds.complement())
            self.affine_branch(kind, branch, active, then_active)
        elif not self.matters(branch):
            known = self.known_sides(branch)
            self.branch_of_data(kind, branch, active, None if known is None else known.taken)
            return self.unimportant(branch, active)
        else:
            sides = self.sides(branch)
            self.branch_of_data(kind, branch, active, sides.taken)
            then_active, other_active = active.often(sides.taken), active.often(sides.otherwise)
        if self.properties.uniformity.is_masked(branch):
            then_active, other_active = then_active.masked_by(active), other_active.masked_by(active)
        before = dict(self.environment)
        way = condition if isinstance(condition, Truth) and holds is not None else None
        self.path.append(way)
        then_after = self.run(branch.then, then_active)
        then_environment = self.environment
        self.evaluate.environment = dict(before)
        self.path[-1] = None if way is None else Truth(opposite(way.text))
        other_after = self.run(branch.otherwise, other_active)
        self.path.pop()
        self.now = active
        if then_after is None or other_after is None:
            if other_after is None:
                self.evaluate.environment = then_environment
            return self.going_on(branch, then_after or other_after, active)
        changed = [r for r, v in then_environment.items() if self.environment.get(r, before.get(r)) != v]
        for register in {*changed, *(r for r in self.environment if r not in then_environment)}:
            then, otherwise = then_environment.get(register), self.environment.get(register)
            self.environment[register] = self.evaluate.select(condition, then, otherwise)
        if holds is None:
            return self.after_data(sides, active, (then_active, then_after), (other_active, other_after))
        if then_after is then_active and other_after is other_active:
            return active
        if then_after.dimensions != other_after.dimensions or then_after.factor != other_after.factor:
            return active
        return replace(active, points=(then_after.points | other_after.points).coalesce())

    def going_on(self, branch: low.If, others: Active | None, before: Active) -> Active | None:
        """Returns where control goes on behind a branch on one side of which work-items leave.

        Vectors that leave the kernel as a whole do no more, unlike those that go on with a loop's next iteration.
        """
        ends = {scope.label for scope in self.kernel.body if isinstance(scope, low.Scope)}
        if others is None or not walks.labels_left((*branch.then, *branch.otherwise)) <= ends:
            return others
        return replace(others, issued=before.issued)

    def after_data(self, sides: Observed | None, before: Active, *ways: tuple[Active, Active]) -> Active:
        """Returns where control is behind a branch that data decide: all who came but did not leave for elsewhere."""
        if sides is None or all(start.factor == end.factor for start, end in ways):
            return before
        if sides.behind is not None:
            return replace(before, factor=before.factor * sides.behind)
        (_, then), (_, otherwise) = ways
        return replace(before, factor=then.factor + otherwise.factor)

    def matters(self, branch: low.If) -> bool:
        """Returns whether a branch does anything that is counted, or decides where control goes."""
        for block in (*branch.then, *branch.otherwise):
            if not isinstance(block, low.Straight) or self.operations.of(block).values:
                return True
            for statement in block.statements:
                if not isinstance(statement, low.Assign) or any(walks.accesses_of(statement)):
                    return True
        return False

    def unimportant(self, branch: low.If, active: Active) -> Active:
        self.environment.update(dict.fromkeys(walks.registers_set((branch,))))
        return active

    def affine_branch(self, kind: str, branch: low.If | low.Loop, met: Active, taken: Active) -> None:
        """Counts a branch whose condition is known to hold at some points."""
        if self.is_dry or met.points.is_empty():
            return
        found = self.domains.branch(kind, str(branch.place), met.region, taken.region)
        self.found_branches.append(replace(found, is_masked=self.properties.uniformity.is_masked(branch)))

    def branch_of_data(self, kind: str, branch: low.If | low.Loop, met: Active, taken: Frequency | None) -> None:
        """Counts a branch of which only statistics say how often its condition holds."""
        if self.is_dry:
            return
        found = self.domains.branch_of_data(kind, str(branch.place), met.region, taken)
        self.found_branches.append(replace(found, is_masked=self.properties.uniformity.is_masked(branch)))

    def known_sides(self, branch: low.If) -> Observed | None:
        """Returns what statistics say of a condition, or what was seen of it."""
        key = f"if_{branch.place.line}"
        if key in self.statistics:
            self.used_statistics.add(key)
            probability = statistic(self.statistics[key], key)
            if probability > 1:
                raise CountingError(f"the probability of {key!r} is {float(probability):g}; give one from 0 to 1")
            return Observed.by_probability(probability)
        return self.observed.get(branch.number)

    def sides(self, branch: low.If) -> Observed:
        known = self.known_sides(branch)
        if known is not None:
            return known
        if self.is_dry:
            return Observed.by_probability(Fraction(1, 2))
        key = f"if_{branch.place.line}"
        what = "&&, || or ?:" if branch.is_choice else "if or case"
        self.ask_for_arguments(what, branch)
        raise DecidedByDataError(
            f"the {what} at {branch.place} of kernel {self.kernel.name!r} depends on data, or is not affine; give its "
            f"probability as statistics={{{key!r}: …}}, or emulate the kernel"
        )

    def ask_for_arguments(self, what: str, branch: low.If | low.Loop) -> None:
        """Raises CountingError for a condition that is decided by arguments alone, of which some have no value."""
        names, has_data = arguments_behind(self.kernel, [branch.condition])
        missing = [name for name in names if name not in self.scalars]
        if missing and not has_data:
            raise CountingError(
                f"the {what} at {branch.place} of kernel {self.kernel.name!r} depends on the argument "
                f"{' and '.join(missing)}, which has no value; give it as {missing[0]}=… (--arg {missing[0]}=…)"
            )

    # --- sets

    def set_of(self, text: str, active: Active) -> Any:
        """Returns the points of a space at which a condition holds."""
        return points_where(text, active.dimensions, self.domains)

    def decided(self, condition: Value, active: Active) -> Any:
        """Returns where a condition holds; None if data decide, a loop whose iterations are a statistic, or samples."""
        if not isinstance(condition, Truth):
            return None
        if self.is_sampled and any(dimension in condition.text for dimension in self.grid.dimensions):
            return None
        try:
            return self.set_of(condition.text, active)
        except isl.Error:  # a name that is no coordinate here
            return None

    def is_never(self, text: str) -> bool:
        """Returns whether a condition holds nowhere where control is."""
        if self.now is None:
            return False
        if text in (EVERYWHERE, NOWHERE):
            return text == NOWHERE
        now = self.now
        try:
            is_empty = unless_too_hard(lambda: (now.points & self.set_of(text, now)).is_empty(), MOST_ASKING)
        except isl.Error:  # a name that is not known here
            return self.is_dry
        return bool(is_empty)
