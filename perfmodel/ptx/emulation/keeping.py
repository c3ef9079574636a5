"""Finds what loops do only where a new number beats one that they keep, as do those that look for the nearest.

The more numbers a loop has seen, the more seldom is the next one among the best: the n-th with a probability of k / n
where k are kept (of numbers in any order; Rényi, 1962, on records).
"""

from __future__ import annotations

from perfmodel.basics.graphs import reached
from perfmodel.ptx.code import Code
from perfmodel.ptx.control_flow import EXIT, Block
from perfmodel.ptx.dataflow import LOADS, STORES, address_of, registers_in, written
from perfmodel.ptx.syntax import Instruction


def keeping(code: Code) -> frozenset[int]:
    """Returns the basic blocks that are executed where a comparison says so and keep one of the numbers compared, in
    place of the other."""
    found: set[int] = set()
    for block in code.flow.blocks:
        test = _test_of(block)
        if test is None:
            continue
        for side in block.successors:
            region = _until_meeting(code, side, block.number)
            if region and _keeps(code, region, test):
                found |= region
    return frozenset(found)


def _test_of(block: Block) -> Instruction | None:
    """Returns the comparison of two registers on which a branch depends, if it stands before it."""
    if block.guard is None:
        return None
    name = block.guard.register.name
    test = next((each for each in reversed(block.instructions) if name in written(each)), None)
    return test if test is not None and test.opcode == "setp" and len(test.operands) == 3 else None


def _until_meeting(code: Code, side: int, start: int) -> set[int]:
    """Returns the blocks on one side of a branch until both sides meet."""
    ends = {code.flow.meeting[start], EXIT, start}
    if side in ends:
        return set()
    return set(
        reached([side], lambda number: [each for each in code.flow.blocks[number].successors if each not in ends])
    )


def _keeps(code: Code, region: set[int], test: Instruction) -> bool:
    inside = [each for number in region for each in code.flow.blocks[number].instructions]
    first, second = (set(registers_in(operand)) for operand in test.operands[1:])
    changed = {name for each in inside for name in written(each)}
    return any(
        _is_kept(new, inside) and _is_held(code, old, changed) for new, old in ((first, second), (second, first))
    )


def _is_kept(new: set[str], inside: list[Instruction]) -> bool:
    """Returns whether a number is stored, or becomes the value of another register."""
    for each in inside:
        if each.opcode in STORES or each.opcode == "mov":
            place = address_of(each) if each.opcode in STORES else each.operands[0]
            if any(new.intersection(registers_in(operand)) for operand in each.operands if operand is not place):
                return True
    return False


def _is_held(code: Code, old: set[str], changed: set[str]) -> bool:
    """Returns whether a number was loaded, or is one that the region changes."""
    loaded = [each for name in old for each in code.dataflow.definitions.get(name, ()) if each.opcode in LOADS]
    return bool(old & changed) or any(not each.has("param") for each in loaded)
