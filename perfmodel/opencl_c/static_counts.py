"""Counts of a lowered kernel without running it, as functions of its sizes: where loops and conditions are affine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import islpy as isl

from perfmodel.counting.counts import BranchCount, ChainCount, Executions, KernelCounts, OperationCount
from perfmodel.counting.domains import Domains, Region, projected_on, statistic
from perfmodel.errors import CountingError
from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c.abstract_values import Environment, Evaluator, PointsTo, Truth, Value
from perfmodel.opencl_c.carried import carried_operations
from perfmodel.opencl_c.grid import Grid
from perfmodel.opencl_c.operations import KernelOperations, Operations
from perfmodel.opencl_c.static_accesses import GlobalArray, StaticAccesses
from perfmodel.opencl_c.symbolic import (
    EVERYWHERE,
    ONE,
    ZERO,
    Pieces,
    Polynomial,
    both,
    chosen,
    combined,
    coordinate,
    name,
    number,
    plain,
    quotient,
)
from perfmodel.opencl_c.types import Pointer, Scalar

MOST_TURNS = 512
"""Of a loop whose counter is not linear (``s /= 2``), gone through turn by turn."""


@dataclass(frozen=True)
class _Active:
    """Where control is: the points of grid and loops, and how often at each on average."""

    points: Any
    dimensions: tuple[str, ...]
    factor: Fraction = Fraction(1)

    @property
    def region(self) -> Region:
        return Region(self.points, frozenset(self.dimensions), self.factor)

    def within(self, points: Any) -> _Active:
        return replace(self, points=(self.points & points).coalesce())


@dataclass
class _Exit:
    """Those that left for a label, and what registers were then, under the condition that led there (None: unknown)."""

    parts: list[_Active] = field(default_factory=list)
    values: list[tuple[Truth | None, Environment]] = field(default_factory=list)


def count_opencl(
    kernel: low.LoweredKernel,
    grid: Grid,
    arrays: Mapping[str, GlobalArray],
    statistics: Mapping[str, float] | None = None,
    subgroup_size: int | None = None,
    at: Mapping[str, Polynomial] | None = None,
    observed: Mapping[int, Fraction] | None = None,
) -> KernelCounts:
    """Counts of a kernel in OpenCL C.

    Args:
        grid: the launch, as functions of the sizes.
        arrays: the kernel's arguments in global and constant memory.
        statistics: what data decide: the expected turns of a loop, by its variable or as ``loop_LINE``, and the
            probability of a branch, as ``if_LINE``.
        subgroup_size: work-items of a sub-group; None counts no sub-groups.
        at: scalar arguments that are numbers, and no sizes of the grid.
        observed: statistics of branches by their numbers, for those that `statistics` leaves out.

    Raises:
        CountingError: for loops and branches that depend on data and have no statistics, or are not affine.
    """
    counter = _StaticCounter(kernel, grid, arrays, dict(statistics or {}), subgroup_size, at or {}, observed or {})
    try:
        return counter.counts()
    except isl.Error as error:
        raise CountingError(
            f"kernel {kernel.name!r} cannot be counted: {' '.join(str(error).split())[:200]}"
        ) from error


class _StaticCounter:
    def __init__(
        self,
        kernel: low.LoweredKernel,
        grid: Grid,
        arrays: Mapping[str, GlobalArray],
        statistics: Mapping[str, float],
        subgroup_size: int | None,
        at: Mapping[str, Polynomial],
        observed: Mapping[int, Fraction],
    ) -> None:
        self.at, self.observed = at, observed
        self.kernel, self.grid, self.statistics = kernel, grid, statistics
        self.domains: Domains = grid.domains(subgroup_size)
        self.bounds = dict(grid.bounds)
        self.evaluate = Evaluator(grid.work_item, self.bounds, self.is_never)
        self.operations = KernelOperations(kernel)
        self.accesses = StaticAccesses(self.domains, arrays)
        self.exits: dict[str, _Exit] = {}
        self.path: list[Truth | None] = []
        self.starts: dict[str, int] = {}
        self.loops: list[low.Loop] = []
        self.is_dry = False
        self.now: _Active | None = None
        self.used_statistics: set[str] = set()
        self.found_operations: list[OperationCount] = []
        self.chains: dict[Any, tuple[Operations, Executions, tuple[str, ...]]] = {}
        self.found_branches: list[BranchCount] = []
        self.barriers: tuple[Any, Any, Any] = (self.domains.zero(),) * 3

    @property
    def environment(self) -> Environment:
        return self.evaluate.environment

    # --- the kernel

    def counts(self) -> KernelCounts:
        for register in self.kernel.registers:
            if register.parameter is not None:
                self.environment[register] = self.parameter(register)
        self.run(self.kernel.body, self.grid.everywhere(_Active, self.domains))
        for key in self.statistics:
            if key not in self.used_statistics:
                raise CountingError(
                    f"kernel {self.kernel.name!r} has no loop or branch {key!r} that depends on data; leave its "
                    "statistic out, or name one as the loop's variable, loop_LINE or if_LINE"
                )
        finished, items, subgroups, groups = self.domains.finished, *self.barriers
        by_item = finished(items)
        by_subgroup = None if subgroups is None else finished(subgroups)
        group_counts, local_sizes = self.domains.group_counts, self.domains.local_sizes
        return KernelCounts(
            tuple(self.found_operations),
            tuple(
                ChainCount(tuple((*key, times) for key, times in sorted(operations.items())), turns, loops)
                for operations, turns, loops in self.chains.values()
            ),
            tuple(self.accesses.found),
            self.accesses.footprints(),
            tuple(self.found_branches),
            Executions(by_item, by_subgroup, finished(groups), (by_item,)),
            finished(self.domains.one()),
            finished(self.domains.product(group_counts)),
            finished(self.domains.product((*group_counts, *local_sizes))),
            tuple(finished(self.domains.product([size])) for size in local_sizes),
            self.domains.subgroup_size,
            self.domains.exact,
        )

    def parameter(self, register: low.Register) -> Value:
        if isinstance(register.type, Pointer):
            return PointsTo(register.name, plain(ZERO))
        if register.name in self.at:
            return plain(self.at[register.name])
        if isinstance(register.type, Scalar) and register.name in self.domains.sizes:
            return plain(name(register.name))
        return None

    # --- statements

    def run(self, body: tuple[low.Statement, ...], active: _Active | None) -> _Active | None:
        """Goes through statements; where control is afterwards, None for nowhere."""
        for statement in body:
            if active is None or active.points.is_empty():
                return None
            self.now = active
            match statement:
                case low.Straight():
                    self.straight(statement, active)
                case low.If():
                    active = self.branch(statement, active)
                case low.Loop():
                    active = self.loop(statement, active)
                case low.Scope():
                    active = self.scope(statement, active)
                case low.Leave():
                    left = self.exits.setdefault(statement.label, _Exit())
                    left.parts.append(active)
                    left.values.append((self.way_from(statement.label), dict(self.environment)))
                    return None
        return active

    def straight(self, block: low.Straight, active: _Active) -> None:
        region = active.region
        if not self.is_dry:
            executions = None
            for (kind, dtype), times in self.operations.of(block).values.items():
                executions = executions or self.domains.executions(region)
                self.found_operations.append(OperationCount(kind, dtype, times, executions))
        for statement in block.statements:
            if not self.is_dry:
                self.accesses_of(statement, region)
                self.chain(statement, region)
            match statement:
                case low.Assign():
                    value = None if statement.components is not None else self.evaluate(statement.value)
                    self.environment[statement.register] = value
                case low.Atomic() if statement.result is not None:
                    self.environment[statement.result] = None
                case low.Barrier() if not self.is_dry:
                    self.barrier(region)

    def accesses_of(self, statement: Any, region: Region) -> None:
        for expression in low.expressions_of(statement):
            for part in low.walk(expression):
                if isinstance(part, low.Load):
                    self.accesses.add(part.access, "load", self.evaluate(part.pointer), region, self.loops)
        if isinstance(statement, low.Store | low.Atomic):
            place = self.evaluate(statement.pointer)
            for direction in ("store",) if isinstance(statement, low.Store) else ("load", "store"):
                self.accesses.add(statement.access, direction, place, region, self.loops)
        if isinstance(statement, low.Assign):
            self.accesses.private(statement, self.operations, region, self.loops)

    def chain(self, statement: Any, region: Region) -> None:
        """The operations that a statement does, turn by turn, to its own result."""
        if not self.loops:
            return
        if isinstance(statement, low.Assign) and not self.operations.counts(statement.register):
            return
        operations, apart = carried_operations(statement, self.evaluate, [self.loop_name(loop) for loop in self.loops])
        kept = [loop for loop in self.loops if self.loop_name(loop) not in apart]
        if not operations or not kept:
            return
        points = projected_on(region.points, region.inames - apart)
        turns = self.domains.executions(replace(region, points=points, inames=region.inames - apart))
        # Statements that change one variable at the same points wait for each other.
        result = statement.register if isinstance(statement, low.Assign) else self.evaluate(statement.pointer)
        loops = tuple(loop.name for loop in self.loops)
        key = (result, loops, str(points), region.factor)
        before, *_ = self.chains.get(key, (Counter(),))
        self.chains[key] = (before + operations, turns, loops)

    def barrier(self, region: Region) -> None:
        kept = region.inames - self.domains.along("local", region.inames).keys()
        met = self.domains.met(replace(region, points=projected_on(region.points, kept), inames=kept))
        old = self.barriers
        subgroups = None if old[1] is None or met[1] is None else old[1] + met[1]
        self.barriers = (old[0] + met[0], subgroups, old[2] + met[2])

    def scope(self, scope: low.Scope, active: _Active) -> _Active | None:
        self.starts[scope.label] = len(self.path)
        after = self.run(scope.body, active)
        left = self.exits.pop(scope.label, _Exit())
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
        """Under which condition control came here from the start of a scope; None if that is not known."""
        text = EVERYWHERE
        for condition in self.path[self.starts.get(label, 0) :]:
            if condition is None:
                return None
            text = both(text, condition.text)
        return Truth(text)

    def joined(self, after: _Active | None, left: _Exit, before: _Active) -> _Active | None:
        """Where control is at the end of something that can be left."""
        if not left.parts:
            return after
        if after is None and all(part.dimensions == before.dimensions for part in left.parts):
            points = left.parts[0].points
            for part in left.parts[1:]:
                points = points | part.points
            if any(part.factor != before.factor for part in left.parts):
                return before
            return replace(before, points=points.coalesce())
        if any(part.factor != before.factor for part in left.parts) or (after and after.factor != before.factor):
            return before  # parts of a probability come together again
        points = after.points if after is not None else isl.Set.empty(before.points.space)
        for part in left.parts:
            points = points | projected_on(part.points, before.dimensions)
        return replace(before, points=points.coalesce())

    # --- branches

    def branch(self, branch: low.If, active: _Active) -> _Active | None:
        condition = self.environment.get(branch.condition)
        holds = self.decided(condition, active)
        kind = "choice" if branch.is_choice else "if"
        if holds is not None:
            then_active, other_active = active.within(holds), active.within(holds.complement())
            self.affine_branch(kind, branch, active, then_active)
        elif not self.matters(branch):
            self.branch_of_data(kind, branch, active, self.known_probability(branch))
            return self.unimportant(branch, active)
        else:
            probability = self.probability(branch)
            self.branch_of_data(kind, branch, active, probability)
            then_active = replace(active, factor=active.factor * probability)
            other_active = replace(active, factor=active.factor * (1 - probability))
        before = dict(self.environment)
        way = condition if isinstance(condition, Truth) and holds is not None else None
        self.path.append(way)
        then_after = self.run(branch.then, then_active)
        then_environment = self.environment
        self.evaluate.environment = dict(before)
        self.path[-1] = None if way is None else Truth(f"not ({way.text})")
        other_after = self.run(branch.otherwise, other_active)
        self.path.pop()
        self.now = active
        if then_after is None or other_after is None:
            if other_after is None:
                self.evaluate.environment = then_environment
            return then_after or other_after
        changed = [r for r, v in then_environment.items() if self.environment.get(r, before.get(r)) != v]
        for register in {*changed, *(r for r in self.environment if r not in then_environment)}:
            then, otherwise = then_environment.get(register), self.environment.get(register)
            self.environment[register] = self.evaluate.select(condition, then, otherwise)
        if holds is None:
            return active
        if then_after is then_active and other_after is other_active:
            return active
        if then_after.dimensions != other_after.dimensions or then_after.factor != other_after.factor:
            return active
        return replace(active, points=(then_after.points | other_after.points).coalesce())

    def matters(self, branch: low.If) -> bool:
        """Whether a branch does anything that is counted, or decides where control goes."""
        for statement in (*branch.then, *branch.otherwise):
            if not isinstance(statement, low.Straight):
                return True
            for inner in statement.statements:
                if not isinstance(inner, low.Assign) or any(
                    isinstance(part, low.Load) for part in low.walk(inner.value)
                ):
                    return True
            if self.operations.of(statement).values:
                return True
        return False

    def unimportant(self, branch: low.If, active: _Active) -> _Active:
        for block in (*low.straights(branch.then), *low.straights(branch.otherwise)):
            for statement in block.statements:
                if isinstance(statement, low.Assign):
                    self.environment[statement.register] = None
        return active

    def affine_branch(self, kind: str, branch: low.If | low.Loop, met: _Active, taken: _Active) -> None:
        """Counts a branch of which it is known where its condition holds."""
        if self.is_dry or met.points.is_empty():
            return
        self.found_branches.append(self.domains.branch(kind, str(branch.place), met.region, taken.region))

    def branch_of_data(self, kind: str, branch: low.If | low.Loop, met: _Active, probability: Fraction | None) -> None:
        """Counts a branch of which only statistics say how often its condition holds."""
        if self.is_dry:
            return
        self.found_branches.append(self.domains.branch_of_data(kind, str(branch.place), met.region, probability))

    def known_probability(self, branch: low.If) -> Fraction | None:
        """What statistics say of a condition."""
        key = f"if_{branch.place.line}"
        if key in self.statistics:
            self.used_statistics.add(key)
            probability = statistic(self.statistics[key], key)
            if probability > 1:
                raise CountingError(f"the probability of {key!r} is {float(probability):g}; give one from 0 to 1")
            return probability
        return self.observed.get(branch.number)

    def probability(self, branch: low.If) -> Fraction:
        known = self.known_probability(branch)
        if known is not None:
            return known
        if self.is_dry:
            return Fraction(1, 2)
        key = f"if_{branch.place.line}"
        what = "&&, || or ?:" if branch.is_choice else "if or case"
        raise CountingError(
            f"the {what} at {branch.place} of kernel {self.kernel.name!r} depends on data, or is not affine; give its "
            f"probability as statistics={{{key!r}: …}}, or emulate the kernel"
        )

    # --- loops

    def loop_name(self, loop: low.Loop) -> str:
        return coordinate(loop.name)

    def loop(self, loop: low.Loop, active: _Active) -> _Active | None:
        self.path.append(None)
        after = self.looped(loop, active)
        self.path.pop()
        return after

    def looped(self, loop: low.Loop, active: _Active) -> _Active | None:
        assigned = _assigned(loop)
        entry = {register: self.environment.get(register) for register in assigned}
        steps = self.steps(loop, active, entry)
        own = self.loop_name(loop)
        counter = name(own)
        heads = {register: _head(value, steps.get(register), counter) for register, value in entry.items()}
        inside = _Active(_with_counter(active.points, own), (*active.dimensions, own), active.factor)
        self.environment.update(heads)
        self.bounds[own] = (0, None)
        condition = self.condition(loop, inside)
        if condition is None or self.statistic_of(loop) is not None:
            unrolled = None
            if self.statistic_of(loop) is None:
                self.environment.update(entry)
                unrolled = self.turn_by_turn(loop, active)
            if unrolled is not None:
                return unrolled[0]
            self.environment.update(heads)
            return self.by_statistics(loop, active, assigned)
        domain = self.without_broken(loop, self.domain(loop, inside, condition), heads)
        if domain is None:
            return self.by_statistics(loop, active, assigned)
        most = _constant_maximum(domain.points, own)
        self.bounds[own] = (0, most)
        self.count_loop(loop, active, domain, heads, is_loop=most != 0)
        exit_values = self.exit_values(loop, entry, steps, heads, active)
        for register in assigned:
            self.environment[register] = exit_values.get(register)
        return self.after_loop(loop, active)

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

    def steps(self, loop: low.Loop, active: _Active, entry: Environment) -> dict[low.Register, Polynomial]:
        """By how much registers change in every turn; those that change irregularly are left out."""
        found: dict[low.Register, Polynomial] = {}
        placeholders: dict[low.Register, Polynomial] = {}
        with self.dry():
            for register, value in entry.items():
                if not isinstance(value, Pieces | PointsTo):
                    self.environment[register] = None
                    continue
                unknown = coordinate(f"before{len(active.dimensions)}")
                active = _Active(_with_counter(active.points, unknown), (*active.dimensions, unknown), active.factor)
                # Counters seldom fall below zero; where they do, `heads` has the truth.
                self.bounds[unknown] = (0, None)
                placeholders[register] = name(unknown)
                start = plain(name(unknown))
                self.environment[register] = start if isinstance(value, Pieces) else PointsTo(value.variable, start)
            self.loops.append(loop)
            for part in (loop.test, loop.body, loop.step):
                self.run(part, active)
            self.loops.pop()
            irregular = frozenset().union(*(p.names() for p in placeholders.values())) | {self.loop_name(loop)}
            for register, placeholder in placeholders.items():
                value = self.environment.get(register)
                offset = value.offset if isinstance(value, PointsTo) else value
                if isinstance(offset, Pieces) and (single := offset.single) is not None:
                    step = single - placeholder
                    if not step.names() & irregular:
                        found[register] = step
        return found

    def condition(self, loop: low.Loop, inside: _Active) -> str | None:
        """The loop's condition at the head of a turn."""
        with self.dry():
            self.run(loop.test, inside)
            value = self.environment.get(loop.condition)
        return value.text if isinstance(value, Truth) and self.decided(value, inside) is not None else None

    def domain(self, loop: low.Loop, inside: _Active, condition: str) -> _Active:
        """The turns of a loop: up to the first at which its condition does not hold."""
        holds = self.set_of(condition, inside)
        own = self.loop_name(loop)
        first = self.set_of(f"{own} = 0", inside)
        if loop.is_do:
            holds = holds | first
        points = inside.points & holds
        begun = points & first.complement() if loop.is_do else points
        # Most conditions hold up to some turn and never again.
        before = _moved(begun, own, -1) & self.set_of(f"{own} >= 0", inside)
        if not (before & inside.points).is_subset(points):
            stopped = inside.points & holds.complement()
            points = points - _later(stopped, own)
        return replace(inside, points=points.coalesce())

    def without_broken(self, loop: low.Loop, domain: _Active, heads: Environment) -> _Active | None:
        """The turns up to a `break`; None if data decide on it, and the turns have been observed."""
        if not _is_left(loop.body, lambda label: True):
            return domain
        with self.dry():
            self.environment.update(heads)
            self.run(loop.test, domain)
            self.run(loop.body, domain)
            left = [part for label, found in self.exits.items() if not _is_inside(loop, label) for part in found.parts]
            if any(part.factor != domain.factor for part in left):
                if loop.number in self.observed:
                    return None
                raise CountingError(
                    f"the loop at {loop.place} of kernel {self.kernel.name!r} ends when data say so; give its expected "
                    f"turns as statistics={{{loop.name.split('__')[0]!r}: …}}, or emulate the kernel"
                )
        own = self.loop_name(loop)
        points = domain.points
        for part in left:
            stopped = projected_on(part.points, domain.dimensions)
            points = points - _later(stopped, own)
        return replace(domain, points=points.coalesce())

    def count_loop(self, loop: low.Loop, active: _Active, domain: _Active, heads: Environment, is_loop: bool) -> None:
        """Counts a loop's parts, each where it is executed; one of a single turn does not repeat its body."""
        own = self.loop_name(loop)
        everywhere = _with_counter(active.points, own)
        first = self.set_of(f"{own} = 0", replace(domain, points=everywhere)) & everywhere
        if is_loop:
            self.loops.append(loop)
        self.environment.update(heads)
        turned = self.returned(loop, domain, heads) if _is_left(loop.body, lambda label: True) else domain.points
        tested = _moved(turned, own, 1) if loop.is_do else _moved(turned, own, 1) | first
        met = replace(domain, points=tested.coalesce())
        self.run(loop.test, met)
        self.affine_branch("loop", loop, met, met.within(domain.points))
        after = self.run(loop.body, domain)
        if after is not None and loop.step:
            self.run(loop.step, after)
        if is_loop:
            self.loops.pop()

    def returned(self, loop: low.Loop, domain: _Active, heads: Environment) -> Any:
        """The turns after which the loop is tested again."""
        with self.dry():
            self.environment.update(heads)
            self.run(loop.test, domain)
            after = self.run(loop.body, domain)
        return isl.Set.empty(domain.points.space) if after is None else after.points

    def after_loop(self, loop: low.Loop, active: _Active) -> _Active | None:
        """Who comes out of a loop: all who came in, but those that left for elsewhere."""
        self.exits.pop(loop.label, None)
        points = active.points
        for label, found in self.exits.items():
            if _is_left(loop.body, lambda other, label=label: other == label):  # type: ignore[misc]
                for part in found.parts:
                    if set(part.dimensions) > set(active.dimensions) and part.factor == active.factor:
                        points = points - projected_on(part.points, active.dimensions)
        return active if points is active.points else replace(active, points=points.coalesce())

    def exit_values(
        self,
        loop: low.Loop,
        entry: Environment,
        steps: Mapping[low.Register, Polynomial],
        heads: Environment,
        active: _Active,
    ) -> Environment:
        """What registers are after a loop that ends by one comparison."""
        if _is_left(loop.body, lambda label: not _is_inside(loop, label)) or loop.is_do:
            return {register: value for register, value in entry.items() if steps.get(register) == ZERO}
        turns = self.turns(loop, heads)
        found: Environment = {}
        for register, value in entry.items():
            step = steps.get(register)
            if step is None:
                continue
            if step == ZERO:
                found[register] = value
            elif turns is not None:
                found[register] = _moved_value(value, turns.map(lambda n, step=step: n * step))  # type: ignore[misc]
        return found

    def turns(self, loop: low.Loop, heads: Environment) -> Pieces | None:
        """How many turns a loop makes, if its condition compares a linear counter."""
        comparison = _last_value(loop.test, loop.condition)
        if not isinstance(comparison, low.Binary) or comparison.operator not in ("<", "<=", ">", ">=", "!="):
            return None
        with self.dry():
            self.environment.update(heads)
            left, right = self.evaluate(comparison.left), self.evaluate(comparison.right)
        if not isinstance(left, Pieces) or not isinstance(right, Pieces) or not left.single or not right.single:
            return None
        # The loop goes on while rest - pace * turn > 0.
        gap = right.single - left.single if comparison.operator in ("<", "<=", "!=") else left.single - right.single
        if comparison.operator in ("<=", ">="):
            gap = gap + ONE
        pace = gap.coefficient(self.loop_name(loop))
        by = None if pace is None else pace.constant
        if by is None or by >= 0:
            return None
        rest = gap - name(self.loop_name(loop)).scaled(by)
        text = rest.isl()
        if text is None:
            return None
        turns = quotient(rest + number(-by - 1), number(-by), self.bounds)
        lowest, _ = rest.bounds(self.bounds)
        if lowest is not None and lowest >= 0:
            return plain(turns)
        return chosen(f"{text} > 0", plain(turns), plain(ZERO))

    def turn_by_turn(self, loop: low.Loop, active: _Active) -> tuple[_Active | None] | None:
        """Goes through a loop whose condition is the same for all, until it ends; None if that can't be done."""
        if not self.is_dry:
            with self.dry():
                if self.turn_by_turn(loop, active) is None:
                    return None
        after: _Active | None = active
        for turn in range(MOST_TURNS + 1):
            if turn or not loop.is_do:
                after = self.run(loop.test, after)
                condition = self.environment.get(loop.condition)
                if after is None or not isinstance(condition, Truth):
                    break
                is_over = self.is_never(condition.text)
                if not is_over and not self.is_never(f"not ({condition.text})"):
                    break
                nobody = replace(after, points=isl.Set.empty(after.points.space))
                self.affine_branch("loop", loop, after, nobody if is_over else after)
                if is_over:
                    return (self.joined(after, self.exits.pop(loop.label, _Exit()), active),)
            after = self.run(loop.body, after)
            if after is None:
                return (self.joined(after, self.exits.pop(loop.label, _Exit()), active),)
            after = self.run(loop.step, after)
        return None

    def statistic_of(self, loop: low.Loop) -> str | None:
        return next(
            (key for key in (loop.name.split("__")[0], f"loop_{loop.place.line}") if key in self.statistics), None
        )

    def by_statistics(self, loop: low.Loop, active: _Active, assigned: list[low.Register]) -> _Active:
        key = self.statistic_of(loop)
        if key is None and loop.number in self.observed:
            turns = self.observed[loop.number]
        elif key is None:
            if not self.is_dry:
                raise CountingError(
                    f"the loop at {loop.place} of kernel {self.kernel.name!r} depends on data, or is not affine; give "
                    f"its expected turns as statistics={{{loop.name.split('__')[0]!r}: …}}, or emulate the kernel"
                )
            turns = Fraction(1)
        else:
            self.used_statistics.add(key)
            turns = statistic(self.statistics[key], key)
        tests = turns if loop.is_do else turns + 1
        self.loops.append(loop)
        met = replace(active, factor=active.factor * tests)
        self.run(loop.test, met)
        self.branch_of_data("loop", loop, met, max(tests - 1, Fraction(0)) / tests if tests else None)
        after = self.run(loop.body, replace(active, factor=active.factor * turns))
        if after is not None:
            self.run(loop.step, after)
        self.loops.pop()
        self.exits.pop(loop.label, None)
        for register in assigned:
            self.environment[register] = None
        return active

    # --- sets

    def set_of(self, text: str, active: _Active) -> Any:
        """The points of a space at which a condition holds."""
        sizes = ", ".join(sorted(self.domains.sizes))
        found = isl.Set(f"[{sizes}] -> {{ [{', '.join(active.dimensions)}] : {text} }}")
        return found.align_params(self.domains.space)

    def decided(self, condition: Value, active: _Active) -> Any:
        """Where a condition holds; None if that depends on data, or on a loop whose turns are a statistic."""
        if not isinstance(condition, Truth):
            return None
        try:
            return self.set_of(condition.text, active)
        except isl.Error:  # a name that is no coordinate here
            return None

    def is_never(self, text: str) -> bool:
        """Whether a condition holds nowhere where control is."""
        if self.now is None:
            return False
        try:
            return bool((self.now.points & self.set_of(text, self.now)).is_empty())
        except isl.Error:  # a name that is not known here
            return self.is_dry


