"""Skips turns of long loops: what they do is known from the turns before, where data decide on nothing.

A loop is skipped through where all lanes go the same way, and all that decides where they go, and what they access,
moves by the same step from turn to turn. Results are unknown then, but not what was executed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.ptx.emulation.deciding import TESTS, Deciding, Plan
from perfmodel.ptx.emulation.lanes import Mask
from perfmodel.ptx.emulation.machine import Machine
from perfmodel.ptx.emulation.recording import Places, Tally
from perfmodel.ptx.syntax import Instruction
from perfmodel.ptx.types import TYPES

LEAST = 8
"""Fewer turns are not skipped."""
NEVER = 2**40
"""Stands for the turns of a test that has one outcome for ever, as that of a loop that others end."""
MOST_NOTED = 4096
"""Turns of loops that do more accesses than this are run."""


@dataclass(eq=False)
class Turn:
    """Holds what one turn of a loop did, and where its registers were at its end."""

    mask: Mask
    parted: int
    registers: list[Any]
    operands: list[tuple[Any, Any]] = field(default_factory=list)
    tallies: list[tuple[Tally, Mask]] = field(default_factory=list)
    rows: list[tuple[Places, Mask, NDArray[np.int64]]] = field(default_factory=list)
    branches: list[tuple[list[Any], list[Any]]] = field(default_factory=list)
    is_known: bool = True


class Skipper:
    """Watches loops of a machine, and skips turns where their plans allow it.

    Attributes:
        skipped: turns that were not run.
    """

    def __init__(self, machine: Machine, deciding: Deciding) -> None:
        self.machine, self.deciding = machine, deciding
        self.skipped = 0
        self._plans: dict[int, Plan | None] = {}
        self._turns: dict[int, list[Turn]] = {}
        self._loops = {loop.header: loop for loop in machine.code.flow.loops}

    def arrives(self, block: int, mask: Mask, parted: int) -> None:
        """Is told that lanes come to a block, after so many partings; here turns may be skipped."""
        for header in [h for h in self._turns if block not in self._loops[h].blocks]:
            del self._turns[header]
        if block not in self._loops:
            return
        if block not in self._plans:
            self._plans[block] = self.deciding.plan(self._loops[block])
        plan = self._plans[block]
        if plan is None:
            return
        turns = self._turns.setdefault(block, [])
        if turns:
            self._finish(turns[-1], plan)
            goes_on = turns[-1].is_known and turns[-1].mask is mask and turns[-1].parted == parted
            if not goes_on or (len(turns) >= 2 and self._skip(plan, turns[-2], turns[-1])):
                turns.clear()
        del turns[:-1]
        turns.append(Turn(mask, parted, []))

    def _finish(self, turn: Turn, plan: Plan) -> None:
        values, numbers = self.machine.registers.values, self.machine.registers.numbers
        turn.registers = [values[numbers[name]] for name in plan.carried]
        for test in plan.tests:
            type_ = test.types[-1]
            whole = TYPES[f"{'u' if type_.kind != 's' else 's'}{type_.bits}"]
            pair = [self.machine.registers.reader(each, whole, test)() for each in test.operands[1:3]]
            turn.operands.append((pair[0], pair[1]))

    def notes(self) -> Iterator[Turn]:
        """Iterates over the turns that are going on."""
        for turns in self._turns.values():
            if turns:
                yield turns[-1]

    def note_tally(self, tally: Tally, mask: Mask) -> None:
        for turn in self.notes():
            turn.tallies.append((tally, mask))

    def note_row(self, places: Places, mask: Mask, row: NDArray[np.int64] | None) -> None:
        for turn in self.notes():
            if row is None or len(turn.rows) >= MOST_NOTED:
                turn.is_known = False
            else:
                turn.rows.append((places, mask, row))

    def note_branch(self, record: list[Any], more: list[Any]) -> None:
        for turn in self.notes():
            turn.branches.append((record, more))

    def _skip(self, plan: Plan, before: Turn, now: Turn) -> bool:
        """Skips turns, as many as all tests have the same outcome in; returns whether there were any."""
        if [places for places, _, _ in before.rows] != [places for places, _, _ in now.rows]:
            return False
        if not before.is_known or not before.registers or len(before.tallies) != len(now.tallies):
            return False
        both = zip(plan.tests, before.operands, now.operands, strict=True)
        count = min((self._until(now.mask, *each) for each in both), default=0)
        count -= 2
        if not LEAST <= count < NEVER - 2:
            return False
        registers = self.machine.registers
        for name, old, new in zip(plan.carried, before.registers, now.registers, strict=True):
            place = registers.numbers[name]
            step = new - old
            registers.values[place] = new + step * step.dtype.type(count)
        for tally, mask in now.tallies:
            tally.add(mask, count)
        for (places, mask, row), (_, _, last) in zip(now.rows, before.rows, strict=True):
            places.add_series(mask, row, row - last, count)
        for record, more in now.branches:
            for place, numbers in enumerate(more):
                record[place] += numbers * count
        for turn in self.notes():
            turn.is_known = False  # of a loop around this one
        self.skipped += count
        return True

    def _until(self, mask: Mask, test: Instruction, before: tuple[Any, Any], now: tuple[Any, Any]) -> int:
        """Returns after how many turns a test first has another outcome for some lane."""
        total = self.machine.lanes.total
        old, new = (
            np.broadcast_to(pair[0], (total,)).astype(np.int64) - np.broadcast_to(pair[1], (total,)).astype(np.int64)
            for pair in (before, now)
        )
        apart, step = new[mask.active], (new - old)[mask.active]
        name = next(modifier for modifier in test.modifiers if modifier in TESTS)
        return int(_turns_until(name, apart, step).min(initial=NEVER))


def _turns_until(test: str, apart: NDArray[np.int64], step: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns after how many steps a comparison of two numbers, so far apart, has another outcome; many for never."""
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
