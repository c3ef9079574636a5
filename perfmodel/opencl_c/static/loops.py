"""Counts the loops of a lowered kernel: how many iterations they make, how registers change from one to the next, and
what they hold behind the loop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import islpy as isl

from perfmodel.basics.errors import DecidedByDataError
from perfmodel.counting.domains import projected_on, statistic
from perfmodel.counting.frequency import ALWAYS, Frequency
from perfmodel.counting.symbolic import (
    ONE,
    ZERO,
    Pieces,
    Polynomial,
    chosen,
    combined,
    coordinate,
    name,
    number,
    own_coordinate,
    plain,
    quotient,
)
from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import walks
from perfmodel.opencl_c.origins import Origins
from perfmodel.opencl_c.static.control_flow import Active, Exit, Walk
from perfmodel.opencl_c.static.iteration import Iteration
from perfmodel.opencl_c.static.iteration_sets import constant_maximum, later, moved, with_counter
from perfmodel.opencl_c.static.liveness import live_before
from perfmodel.opencl_c.static.values import Environment, PointsTo, Truth, Value

MOST_ITERATIONS = 512
"""No loop whose counter is not linear (``s /= 2``) has more iterations, gone through one by one."""
MOST_TURNS = 32
"""Other loops have no more, where flags and the like, which branches follow from, are followed one by one; nor have
loops of which an emulation has shown how often they go on."""


class Loops(Walk):
    """Walks through loops."""

    def loop_name(self, loop: low.Loop) -> str:
        return coordinate(loop.name)

    def loop(self, loop: low.Loop, active: Active) -> Active | None:
        self.path.append(None)
        after = self.looped(loop, active)
        self.path.pop()
        return after

    def looped(self, loop: low.Loop, active: Active) -> Active | None:
        assigned = walks.registers_set((loop,))
        entry = {register: self.environment.get(register) for register in assigned}
        steps = self.steps(loop, active, entry)
        own = self.loop_name(loop)
        counter = name(own)
        heads = {register: _head(value, steps.get(register), counter) for register, value in entry.items()}
        inside = active.with_counter(own)
        self.environment.update(heads)
        self.bounds[own] = (0, None)
        condition = self.condition(loop, inside)
        if condition is None or self.statistic_of(loop) is not None:
            unrolled = None
            if self.statistic_of(loop) is None and not (self.is_sampled and loop.number in self.observed):
                self.environment.update(entry)
                unrolled = self.one_by_one(loop, active)
            if unrolled is not None:
                return unrolled[0]
            self.environment.update(heads)
            return self.by_statistics(loop, active, assigned)
        domain = self.without_broken(loop, self.domain(loop, inside, condition), heads)
        if domain is None:
            return self.by_statistics(loop, active, assigned)
        most = constant_maximum(domain.points, own)
        if most is not None and most <= MOST_TURNS and self.decides_by_what_it_carries(loop, entry, steps):
            self.environment.update(entry)
            unrolled = self.one_by_one(loop, active)
            if unrolled is not None:
                return unrolled[0]
            self.environment.update(heads)
        self.bounds[own] = (0, most)
        # Who only asks for values needs no iteration of a loop that is left at its end alone: `exit_values` has them.
        if not self.is_dry or _leaves(loop.body):
            self.count_loop(loop, active, domain, heads, is_loop=most != 0)
        exit_values = self.exit_values(loop, entry, steps, heads)
        for register in assigned:
            self.environment[register] = exit_values.get(register)
        return self.after_loop(loop, active)

    def decides_by_what_it_carries(
        self, loop: low.Loop, entry: Environment, steps: Mapping[low.Register, Polynomial]
    ) -> bool:
        """Returns whether branches follow from a variable that is known before a loop, and changes irregularly in it:
        a flag, a maximum, a number that is halved."""
        if self.observed or self.statistics:  # which tell of these branches
            return False
        carried = {register for register, value in entry.items() if value is not None and register not in steps}
        kept = frozenset((carried & self.behind_branches) - {loop.condition})
        return bool(kept) and self._is_needed_in(loop, kept)

    def _is_needed_in(self, loop: low.Loop, carried: frozenset[low.Register]) -> bool:
        """Returns whether an iteration needs the values of variables; looked up for loops that are met again."""
        key = loop, carried
        if key not in self.needed:
            live = live_before(self.kernel, (*loop.test, *loop.body, *loop.step), carried)
            self.needed[key] = bool(carried & live)
        return self.needed[key]

    @cached_property
    def needed(self) -> dict[tuple[low.Loop, frozenset[low.Register]], bool]:
        return {}

    @cached_property
    def behind_branches(self) -> frozenset[low.Register]:
        """Returns the registers that the conditions of branches and loops follow from."""
        branches = list(walks.branches(self.kernel.body))
        return Origins(self.kernel.body).registers_behind(branch.condition for branch in branches)

    def steps(self, loop: low.Loop, active: Active, entry: Environment) -> dict[low.Register, Polynomial]:
        """Returns by how much registers change in every iteration; those that change irregularly are left out."""
        found: dict[low.Register, Polynomial] = {}
        placeholders: dict[low.Register, Polynomial] = {}
        active = replace(active, issued=None)  # nothing is counted here
        with self.dry():
            for register, value in entry.items():
                if not isinstance(value, Pieces | PointsTo):
                    self.environment[register] = None
                    continue
                unknown = own_coordinate(f"before{len(active.dimensions)}")
                active = active.with_counter(unknown)
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

    def condition(self, loop: low.Loop, inside: Active) -> str | None:
        """Returns the loop's condition at the head of an iteration."""
        with self.dry():
            self.run(loop.test, inside)
            value = self.environment.get(loop.condition)
        return value.text if isinstance(value, Truth) and self.decided(value, inside) is not None else None

    def domain(self, loop: low.Loop, inside: Active, condition: str) -> Active:
        """Returns the iterations of a loop: up to the first at which its condition does not hold."""
        holds = self.set_of(condition, inside)
        own = self.loop_name(loop)
        first = self.set_of(f"{own} = 0", inside)
        if loop.is_do:
            holds = holds | first
        points = inside.points & holds
        begun = points & first.complement() if loop.is_do else points
        # Most conditions hold up to some iteration and never again.
        before = moved(begun, own, -1, self.domains) & self.set_of(f"{own} >= 0", inside)
        if not (before & inside.points).is_subset(points):
            stopped = inside.points & holds.complement()
            points = points - later(stopped, own, self.domains)
        active = replace(inside, points=points.coalesce(), issued=None)
        if self.properties.uniformity.is_masked(loop):
            return active.masked_by(active)
        if inside.issued is None or _leaves(loop.body):
            return active
        return replace(active, issued=self.domain(loop, inside.issued, condition))

    def without_broken(self, loop: low.Loop, domain: Active, heads: Environment) -> Active | None:
        """Returns the iterations up to a `break`; None if data decide on it, and the iterations have been observed."""
        if not _leaves(loop.body):
            return domain
        with self.dry():
            self.environment.update(heads)
            self.run(loop.test, domain)
            self.run(loop.body, domain)
            outside = walks.labels_left(loop.body)
            left = [part for label, found in self.exits.items() if label in outside for part in found.parts]
            if any(part.factor != domain.factor for part in left):
                if loop.number in self.observed:
                    return None
                raise DecidedByDataError(
                    f"the loop at {loop.place} of kernel {self.kernel.name!r} ends when data say so; give its expected "
                    f"iterations as statistics={{{loop.variable!r}: …}}, or emulate the kernel"
                )
        own = self.loop_name(loop)
        points = domain.points
        for part in left:
            stopped = projected_on(part.points, domain.dimensions)
            points = points - later(stopped, own, self.domains)
        return replace(domain, points=points.coalesce())

    def count_loop(self, loop: low.Loop, active: Active, domain: Active, heads: Environment, is_loop: bool) -> None:
        """Counts a loop's parts, each where it is executed; one of a single iteration does not repeat its body."""
        own = self.loop_name(loop)
        everywhere = with_counter(active.points, own)
        first = self.set_of(f"{own} = 0", replace(domain, points=everywhere)) & everywhere
        if is_loop:
            self.loops.append(loop)
        self.environment.update(heads)
        turned = self.returned(loop, domain, heads) if _leaves(loop.body) else domain.points
        again = moved(turned, own, 1, self.domains)
        tested = again if loop.is_do else again | first
        met = replace(domain, points=tested.coalesce())
        self.run(loop.test, met)
        self.affine_branch("loop", loop, met, met.within(domain.points))
        after = self.run(loop.body, domain)
        if after is not None and loop.step:
            self.run(loop.step, after)
        if is_loop:
            self.loops.pop()

    def returned(self, loop: low.Loop, domain: Active, heads: Environment) -> Any:
        """Returns the iterations after which the loop is tested again."""
        with self.dry():
            self.environment.update(heads)
            self.run(loop.test, domain)
            after = self.run(loop.body, domain)
        return isl.Set.empty(domain.points.space) if after is None else after.points

    def after_loop(self, loop: low.Loop, active: Active) -> Active | None:
        """Returns who comes out of a loop: all who came in, but those that left for elsewhere."""
        self.exits.pop(loop.label, None)
        points = active.points
        for label, found in self.exits.items():
            if label in walks.labels_left(loop.body):
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
    ) -> Environment:
        """Returns what registers are after a loop that ends by one comparison."""
        if walks.labels_left(loop.body) or loop.is_do:
            return {register: value for register, value in entry.items() if steps.get(register) == ZERO}
        iterations = self.iterations(loop, heads)
        found: Environment = {}
        for register, value in entry.items():
            step = steps.get(register)
            if step is None:
                continue
            if step == ZERO:
                found[register] = value
            elif iterations is not None:
                found[register] = _moved_value(value, iterations.map(lambda n, step=step: n * step))  # type: ignore[misc]
        return found

    def iterations(self, loop: low.Loop, heads: Environment) -> Pieces | None:
        """Returns how many iterations a loop makes, if its condition compares a linear counter."""
        comparison = _last_value(loop.test, loop.condition)
        if not isinstance(comparison, low.Binary) or comparison.operator not in ("<", "<=", ">", ">=", "!="):
            return None
        with self.dry():
            self.environment.update(heads)
            left, right = self.evaluate(comparison.left), self.evaluate(comparison.right)
        if not isinstance(left, Pieces) or not isinstance(right, Pieces) or not left.single or not right.single:
            return None
        # The loop goes on while rest - pace * iteration > 0.
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
        iterations = quotient(rest + number(-by - 1), number(-by), self.bounds)
        lowest, _ = rest.bounds(self.bounds)
        if lowest is not None and lowest >= 0:
            return plain(iterations)
        return chosen(f"{text} > 0", plain(iterations), plain(ZERO))

    def one_by_one(self, loop: low.Loop, active: Active) -> tuple[Active | None] | None:
        """Goes through a loop whose condition is the same for all, until it ends; None if that can't be done."""
        if not self.is_dry:
            with self.dry():
                if self.one_by_one(loop, active) is None:
                    return None
        around = self.current
        after: Active | None = active
        most = MOST_TURNS if loop.number in self.observed else MOST_ITERATIONS
        for iteration in range(most + 1):
            self.current = (*around, Iteration(loop, iteration))
            found = self.one_iteration(loop, after, iteration > 0 or not loop.is_do)
            self.current = around
            if found is None:
                return None
            after, is_over = found
            if after is None or is_over:
                return (self.joined(after, self.exits.pop(loop.label, Exit()), active),)
        return None

    def one_iteration(self, loop: low.Loop, after: Active | None, is_tested: bool) -> tuple[Active | None, bool] | None:
        """Goes through an iteration, and tells whether the loop was over before it; None if that is not known."""
        if is_tested:
            after = self.run(loop.test, after)
            condition = self.environment.get(loop.condition)
            if after is None or not isinstance(condition, Truth):
                return None
            is_over = self.is_never(condition.text)
            if not is_over and not self.is_never(f"not ({condition.text})"):
                return None
            nobody = replace(after, points=isl.Set.empty(after.points.space))
            self.affine_branch("loop", loop, after, nobody if is_over else after)
            if is_over:
                return after, True
        return self.run(loop.step, self.run(loop.body, after)), False

    def statistic_of(self, loop: low.Loop) -> str | None:
        return next((key for key in (loop.variable, f"loop_{loop.place.line}") if key in self.statistics), None)

    def by_statistics(self, loop: low.Loop, active: Active, assigned: Iterable[low.Register]) -> Active:
        key = self.statistic_of(loop)
        if key is None and loop.number in self.observed:
            iterations = self.observed[loop.number].taken
        elif key is None:
            if not self.is_dry:
                self.ask_for_arguments("loop", loop)
                raise DecidedByDataError(
                    f"the loop at {loop.place} of kernel {self.kernel.name!r} depends on data, or is not affine; give "
                    f"its expected iterations as statistics={{{loop.variable!r}: …}}, or emulate the kernel"
                )
            iterations = ALWAYS
        else:
            self.used_statistics.add(key)
            iterations = Frequency.same(statistic(self.statistics[key], key))
        tests = iterations if loop.is_do else iterations + ALWAYS
        self.loops.append(loop)
        entered = replace(active, issued=None) if self.properties.uniformity.is_masked(loop) else active
        met = entered.often(tests)
        self.run(loop.test, met)
        self.branch_of_data("loop", loop, met, _repeated(tests))
        inside = entered.often(iterations)
        if self.properties.uniformity.is_masked(loop):
            inside = inside.masked_by(inside)
        after = self.run(loop.body, inside)
        if after is not None:
            self.run(loop.step, after)
        self.loops.pop()
        self.exits.pop(loop.label, None)
        for register in assigned:
            self.environment[register] = None
        return active


def _repeated(tests: Frequency) -> Frequency:
    """Returns how often a loop's condition holds, for each time that it is tested."""
    numbers = (*tests.each, tests.most)
    return Frequency(*(max(number - 1, Fraction(0)) / number if number else Fraction(0) for number in numbers))


def _leaves(body: Iterable[low.Statement]) -> bool:
    """Returns whether statements leave any loop or scope, be it one of their own."""
    return any(isinstance(statement, low.Leave) for statement in walks.statements(body))


def _last_value(body: Iterable[low.Statement], register: low.Register) -> low.Expression | None:
    """Returns the last value that statements without branches give a register."""
    found = None
    for block in body:
        if not isinstance(block, low.Straight):
            return None
        for statement in block.statements:
            if isinstance(statement, low.Assign) and statement.register is register:
                found = statement.value
    return found


def _head(value: Value, step: Polynomial | None, counter: Polynomial) -> Value:
    """Returns what a register is at the start of an iteration."""
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