def _head(value: Value, step: Polynomial | None, counter: Polynomial) -> Value:
    """A register at the start of a turn."""
    if step is None:
        return None
    return _moved_value(value, plain(counter * step))


def _moved_value(value: Value, by: Pieces) -> Value:
    if isinstance(value, PointsTo):
        offset = _sum(value.offset, by)
        return None if offset is None else PointsTo(value.variable, offset)
    return _sum(value, by) if isinstance(value, Pieces) else None


def _sum(left: Pieces, right: Pieces) -> Pieces | None:
    return combined(left, right, lambda a, b: a + b)


def _assigned(loop: low.Loop) -> list[low.Register]:
    found: dict[low.Register, None] = {}
    for block in low.straights((*loop.test, *loop.body, *loop.step)):
        for statement in block.statements:
            if isinstance(statement, low.Assign):
                found[statement.register] = None
            elif isinstance(statement, low.Atomic) and statement.result is not None:
                found[statement.result] = None
    return list(found)


def _last_value(body: tuple[low.Statement, ...], register: low.Register) -> low.Expression | None:
    found = None
    for statement in body:
        if not isinstance(statement, low.Straight):
            return None
        for inner in statement.statements:
            if isinstance(inner, low.Assign) and inner.register is register:
                found = inner.value
    return found


