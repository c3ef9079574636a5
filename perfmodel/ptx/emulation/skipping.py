"""Skips iterations of long loops: what they do is known from the iterations before, where data decide on nothing.

A loop is skipped through where all lanes go the same way, and all that decides where they go, and what they access,
moves by the same step from iteration to iteration. Results are unknown then, but not what was executed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.ptx.emulation.deciding import TESTS, Deciding, Plan
from perfmodel.ptx.emulation.lanes import Mask
from perfmodel.ptx.emulation.machine import Machine
from perfmodel.ptx.emulation.recording import Addresses, Tally
from perfmodel.ptx.syntax import Instruction
from perfmodel.ptx.types import TYPES

LEAST = 8
"""Fewer iterations are not skipped."""
NEVER = 2**40
"""Stands for the iterations of a test that has one outcome for ever, as that of a loop that others end."""
MOST_SERIES = 2**16
"""So many times iterations of inner loops may be noted as they were skipped through."""
MOST_NOTED = 4096
"""Iterations of loops that do more accesses than this are run."""


@dataclass(frozen=True, eq=False)
class Series:
    """Executions of an access: one at a row of addresses, or, with a step, so many behind it, each a step further."""

    noted: Addresses
    mask: Mask
    row: NDArray[np.int64]
    step: NDArray[np.int64] | None = None
    count: int = 1

    def is_like(self, other: Series) -> bool:
        """Returns whether the same access was executed as often, with the same step."""
        same = self.noted == other.noted and self.count == other.count
        return same and np.array_equal(np.asarray(self.step), np.asarray(other.step))

    def add_behind(self, before: Series, count: int) -> None:
        """Notes that it was executed so many times more, each as far from the one before as this one is."""
        apart = self.row - before.row
        if self.step is None:
            self.noted.add_series(self.mask, self.row, apart, count)
            return
        for iteration in range(1, count + 1):
            self.noted.add_series(self.mask, self.row + iteration * apart, self.step, self.count)


@dataclass(eq=False)
class Iteration:
    """Holds what one iteration of a loop did, and where its registers were at its end."""

    mask: Mask
    parted: int
    registers: list[Any]
    operands: list[tuple[Any, Any]] = field(default_factory=list)
    tallies: list[tuple[Tally, Mask, int]] = field(default_factory=list)
    rows: list[Series] = field(default_factory=list)
    branches: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = field(default_factory=list)
    is_known: bool = True


class Skipper:
    """Watches loops of a machine, and skips iterations where their plans allow it.

    Attributes:
        skipped: iterations that were not run.
    """

    def __init__(self, machine: Machine, deciding: Deciding) -> None:
        self.machine, self.deciding = machine, deciding
        self.skipped = 0
        self._plans: dict[int, Plan | None] = {}
        self._iterations: dict[int, list[Iteration]] = {}
        self._loops = {loop.header: loop for loop in machine.code.flow.loops}

    def arrives(self, block: int, mask: Mask, parted: int) -> None:
        """Notes that lanes come to a block, after so many partings; here iterations may be skipped."""
        for header in [h for h in self._iterations if block not in self._loops[h].blocks]:
            del self._iterations[header]
        if block not in self._loops:
            return
        if block not in self._plans:
            self._plans[block] = self.deciding.plan(self._loops[block])
        plan = self._plans[block]
        if plan is None:
            return
        iterations = self._iterations.setdefault(block, [])
        if iterations:
            self._finish(iterations[-1], plan)
            goes_on = iterations[-1].is_known and iterations[-1].mask is mask and iterations[-1].parted == parted
            if not goes_on or (len(iterations) >= 2 and self._skip(block, plan, iterations[-2], iterations[-1])):
                iterations.clear()
        del iterations[:-1]
        iterations.append(Iteration(mask, parted, []))

    def _finish(self, iteration: Iteration, plan: Plan) -> None:
        values, numbers = self.machine.registers.values, self.machine.registers.numbers
        iteration.registers = [values[numbers[name]] for name in plan.carried]
        iteration.operands += [self.sides(test) for test in plan.tests]

    def sides(self, test: Instruction) -> tuple[Any, Any]:
        """Returns what a test compares: a number, or one for each lane."""
        type_ = test.types[-1]
        whole = TYPES[f"{'u' if type_.kind != 's' else 's'}{type_.bits}"]
        one, other = (self.machine.registers.reader(each, whole, test)() for each in test.operands[1:3])
        return one, other

    def apart(self, sides: tuple[Any, Any]) -> NDArray[np.int64]:
        """Returns how far the sides of a test are apart for each lane."""
        total = self.machine.lanes.total
        one, other = (np.broadcast_to(side, (total,)).astype(np.int64) for side in sides)
        return np.asarray(one - other)

    def notes(self) -> Iterator[Iteration]:
        """Iterates over the iterations that are going on."""
        for iterations in self._iterations.values():
            if iterations:
                yield iterations[-1]

    def note_tally(self, tally: Tally, mask: Mask) -> None:
        for iteration in self.notes():
            iteration.tallies.append((tally, mask, 1))

    def note_row(self, noted: Addresses, mask: Mask, row: NDArray[np.int64] | None) -> None:
        for iteration in self.notes():
            if row is None or len(iteration.rows) >= MOST_NOTED:
                iteration.is_known = False
            else:
                iteration.rows.append(Series(noted, mask, row))

    def note_branch(self, record: NDArray[np.int64], more: NDArray[np.int64]) -> None:
        for iteration in self.notes():
            iteration.branches.append((record, more))

    def _skip(self, header: int, plan: Plan, before: Iteration, now: Iteration) -> bool:
        """Skips iterations, as many as all tests have the same outcome in; returns whether there were any."""
        if len(before.rows) != len(now.rows) or not all(map(Series.is_like, now.rows, before.rows)):
            return False
        if not before.is_known or not before.registers or len(before.tallies) != len(now.tallies):
            return False
        both = zip(plan.tests, before.operands, now.operands, strict=True)
        count = min((self._until(now.mask, *each) for each in both), default=0)
        count -= 2
        if not LEAST <= count < NEVER - 2:
            return False
        if count * sum(each.step is not None for each in now.rows) > MOST_SERIES:
            return False
        registers = self.machine.registers
        for name, old, new in zip(plan.carried, before.registers, now.registers, strict=True):
            place = registers.numbers[name]
            step = new - old
            registers.values[place] = new + step * step.dtype.type(count)
        for tally, mask, times in now.tallies:
            tally.add(mask, count * times)
        for series, last in zip(now.rows, before.rows, strict=True):
            series.add_behind(last, count)
        for record, more in now.branches:
            record += more * count
        for around, iterations in self._iterations.items():
            if around != header and iterations:
                self._note_skipped(iterations[-1], before, now, count)
        self.skipped += count
        return True

    def _note_skipped(self, iteration: Iteration, before: Iteration, now: Iteration, count: int) -> None:
        """Notes iterations that were skipped in an iteration of a loop around theirs."""
        iteration.tallies += [(tally, mask, count * times) for tally, mask, times in now.tallies]
        iteration.branches += [(record, more * count) for record, more in now.branches]
        if any(series.step is not None for series in now.rows) or len(iteration.rows) + len(now.rows) > MOST_NOTED:
            iteration.is_known = False  # as steps of steps would be
            return
        for series, last in zip(now.rows, before.rows, strict=True):
            step = series.row - last.row
            iteration.rows.append(replace(series, step=step, count=count))

    def _until(self, mask: Mask, test: Instruction, before: tuple[Any, Any], now: tuple[Any, Any]) -> int:
        """Returns after how many iterations a test first has another outcome for some lane."""
        total = self.machine.lanes.total
        old, new = (
            np.broadcast_to(pair[0], (total,)).astype(np.int64) - np.broadcast_to(pair[1], (total,)).astype(np.int64)
            for pair in (before, now)
        )
        return int(turns_until(test, new[mask.active], (new - old)[mask.active]).min(initial=NEVER))


def turns_until(instruction: Instruction, apart: NDArray[np.int64], step: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns after how many steps a comparison of two numbers, so far apart, has another outcome; many for never."""
    test = next(modifier for modifier in instruction.modifiers if modifier in TESTS)
    never = np.full(apart.shape, NEVER, np.int64)
    size = np.maximum(np.abs(step), 1)
    match test:
        case "eq" | "ne":
            meets = (step != 0) & (apart != 0) & (apart % size == 0) & ((apart > 0) != (step > 0))
            found = np.where(meets, np.abs(apart) // size, never)
            return np.where((apart == 0) & (step != 0), 1, found)
        case "lt" | "lo" | "ge" | "hs":  # changes between -1 and 0
            up, down = -apart, apart + 1
        case _:  # changes between 0 and 1
            up, down = 1 - apart, apart
    is_low = up > 0
    away = np.where(is_low, up, down)
    moves = np.where(is_low, step > 0, step < 0)
    return np.where(moves, -(-away // size), never)
