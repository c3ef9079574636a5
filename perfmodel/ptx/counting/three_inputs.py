"""Finds operations that the assembler joins with another.

One instruction does any bitwise operation of three inputs (LOP3), one adds up three whole numbers, or subtracts some of
them (IADD3; two of these add up three of 64 bits), one shifts or rotates a number and adds another (LEA),
and one takes 32 bits out of two numbers side by side (SHF), where PTX has two shifts and joins them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from perfmodel.ptx.dataflow import Dataflow, read, written
from perfmodel.ptx.syntax import Immediate, Instruction, Operand, Register

_BITWISE = frozenset(("and", "or", "xor", "not"))
MOST_INPUTS = 3
BITS = 32
SHIFTED = 2
"""A number that is shifted takes so many of a sum's three inputs: its own, and that of the shift."""


def joined_by_three(flow: Dataflow, is_counted: Callable[[Instruction], bool]) -> frozenset[Instruction]:
    """Returns the operations whose results only one other operation reads, in the same basic block, that has them among
    its three inputs: bitwise ones of 32 bits, and of those that are counted sums, and shifts in sums."""
    joined: set[Instruction] = set()
    for block in flow.flow.blocks:
        inputs: dict[str, int] = {}  # of what makes these registers, and may be joined with what reads them
        makers: dict[str, Instruction] = {}
        for instruction in block.instructions:
            way = _way(flow, instruction, is_counted)
            count = len(instruction.operands) - 1
            if way == "shift":
                count = SHIFTED
            for name in [name for name in read(instruction) if way in ("bitwise", "sum") and name in makers]:
                is_alike = _way(flow, makers[name], is_counted) in ((way,) if way == "bitwise" else (way, "shift"))
                if is_alike and count - 1 + inputs[name] <= MOST_INPUTS and len(flow.uses[name]) == 1:
                    count += inputs[name] - 1
                    joined.add(makers[name])
            if way == "bitwise" and (shifts := _funneled(flow, instruction, makers)):
                joined.update(shifts)
                way = ""
            for name in written(instruction):
                inputs.pop(name, None)
                makers.pop(name, None)
                if way:
                    inputs[name], makers[name] = count, instruction
    return frozenset(joined)


def _funneled(flow: Dataflow, instruction: Instruction, makers: Mapping[str, Instruction]) -> list[Instruction]:
    """Returns the shifts of two numbers, to the left and to the right, that an instruction joins to 32 bits which lie
    in both."""
    if instruction.opcode not in ("or", "xor", "add"):
        return []
    found = [makers[name] for name in read(instruction) if name in makers and len(flow.uses[name]) == 1]
    by = [_number(flow, each.operands[-1]) for each in found if each.opcode in ("shl", "shr")]
    is_pair = {each.opcode for each in found} == {"shl", "shr"} and len(found) == 2
    return found if is_pair and None not in by and sum(number or 0 for number in by) == BITS else []


def _way(flow: Dataflow, instruction: Instruction, is_counted: Callable[[Instruction], bool]) -> str:
    """Returns how an instruction may be joined with others: ``bitwise``, ``sum`` or ``shift``; empty if not at all."""
    if instruction.guard is not None or not instruction.types or instruction.types[-1].is_float:
        return ""
    bits = instruction.types[-1].bits
    if instruction.opcode in _BITWISE:
        return "bitwise" if bits == 32 else ""
    if not is_counted(instruction):
        return ""
    if instruction.opcode in ("add", "sub"):
        return "sum" if bits in (32, 64) and not instruction.has("cc", "sat") else ""
    return "shift" if bits == 32 and _shifts_by_number(flow, instruction) else ""


def _shifts_by_number(flow: Dataflow, instruction: Instruction) -> bool:
    if not _is_number(flow, instruction.operands[-1]):
        return False
    if instruction.opcode == "shf":
        return instruction.has("wrap") and instruction.operands[1] == instruction.operands[2]
    return instruction.opcode == "shl" or (instruction.opcode == "shr" and instruction.types[-1].kind != "s")


def _is_number(flow: Dataflow, operand: Operand) -> bool:
    return _number(flow, operand) is not None


def _number(flow: Dataflow, operand: Operand) -> int | float | None:
    """Returns the number that an operand is, or that a register always holds; None for any other operand."""
    if isinstance(operand, Register):
        given = flow.definitions.get(operand.name, [])
        operand = given[0].operands[-1] if len(given) == 1 and given[0].opcode == "mov" else operand
    return operand.value if isinstance(operand, Immediate) else None
