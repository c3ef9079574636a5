"""Iterations of long loops are left out here: what they would count is known from iterations before.

A `Watch` looks at each iteration of a loop that has a plan. When the counts of several iterations in a row repeat, with
a period of one or a few, the loop's registers jump to nearly its end, and the counts of those left out are added.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from perfmodel.basics.distinct import distinct
from perfmodel.opencl_c.emulation.batch_context import Context, Traced
from perfmodel.opencl_c.emulation.lanes import Mask, Values
from perfmodel.opencl_c.emulation.loop_plans import Plan
from perfmodel.opencl_c.emulation.recording import Recorder, Totals
from perfmodel.opencl_c.syntax import Place

_SHORTEST = 48
"""A loop is worth watching if so many iterations are left."""
_ALIKE = 8
"""So many iterations must repeat earlier ones."""
_LONGEST_PERIOD = 64
_PATIENCE = 144
"""A loop that doesn't repeat itself is left alone after so many iterations."""
_MOST_ADDRESSES = 1 << 20
"""No more addresses of one access are marked in footprints at a time."""
_WORTH = 32
"""Looking at an iteration costs as much as running so many short ones."""
_FAILURES = 3
"""A loop that failed so often is never looked at again."""


@dataclass(frozen=True)
class Extrapolated:
    """Tells of a loop of which iterations were left out.

    Attributes:
        name: of its variable.
        run: iterations carried out, and `iterations` all of them, over all times that it was met.
        has_whole_footprint: footprints have what the iterations left out would touch; else they are a lower bound.
        is_exact: counts are those of all iterations; else they are estimates, see `thinning`.
    """

    place: Place
    name: str
    run: int
    iterations: int
    has_whole_footprint: bool
    is_exact: bool = True

    def __str__(self) -> str:
        counts = "of all of them" if self.is_exact else "estimates for all of them"
        return f"{self.name!r} at {self.place}: {self.run} of {self.iterations} were, and counts are {counts}"

    def plus(self, other: Extrapolated | None) -> Extrapolated:
        """Returns the same loop with the times that it was met elsewhere."""
        if other is None:
            return self
        is_whole = self.has_whole_footprint and other.has_whole_footprint
        run, iterations = self.run + other.run, self.iterations + other.iterations
        is_exact = self.is_exact and other.is_exact
        return replace(self, run=run, iterations=iterations, has_whole_footprint=is_whole, is_exact=is_exact)


class Extrapolation:
    """Holds the loops of one batch that are extrapolated."""

    def __init__(self, context: Context, recorder: Recorder) -> None:
        self.context, self.recorder = context, recorder
        self.context.traced = []
        self.failures: dict[int, int] = {}
        self.looks: dict[int, int] = {}
        self.done: dict[int, Extrapolated] = {}

    def watch(self, plan: Plan) -> Watch | None:
        return Watch(self, plan) if self.failures.get(plan.loop.number, 0) < _FAILURES else None

    def failed(self, plan: Plan) -> None:
        number = plan.loop.number
        self.failures[number] = self.failures.get(number, 0) + 1

    def succeeded(self, plan: Plan, run: int, iterations: int, is_whole: bool) -> None:
        loop = plan.loop
        self.looks[loop.number] = run
        found = Extrapolated(loop.place, loop.name, run, iterations, has_whole_footprint=is_whole)
        self.done[loop.number] = found.plus(self.done.get(loop.number))