def _is_left(body: tuple[low.Statement, ...], wanted: Callable[[str], bool]) -> bool:
    """Whether anything in there leaves for a label like this."""
    for statement in body:
        match statement:
            case low.Leave():
                if wanted(statement.label):
                    return True
            case low.If():
                if _is_left((*statement.then, *statement.otherwise), wanted):
                    return True
            case low.Loop():
                if _is_left((*statement.test, *statement.body, *statement.step), wanted):
                    return True
            case low.Scope():
                if _is_left(statement.body, wanted):
                    return True
    return False


def _is_inside(loop: low.Loop, label: str) -> bool:
    """Whether a label belongs to something within a loop's body."""
    return label in _labels((*loop.test, *loop.body, *loop.step))


def _labels(body: tuple[low.Statement, ...]) -> set[str]:
    found: set[str] = set()
    for statement in body:
        match statement:
            case low.If():
                found |= _labels((*statement.then, *statement.otherwise))
            case low.Loop():
                found |= {statement.label} | _labels((*statement.test, *statement.body, *statement.step))
            case low.Scope():
                found |= {statement.label} | _labels(statement.body)
    return found


def _with_counter(points: Any, own: str) -> Any:
    """The same points for every turn from 0 on."""
    points = points.add_dims(isl.dim_type.set, 1)
    last = points.dim(isl.dim_type.set) - 1
    points = points.set_dim_name(isl.dim_type.set, last, own)
    return points.lower_bound_val(isl.dim_type.set, last, isl.Val.int_from_si(isl.DEFAULT_CONTEXT, 0))


def _moved(points: Any, own: str, by: int) -> Any:
    """Points with the last coordinate moved."""
    return points.apply(_on_last(points, f"__to = {own} + {by}"))


def _later(points: Any, own: str) -> Any:
    """All points with a larger last coordinate than one of these."""
    return points.apply(_on_last(points, f"__to > {own}"))


def _on_last(points: Any, relation: str) -> Any:
    names = [points.get_dim_name(isl.dim_type.set, axis) for axis in range(points.dim(isl.dim_type.set))]
    sizes = ", ".join(points.get_var_names(isl.dim_type.param))
    moved = [*names[:-1], "__to"]
    found = isl.Map(f"[{sizes}] -> {{ [{', '.join(names)}] -> [{', '.join(moved)}] : {relation} }}")
    for axis, dimension in enumerate(names):
        found = found.set_dim_name(isl.dim_type.out, axis, dimension)
    return found


def _constant_maximum(points: Any, own: str) -> int | None:
    last = points.dim(isl.dim_type.set) - 1
    try:
        value = points.dim_max_val(last)
    except isl.Error:
        return None
    return int(str(value)) if value.is_int() else None
