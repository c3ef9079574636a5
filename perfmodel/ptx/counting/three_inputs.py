"""Finds bitwise operations that the assembler joins with another: one instruction does any of three inputs (LOP3)."""

from __future__ import annotations

from perfmodel.ptx.dataflow import Dataflow, read, written
from perfmodel.ptx.syntax import Instruction

_BITWISE = frozenset(("and", "or", "xor", "not"))
MOST_INPUTS = 3


def joined_bitwise(flow: Dataflow) -> frozenset[Instruction]:
    """Returns the bitwise operations of 32 bits whose results only one other such operation reads, in the same basic
    block, that has them among its three inputs."""
    joined: set[Instruction] = set()
    for block in flow.flow.blocks:
        inputs: dict[str, int] = {}  # of what makes these registers, and may be joined with what reads them
        makers: dict[str, Instruction] = {}
        for instruction in block.instructions:
            is_bitwise = _is_bitwise(instruction)
            count = len(instruction.operands) - 1
            for name in [name for name in read(instruction) if is_bitwise and name in makers]:
                if count - 1 + inputs[name] <= MOST_INPUTS and len(flow.uses[name]) == 1:
                    count += inputs[name] - 1
                    joined.add(makers[name])
            for name in written(instruction):
                inputs.pop(name, None)
                makers.pop(name, None)
                if is_bitwise:
                    inputs[name], makers[name] = count, instruction
    return frozenset(joined)


def _is_bitwise(instruction: Instruction) -> bool:
    return instruction.opcode in _BITWISE and instruction.types[-1].bits == 32 and instruction.guard is None