class Watch:
    """A watch is one time that a loop is run."""

    def __init__(self, extrapolation: Extrapolation, plan: Plan) -> None:
        self.extrapolation, self.plan = extrapolation, plan
        self.iterations = 0
        self.mask: Mask | None = None
        self.values: list[tuple[Values, ...]] = []
        self.totals: Totals | None = None
        self.changes: list[Totals] = []
        self.texts: list[bytes] = []
        self.traces: list[list[Traced]] = []
        self.traced = 0

    def iteration(
        self, mask: Mask, bound: Values, values: tuple[Values, ...]
    ) -> tuple[Watch | None, tuple[Values, ...] | None]:
        """Returns whether to watch on after an iteration, and the registers behind the iterations left out, if any."""
        self.iterations += 1
        if self.mask is None:
            self.mask = mask
        self.values.append(values)
        if mask is not self.mask or values[0].ndim or bound.ndim:
            return None, None
        if self.iterations == 1:
            return self, None
        left = self._left(bound)
        if left is None or (self.iterations == 2 and left < self._least()):
            return None, None
        self._look()
        if len(self.changes) < _ALIKE:
            return self, None
        period = self._period()
        if period is None:
            if self.iterations < _PATIENCE:
                return self, None
            self.extrapolation.failed(self.plan)
            return None, None
        skipped = (left - 1) // period * period
        if skipped < period:
            return None, None
        return None, self._jump(period, skipped)

    def _least(self) -> int:
        """Returns from how many iterations on it is worth looking: more than the last time took looks."""
        return max(_SHORTEST, _WORTH * self.extrapolation.looks.get(self.plan.loop.number, 0))

    def _left(self, bound: Values) -> int | None:
        """Returns how many iterations are still to come."""
        now, last = int(self.values[-1][0]), int(self.values[-2][0])
        step, away = now - last, int(bound) - now
        if self.plan.operator in (">", ">="):
            step, away = -step, -away
        if self.plan.operator == "!=":
            return away // step if step and away % step == 0 and away // step >= 0 else None
        if step <= 0:
            return None
        return max(away // step + 1 if "=" in self.plan.operator else -(-away // step), 0)

    def _look(self) -> None:
        traced = self.extrapolation.context.traced
        assert traced is not None
        totals = self.extrapolation.recorder.totals().copy()
        if self.totals is None:
            for handler in self.extrapolation.recorder.handlers:
                handler.forget()
        else:
            self.changes.append(totals.minus(self.totals))
            self.texts.append(self.changes[-1].text)
            self.traces.append(traced[self.traced :])
        self.totals, self.traced = totals, len(traced)

    def _period(self) -> int | None:
        """Returns after how many iterations counts and changes of registers repeat."""
        for period in range(1, _LONGEST_PERIOD + 1):
            length = max(2 * period, period + _ALIKE)
            if length > len(self.changes):
                return None
            recent = self.texts[-length:]
            if recent[:-period] == recent[period:] and self._is_steady(period) and self._steps(period) is not None:
                return period
        return None

    def _is_steady(self, period: int) -> bool:
        if len(self.values) <= 2 * period:
            return False
        now, once, before = (self.values[-1 - number * period] for number in range(3))
        return all(np.array_equal(three - two, two - one) for three, two, one in zip(now, once, before, strict=True))

    def _jump(self, period: int, skipped: int) -> tuple[Values, ...]:
        times = skipped // period
        recorder = self.extrapolation.recorder
        total = recorder.totals()
        for change in self.changes[-period:]:
            total.add(change, times)
        is_whole = self._mark(period, times)
        self.extrapolation.succeeded(self.plan, self.iterations + 1, self.iterations + skipped + 1, is_whole)
        now, once = self.values[-1], self.values[-1 - period]
        return tuple(_moved(late, early, times) for late, early in zip(now, once, strict=True))

    def _steps(self, period: int) -> list[tuple[Traced, int]] | None:
        """Returns what the last iterations met first, and by how much that moved on since the iterations before.

        None unless it did so steadily, and by whole blocks of memory: only then transactions go on as they were.
        """
        recent = [entry for trace in self.traces[-period:] for entry in trace]
        before = [entry for trace in self.traces[-2 * period : -period] for entry in trace]
        if len(recent) != len(before):
            return None
        found = []
        for one, other in zip(before, recent, strict=True):
            if one.pattern is not other.pattern or len(one.addresses) != len(other.addresses):
                return None
            steps = other.addresses - one.addresses
            if (steps != steps[0]).any() or steps[0] & one.pattern.accessor.phases:
                return None
            found.append((other, int(steps[0])))
        return found

    def _mark(self, period: int, times: int) -> bool:
        """Marks footprints of the iterations left out, and returns whether the addresses are not too many."""
        steps = self._steps(period)
        assert steps is not None
        if times > _MOST_ADDRESSES:
            return False
        iterations = np.arange(1, times + 1)[:, np.newaxis]
        ahead: list[Traced] = []
        for entry, step in steps:
            if len(entry.addresses) * times > _MOST_ADDRESSES:
                return False
            ahead.append(Traced(entry.pattern, distinct(entry.addresses + step * iterations)))
        for entry in ahead:
            entry.pattern.accessor.mark_ahead(entry.pattern, entry.addresses)
        # A loop around this one sees all of this as what its iteration met.
        assert self.extrapolation.context.traced is not None
        self.extrapolation.context.traced += ahead
        return True


def _moved(late: Values, early: Values, times: int) -> Values:
    return late + (late - early) * np.int64(times).astype(late.dtype)  # which wraps around, as the iterations would


def all_loops(loops: Iterable[Extrapolated]) -> tuple[Extrapolated, ...]:
    """Returns each loop once, with the times that it was met in several batches."""
    found: dict[Place, Extrapolated] = {}
    for one in loops:
        found[one.place] = one.plus(found.get(one.place))
    return tuple(found.values())
