"""Finds loops that wait for others: for a lock, or for what other blocks write into memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from perfmodel.ptx.code import Code
from perfmodel.ptx.control_flow import Loop
from perfmodel.ptx.dataflow import read, registers_in, written
from perfmodel.ptx.syntax import Immediate, Instruction

_LOOKING = ("volatile", "relaxed", "acquire", "mmio")
"""Loads that see what others have stored meanwhile."""
_DOING_MORE = frozenset(("ld", "st", "red", "atom", "bar", "barrier"))
_DOING_NOTHING = frozenset(("bra", "nanosleep", "membar", "fence", "pragma"))
"""Instructions with which an iteration is more than a look at memory, unless they are one, and those without result
with which it is not."""


def spins(code: Code) -> bool:
    """Returns whether a kernel has a loop that waits for a lock: that tries the same exchange until it succeeds."""
    for loop in code.flow.loops:
        inside = _inside(code, loop)
        set_inside = {name for each in inside for name in written(each)}
        for each in inside:
            if each.opcode == "atom" and each.has("cas", "exch"):
                values = {name for operand in each.operands[1:] for name in registers_in(operand)}
                if not values & _varying(inside, set_inside):
                    return True
    return False


def looks(code: Code) -> Mapping[int, frozenset[int]]:
    """Returns the blocks of loops that do nothing but look at memory until others have changed it, by their headers:
    what one iteration sets does not go on to the next."""
    return {loop.header: loop.blocks for loop in code.flow.loops if _only_looks(_inside(code, loop))}


def _only_looks(inside: Sequence[Instruction]) -> bool:
    set_inside = {name for each in inside for name in written(each)}
    known: set[str] = set()
    has_looked = False
    for each in inside:
        if set_inside.intersection(read(each)) - known:
            return False
        known.update(written(each))
        if _sees_others(each):
            has_looked = True
        elif each.opcode in _DOING_MORE or not (written(each) or each.opcode in _DOING_NOTHING):
            return False
    return has_looked


def _sees_others(instruction: Instruction) -> bool:
    """Returns whether an instruction tells what is in memory, and changes nothing there."""
    if instruction.opcode == "ld":
        return instruction.has(*_LOOKING)
    added = instruction.operands[-1] if instruction.operands else None
    is_nothing = isinstance(added, Immediate) and added.value == 0
    return instruction.opcode == "atom" and instruction.has("add", "or", "xor") and is_nothing


def _inside(code: Code, loop: Loop) -> list[Instruction]:
    return [each for number in sorted(loop.blocks) for each in code.flow.blocks[number].instructions]


def _varying(inside: Sequence[Instruction], set_inside: set[str]) -> set[str]:
    """Returns the registers that a loop sets to something else than numbers of the text."""
    constant = {
        name
        for each in inside
        if each.opcode == "mov" and all(isinstance(operand, Immediate) for operand in each.operands[1:])
        for name in written(each)
    }
    return set_inside - constant
