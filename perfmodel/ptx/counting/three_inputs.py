"""Finds operations that the assembler joins with another.

One instruction does any bitwise operation of three inputs (LOP3), one adds up three whole numbers, or subtracts some of
them (IADD3; two of these add up three of 64 bits), one shifts or rotates a number and adds another (LEA),
and one takes 32 bits out of two numbers side by side (SHF), where PTX has two shifts and joins them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from perfmodel.ptx.counting.block_values import BlockValues
from perfmodel.ptx.dataflow import Dataflow
from perfmodel.ptx.syntax import Immediate, Instruction, Operand, Register

_BITWISE = frozenset(("and", "or", "xor", "not"))
MOST_INPUTS = 3
MOST_LEAVES = 8
"""So many inputs are looked behind for fewer that all follow from."""
BITS = 32
SHIFTED = 2
"""A number that is shifted takes so many of a sum's three inputs: its own, and that of the shift."""


def joined_by_three(flow: Dataflow, is_counted: Callable[[Instruction], bool]) -> frozenset[Instruction]:
    """Returns the operations that cost nothing: those that compute again what the same basic block has computed, as in
    the inline assembly of a function that is called twice, and those of the same basic block that another operation
    has among its three inputs: bitwise ones of 32 bits, and of those that are counted sums, and shifts in sums."""
    joined: set[Instruction] = set()
    for block in flow.flow.blocks:
        values = BlockValues(flow, block)
        joined |= values.again
        funnels: set[Instruction] = set()
        inputs: dict[int, int] = {}  # of what makes these values, and may be joined with what reads them
        for instruction in [each for each in block.instructions if each not in values.again]:
            way = _way(flow, instruction, is_counted)
            count = SHIFTED if way == "shift" else len(instruction.operands) - 1
            for value in [each for each in values.read[instruction] if way == "sum" and each in inputs]:
                if count - 1 + inputs[value] <= MOST_INPUTS and values.users[value] == [instruction]:
                    count += inputs[value] - 1
                    joined.add(values.makers[value])
            if way in ("bitwise", "sum") and (shifts := _funneled(flow, instruction, values)):
                joined.update(shifts)
                funnels.add(instruction)
            elif way in ("sum", "shift"):
                inputs.update(dict.fromkeys(values.made.get(instruction, ()), count))
        for instruction in reversed(block.instructions):
            if instruction not in joined and instruction not in funnels and _is_bitwise(instruction):
                joined |= _cone(instruction, values, funnels)
    return frozenset(joined)


def _cone(last: Instruction, values: BlockValues, funnels: Collection[Instruction]) -> set[Instruction]:
    """Returns the bitwise operations before one that follow with it from three inputs, each read by one of them alone:
    so a choice of bits, ``(x & m) | (y & ~m)``, is one instruction."""
    found: set[Instruction] = set()
    cone, leaves = {last}, dict.fromkeys(values.read[last])
    while len(leaves) <= MOST_LEAVES:
        makers = {leaf: values.makers[leaf] for leaf in leaves if leaf in values.makers}
        inner = [
            leaf
            for leaf, maker in makers.items()
            if _is_bitwise(maker) and maker not in funnels and len(values.users[leaf]) == 1
        ]
        if not inner:
            break
        leaf = max(inner)
        cone.add(makers[leaf])
        del leaves[leaf]
        leaves.update(dict.fromkeys(values.read[makers[leaf]]))
        if len(leaves) <= MOST_INPUTS:
            found = cone - {last}
    return found


def _funneled(flow: Dataflow, instruction: Instruction, values: BlockValues) -> list[Instruction]:
    """Returns the shifts of two numbers, to the left and to the right, that an instruction joins to 32 bits which lie
    in both."""
    if instruction.opcode not in ("or", "xor", "add"):
        return []
    own = [each for each in values.read[instruction] if each in values.makers]
    found = [values.makers[each] for each in own if values.users[each] == [instruction]]
    by = [_number(flow, each.operands[-1]) for each in found if each.opcode in ("shl", "shr")]
    is_pair = {each.opcode for each in found} == {"shl", "shr"} and len(found) == 2
    return found if is_pair and None not in by and sum(number or 0 for number in by) == BITS else []


def _way(flow: Dataflow, instruction: Instruction, is_counted: Callable[[Instruction], bool]) -> str:
    """Returns how an instruction may be joined with others: ``bitwise``, ``sum`` or ``shift``; empty if not at all."""
    if instruction.guard is not None or not instruction.types or instruction.types[-1].is_float:
        return ""
    bits = instruction.types[-1].bits
    if instruction.opcode in _BITWISE:
        return "bitwise" if _is_bitwise(instruction) else ""
    if not is_counted(instruction):
        return ""
    if instruction.opcode in ("add", "sub"):
        return "sum" if bits in (32, 64) and not instruction.has("cc", "sat") else ""
    return "shift" if bits == 32 and _shifts_by_number(flow, instruction) else ""


def _is_bitwise(instruction: Instruction) -> bool:
    is_plain = instruction.guard is None and bool(instruction.types)
    return is_plain and instruction.opcode in _BITWISE and instruction.types[-1].bits == BITS


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
