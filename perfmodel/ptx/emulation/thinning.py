"""Runs some iterations of long loops for all of them, where running all takes more work than a count may.

What is left of a loop is cut into parts; of each part the iteration in its middle is run, and stands for it. Where
lanes go in the others may differ, so that counts are estimates, and the parts tell how far they are off.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.distinct import distinct
from perfmodel.ptx.emulation.deciding import Plan
from perfmodel.ptx.emulation.keeping import keeping
from perfmodel.ptx.emulation.lanes import Mask
from perfmodel.ptx.emulation.recording import DECIDED, NOWHERE, PARTS, Addresses
from perfmodel.ptx.emulation.skipping import MOST_NOTED, NEVER, Iteration, Series, Skipper, turns_until

LEAST = 4
"""Fewer iterations are not cut into parts."""
MOST_LENGTHS = 4
"""So many lengths of a part are told apart, where lanes have different numbers of iterations left."""
MOST_IN_VAIN = 4
"""So many iterations are run of loops that might be skipped through exactly before they are cut into parts."""
MOST_COPIES = 16
"""So many of the iterations that are not run have places of their own for what inner loops do in them."""

Integers = NDArray[np.int64]


@dataclass(eq=False)
class Moving:
    """Holds how a loop's registers, the sides of its tests, and its accesses move from one iteration to the next."""

    registers: list[Any]
    tests: list[Integers]
    rows: dict[Addresses, list[Integers | None]]


@dataclass(eq=False)
class Part:
    """Some iterations of which one is run: how many each lane leaves out before it, and behind it."""

    number: int
    moving: Moving
    before: Integers
    behind: Integers


@dataclass(eq=False)
class Seen:
    """Says how many iterations of a loop were run until now, and how many were left out."""

    ran: float
    left_out: float = 0.0

    def share(self, before: float) -> float:
        """Returns how many of the iterations until the next one that is run were run, which has so many before it."""
        return self.ran / max(self.ran + self.left_out + before, 1.0)


