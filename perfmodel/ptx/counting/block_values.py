"""Numbers the values of a basic block, so that what is computed twice in it is seen to be one value."""

from __future__ import annotations

from collections.abc import Hashable

from perfmodel.ptx.control_flow import Block
from perfmodel.ptx.dataflow import Dataflow, read, written
from perfmodel.ptx.syntax import Instruction, Register

PURE = frozenset(("add", "sub", "and", "or", "xor", "not", "shl", "shr", "shf", "prmt", "lop3", "bfe", "bfi"))
"""Whole-number operations whose results follow from their operands alone."""


class BlockValues:
    """Numbers the values that the instructions of a block read and make; those made later have larger numbers.

    Attributes:
        read, made: the values of each instruction's operands, registers and others, and those of its results.
        makers: the instruction that makes a value first.
        users: the instructions that read a value, without those that compute something again; those outside of the
            block, and those that read a register when the block comes again, are among them.
        again: the instructions that compute what another one of the block has computed.
    """

    def __init__(self, flow: Dataflow, block: Block) -> None:
        self.read: dict[Instruction, list[int]] = {}
        self.made: dict[Instruction, list[int]] = {}
        self.makers: dict[int, Instruction] = {}
        self.users: dict[int, list[Instruction]] = {}
        self.again: set[Instruction] = set()
        self._last = 0
        self._numbers: dict[Hashable, int] = {}
        self._of_register: dict[str, int] = {}
        self._before: dict[str, list[Instruction]] = {}
        inside = set(block.instructions)
        for instruction in block.instructions:
            self._number(instruction)
        for instruction in block.instructions:
            for value in () if instruction in self.again else dict.fromkeys(self.read[instruction]):
                self.users.setdefault(value, []).append(instruction)
        for instruction in block.instructions:
            for name, value in zip(written(instruction), self.made[instruction], strict=True):
                beyond = [use for use in flow.uses.get(name, ()) if use not in inside]
                self.users.setdefault(value, []).extend(beyond + self._before.get(name, []))

    def _number(self, instruction: Instruction) -> None:
        for name in read(instruction):
            if name not in self._of_register:
                self._before.setdefault(name, []).append(instruction)
        is_pure = instruction.opcode in PURE and instruction.guard is None and not instruction.has("cc")
        operands = instruction.operands[1:] if is_pure else instruction.operands
        own = [self._value(operand.name if isinstance(operand, Register) else operand) for operand in operands]
        key = instruction.opcode, instruction.modifiers, instruction.types, *own
        known = self._numbers.get(key) if is_pure else None
        names = written(instruction)
        self.read[instruction] = own
        if known is not None:
            self.again.add(instruction)
        self.made[instruction] = [known if known is not None else self._new() for _ in names]
        for name, value in zip(names, self.made[instruction], strict=True):
            self._of_register[name] = value
            self.makers.setdefault(value, instruction)
            if is_pure:
                self._numbers[key] = value

    def _value(self, operand: Hashable) -> int:
        if isinstance(operand, str) and operand in self._of_register:
            return self._of_register[operand]
        if operand not in self._numbers:
            self._numbers[operand] = self._new()
        return self._numbers[operand]

    def _new(self) -> int:
        self._last += 1
        return self._last
