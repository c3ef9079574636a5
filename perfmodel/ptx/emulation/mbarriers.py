"""Barriers in shared memory: threads arrive, copies report their bytes, and threads wait for the phase to end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.distinct import distinct
from perfmodel.basics.errors import EmulationError
from perfmodel.ptx.emulation.accesses import Accesses
from perfmodel.ptx.emulation.lanes import Mask
from perfmodel.ptx.syntax import Address, Immediate, Instruction, Operand
from perfmodel.ptx.types import PREDICATE, TYPES

Step = Callable[[Mask], None]
Cells = NDArray[np.int64]
_COUNT, _OPEN = 20, 1 << 40
"""A barrier's 8 bytes hold the arrivals that are missing, from bit 20 on those of a phase, at bit 40 the phase, and
above the bytes that are missing."""


class Barriers:
    """The barriers in the shared memory of emulated blocks."""

    def __init__(self, accesses: Accesses) -> None:
        self.accesses = accesses

    def step(self, instruction: Instruction) -> Step:
        """Returns what one of the instructions of ``mbarrier`` does."""
        action = instruction.opcode.rpartition(".")[2]
        make = {
            "init": self._init,
            "inval": lambda _: lambda mask: None,
            "arrive": self._arrive,
            "arrive_drop": self._arrive,
            "expect_tx": self._expect,
            "mbarrier": self._arrive_of_copies,
            "try_wait": self._wait,
            "test_wait": self._wait,
        }.get(action)
        if make is None:
            raise EmulationError(
                f"line {instruction.line} of the PTX has a barrier that is not known: {instruction.name}"
            )
        return make(instruction)

    def _cells(self, instruction: Instruction, place: int) -> Callable[[Mask], tuple[Cells, Cells]]:
        """Returns what finds the cells of barriers, and which of them each lane names."""
        address = instruction.operands[place]
        assert isinstance(address, Address)
        return self.accesses.words_at(instruction, address)

    def _value(self, instruction: Instruction, operand: Operand | None, default: int = 1) -> Callable[[Mask], Cells]:
        if operand is None:
            return lambda mask: np.full(mask.count, default, np.int64)
        read = self.accesses.registers.reader(operand, TYPES["u32"], instruction)
        return lambda mask: np.broadcast_to(read(), mask.active.shape)[mask.index].astype(np.int64)

    def _init(self, instruction: Instruction) -> Step:
        cells, count = self._cells(instruction, 0), self._value(instruction, instruction.operands[1])

        def init(mask: Mask) -> None:
            if not mask.count:
                return
            words, at = cells(mask)
            words[at] = count(mask) | (count(mask) << _COUNT)

        return init

    def _arrive(self, instruction: Instruction) -> Step:
        cells = self._cells(instruction, 1)
        given = instruction.operands[2] if len(instruction.operands) > 2 else None
        expects = instruction.has("expect_tx")
        value = self._value(instruction, given)
        write = self.accesses.registers.writer(instruction.operands[0], TYPES["b64"], instruction)
        total = self.accesses.registers.lanes.total

        def arrive(mask: Mask) -> None:
            if not mask.count:
                return
            words, at = cells(mask)
            state = np.zeros(total, np.int64)
            state[mask.index] = words[at]
            write(state.view(np.uint64), mask)
            if expects:
                changed(words, at, value(mask), 0)
            changed(words, at, 0, np.ones_like(at) if expects else value(mask))

        return arrive

    def _arrive_of_copies(self, instruction: Instruction) -> Step:
        cells, counts = self._cells(instruction, 0), instruction.has("noinc")

        def arrive(mask: Mask) -> None:
            if mask.count and counts:  # else, one more is expected, which arrives at once
                words, at = cells(mask)
                changed(words, at, 0, np.ones_like(at))

        return arrive

    def _expect(self, instruction: Instruction) -> Step:
        cells, value = self._cells(instruction, 0), self._value(instruction, instruction.operands[1])

        def expect(mask: Mask) -> None:
            if mask.count:
                words, at = cells(mask)
                changed(words, at, value(mask), 0)

        return expect

    def _wait(self, instruction: Instruction) -> Step:
        cells = self._cells(instruction, 1)
        by_parity = instruction.has("parity")
        registers = self.accesses.registers
        write = registers.writer(instruction.operands[0], PREDICATE, instruction)
        operand = instruction.operands[2]
        if by_parity and isinstance(operand, Immediate):
            operand = Immediate(int(operand.value))
        read = registers.reader(operand, TYPES["u32" if by_parity else "b64"], instruction)
        total = registers.lanes.total

        def wait(mask: Mask) -> None:
            if not mask.count:
                return
            words, at = cells(mask)
            given = np.broadcast_to(read(), (total,))[mask.index].astype(np.int64)
            phase = words[at] >> 40 & 1
            found = np.zeros(total, bool)
            found[mask.index] = phase != (given & 1 if by_parity else given >> 40 & 1)
            write(found, mask)

        return wait


def changed(words: Cells, at: Cells, n_bytes: Any, arrivals: Any) -> None:
    """Adds to the bytes that barriers wait for, and counts arrivals; ends the phase of those that wait for nothing."""
    np.add.at(words, at, np.asarray(n_bytes, np.int64) * (_OPEN << 1) - np.asarray(arrivals, np.int64))
    for place in distinct(at):
        word = int(words[place])
        missing, count = word & (1 << _COUNT) - 1, word >> _COUNT & (1 << _COUNT) - 1
        if missing == 0 and word >> 41 == 0:
            words[place] = (word & _OPEN ^ _OPEN) | count << _COUNT | count