class Thinner(Skipper):
    """Watches loops of a machine, and has some of their iterations run for the others.

    Attributes:
        parts: into which what is left of a loop is cut.
        is_hurried: whether loops that data may end before their counters do are cut into parts, too; lanes then leave
            with the iterations that are run, so that they stay for too long.
    """

    def __init__(self, watching: Skipper) -> None:
        super().__init__(watching.machine, watching.deciding)
        self.skipped = watching.skipped
        self._rough_plans: dict[int, Plan | None] = {}
        self._parts: dict[int, Part] = {}
        self._in_vain: dict[int, int] = {}
        self._seen: dict[int, Seen] = {}
        self._keeping = {id(self.machine.tallies[number]) for number in keeping(self.machine.code)}
        self._drawn = 0
        self.parts, self.is_hurried = PARTS, False
        for by_array in self.machine.accesses.addresses.values():
            for each in by_array.values():
                each.is_thinned = True

    def hurry(self) -> None:
        """Cuts loops into parts that data may end, from now on."""
        self.parts, self.is_hurried = PARTS, True
        for header in [header for header, plan in self._rough_plans.items() if plan is None]:
            del self._rough_plans[header]
            self._iterations.pop(header, None)

    def arrives(self, block: int, mask: Mask, parted: int) -> None:
        for header in [h for h in self._iterations if block not in self._loops[h].blocks]:
            del self._iterations[header]
            self._parts.pop(header, None)
            self._seen.pop(header, None)
        if block not in self._loops:
            return
        plan = self._rough_plan(block)
        if plan is None:
            skipped = self.skipped
            super().arrives(block, mask, parted)
            self._in_vain[block] = 0 if self.skipped > skipped else self._in_vain.get(block, 0) + 1
            return
        iterations = self._iterations.setdefault(block, [])
        if iterations:
            self._finish(iterations[-1], plan)
            part = self._parts.pop(block, None)
            if part is not None:
                behind = np.where(mask.active, part.behind, 0)
                self._count_others(block, part, iterations[-1], part.before + behind)
                self._begin(block, plan, part.moving, iterations[-1], mask, behind)
                iterations.clear()  # what comes is no next iteration of theirs
            elif len(iterations) >= 3 and np.array_equal(iterations[-1].mask.active, mask.active):
                moving = self._moving(*iterations)
                if moving is not None:
                    self._seen.setdefault(block, Seen(self._executions(block)))
                    self._begin(block, plan, moving, iterations[-1], mask, np.zeros_like(moving.tests[0]))
                    iterations.clear()
        del iterations[:-2]
        iterations.append(Iteration(mask, parted, []))

    def _rough_plan(self, block: int) -> Plan | None:
        """Returns how a loop is cut into parts; None for one that is skipped through as others are, if any."""
        if block not in self._rough_plans:
            self._rough_plans[block] = self.deciding.rough_plan(self._loops[block], self.is_hurried)
            self._plans.setdefault(block, self.deciding.plan(self._loops[block]))
        plan = self._rough_plans[block]
        if self._plans[block] is None or plan is None:
            return plan
        if self._in_vain.get(block, 0) < MOST_IN_VAIN:
            return None
        if self._in_vain[block] == MOST_IN_VAIN:  # what was noted of it until now is of another plan
            self._in_vain[block] += 1
            self._iterations.pop(block, None)
        return plan

    def note_row(self, noted: Addresses, mask: Mask, row: Integers | None) -> None:
        for iteration in self.notes():
            if row is None or len(iteration.rows) >= MOST_NOTED:
                iteration.is_known = False
            else:
                iteration.rows.append(Series(noted, mask, row))

    def _executions(self, block: int) -> float:
        """Returns how often the sub-groups that executed a block did so on average."""
        done = self.machine.tallies[block].by_subgroup()
        return float(done[done > 0].mean()) if np.any(done > 0) else 1.0

    def _moving(self, first: Iteration, before: Iteration, now: Iteration) -> Moving | None:
        """Returns how a loop moves from one iteration to the next; None where lanes have left it meanwhile."""
        known = first.registers and before.registers
        if not known or not all(np.array_equal(each.mask.active, now.mask.active) for each in (first, before)):
            return None
        tests = [self.apart(new) - self.apart(old) for old, new in zip(before.operands, now.operands, strict=True)]
        rows: dict[Addresses, list[Integers | None]] = {}
        former = _by_access(before.rows)
        for noted, own in _by_access(now.rows).items():
            if len(former.get(noted, ())) == len(own):
                rows[noted] = [_step(old, new) for old, new in zip(former[noted], own, strict=True)]
        steps = [_steady(*values) for values in zip(first.registers, before.registers, now.registers, strict=True)]
        return Moving(steps, tests, rows)

    def _begin(self, header: int, plan: Plan, moving: Moving, before: Iteration, mask: Mask, behind: Integers) -> None:
        """Leaves out the rest of a part, and the first half of the next one, if there is much left of the loop."""
        left = np.full(self.machine.lanes.total, NEVER, np.int64)
        for test, sides, step in zip(plan.tests, before.operands, moving.tests, strict=True):
            left = np.minimum(left, turns_until(test, self.apart(sides), step))
        left = np.where(mask.active & (left < NEVER), np.maximum(left - behind - 2, 0), 0)
        most = int(left.max(initial=0))
        if most < LEAST:
            self._move(plan, moving, mask, behind)
            return
        length = max(LEAST, -(-most // self.parts))
        first, all_ = np.minimum(left, length // 2), np.minimum(left, length)
        self._move(plan, moving, mask, behind + first)
        self._parts[header] = Part(self._drawn % PARTS, moving, first, all_ - first)
        self._drawn += 1
        self.skipped += length

    def _move(self, plan: Plan, moving: Moving, mask: Mask, counts: Integers) -> None:
        """Moves a loop's registers by as many iterations as each lane leaves out."""
        registers = self.machine.registers
        own = counts[mask.active]
        is_same = mask.count == self.machine.live.count and bool(np.all(own == own[:1]))
        for name, step in zip(plan.carried, moving.registers, strict=True):
            place, dtype = registers.numbers[name], step.dtype
            times = dtype.type(own[0]) if is_same else np.where(mask.active, counts, 0).astype(dtype)
            registers.values[place] = registers.values[place] + step * times

    def _count_others(self, header: int, part: Part, ran: Iteration, counts: Integers) -> None:
        """Counts the iteration that was run for the others of its part: of what is done where a number is among the
        best until then as often as it would be, had all iterations before been run."""
        seen = self._seen[header]
        share = seen.share(float(part.before[ran.mask.active].mean())) if ran.mask.count else 1.0
        around = [each[-1] for other, each in self._iterations.items() if other != header and each]
        for count, lanes in self._lengths(ran.mask, counts):
            masks: dict[int, Mask] = {}
            for tally, mask, times in ran.tallies:
                own = _part_of(mask, lanes, masks)
                is_decided = self.deciding.depends_on_data and mask.count < ran.mask.count
                all_times = round(times * count * (share if id(tally) in self._keeping else 1.0))
                tally.add(own, all_times, DECIDED if is_decided else part.number)
                for iteration in around:
                    iteration.tallies.append((tally, own, all_times))
            first = int(part.before.max() if lanes is None else part.before[lanes].max())
            left = {noted: list(steps) for noted, steps in part.moving.rows.items()}
            for series in ran.rows:
                mask = _part_of(series.mask, lanes, masks)
                moved = left[series.noted].pop(0) if left.get(series.noted) else None
                if moved is None:
                    series.noted.beyond += mask.count * count * series.count
                    continue
                row = np.where(mask.by_block > 0, series.row, NOWHERE)
                step = np.where(row == NOWHERE, 0, moved)
                others = list(_others(replace(series, mask=mask, row=row), step, first, count - first))
                for each in others:
                    assert each.step is not None
                    each.noted.add_series(each.mask, each.row, each.step, each.count)
                for iteration in around:
                    if series.step is None and len(iteration.rows) < MOST_NOTED:
                        iteration.rows += others
        mean = float(counts[ran.mask.active].mean()) if ran.mask.count else 0.0
        seen.ran, seen.left_out = seen.ran + 1, seen.left_out + mean
        for record, more in ran.branches:
            found = np.rint(more * mean).astype(np.int64)
            record += found
            for iteration in around:
                iteration.branches.append((record, found))

    @staticmethod
    def _lengths(mask: Mask, counts: Integers) -> Iterator[tuple[int, NDArray[np.bool_] | None]]:
        """Yields numbers of iterations, and the lanes that leave out about so many; None for all."""
        own = distinct(counts[mask.active])
        if len(own) == 1:
            if own[0]:
                yield int(own[0]), None
            return
        for some in np.array_split(own, min(MOST_LENGTHS, max(len(own), 1))):
            lanes = mask.active & (counts >= some[:1]) & (counts <= some[-1:])
            if len(some) and (mean := round(float(counts[lanes].mean()))):
                yield mean, lanes


def _by_access(rows: list[Series]) -> dict[Addresses, list[Series]]:
    found: dict[Addresses, list[Series]] = {}
    for series in rows:
        found.setdefault(series.noted, []).append(series)
    return found


def _step(before: Series, now: Series) -> Integers | None:
    """Returns how far an access is from where it was in the iteration before; None where other blocks take part."""
    is_same = np.array_equal(before.row == NOWHERE, now.row == NOWHERE)
    return now.row - before.row if is_same else None


def _steady(first: NDArray[Any], before: NDArray[Any], now: NDArray[Any]) -> NDArray[Any]:
    """Returns how far a register moves with each iteration; nowhere where it moved otherwise the last time, as do those
    that change places or that data decide."""
    if now.dtype == np.bool_:
        return np.zeros_like(now)
    step: NDArray[Any] = now - before
    steady: NDArray[Any] = np.where(step == before - first, step, np.zeros_like(step))
    return steady


def _part_of(mask: Mask, lanes: NDArray[np.bool_] | None, known: dict[int, Mask]) -> Mask:
    if lanes is None:
        return mask
    if id(mask) not in known:
        known[id(mask)] = mask.where(lanes)
    return known[id(mask)]


def _others(ran: Series, step: Integers, before: int, behind: int) -> Iterator[Series]:
    """Yields where an access goes in the iterations before and behind the one that was run."""
    if ran.step is None:
        for sign, count in ((-1, before), (1, behind)):
            if count > 0:
                yield replace(ran, step=sign * step, count=count)
        return
    away = np.arange(-before, behind + 1)
    away = away[away != 0]
    some = away[np.linspace(0, len(away) - 1, min(len(away), MOST_COPIES)).astype(int)]
    for times in some.tolist():
        yield replace(ran, row=ran.row + times * step)
    ran.noted.beyond += ran.mask.count * ran.count * (len(away) - len(some))
