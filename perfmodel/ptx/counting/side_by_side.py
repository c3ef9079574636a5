"""Says how many registers the copies of a loop's body have that are done side by side.

Rules of ptxas 13.0 for sm_90, read in loops over bodies that attract each other, beside none to 16 values that stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import ceil

from perfmodel.counting.waits import MOST_UNDER_WAY
from perfmodel.ptx.code import Code
from perfmodel.ptx.dataflow import read, written
from perfmodel.ptx.syntax import Instruction, Operand, Symbol

FIRST_STEP, STEP, KEPT = 32, 8, 6
"""The assembler gives out 32 registers, or more in steps of eight, of which so many hold what PTX does not show."""
COMPUTED = 4
"""One copy of a body computes with so many words beside what it loads: three distances and a root."""

_OF_LAUNCH = ("%ntid", "%nctaid")


def left_beside(live: int) -> int:
    """Returns the words that copies may hold where so many are live: more registers are given out where one copy has no
    room for what it computes, and for as much again."""
    left = FIRST_STEP - KEPT - COMPUTED - live
    return min(left + max(ceil((COMPUTED - left) / STEP), 0) * STEP, MOST_UNDER_WAY)


def words_held(code: Code, words: Mapping[str, int]) -> dict[str, int]:
    """Returns the words of a kernel's registers, as machine code has them.

    Parameters, sizes of the launch and places of arrays are read from constant memory or are numbers, and what lies in
    shared memory has an address of one word.
    """
    found, shared = dict(words), set[str]()
    for each in [each for block in code.flow.blocks for each in block.instructions]:
        names = [name for name in written(each) if len(code.dataflow.definitions[name]) == 1]
        source = each.operands[-1] if each.opcode in ("mov", "cvta") else None
        if (each.opcode == "ld" and each.has("param")) or _is_at_hand(source, found):
            found.update(dict.fromkeys(names, 0))
        is_place = isinstance(source, Symbol) or not shared.isdisjoint(read(each))
        if is_place and each.opcode in ("mov", "add", "cvta", "mad"):
            shared.update(written(each))
            found.update({name: min(found.get(name, 0), 1) for name in written(each)})
    return found


def _is_at_hand(source: Operand | None, words: Mapping[str, int]) -> bool:
    """Returns whether what is moved is a number, or something that takes no register."""
    name = getattr(source, "name", "")
    return isinstance(source, Symbol) or name.startswith(_OF_LAUNCH) or words.get(name) == 0


def moved_at_once(instructions: Iterable[Instruction]) -> list[Instruction]:
    """Returns the most shuffles none of which needs what another one brings: steps of a sum over lanes take the
    registers of those before."""
    levels: dict[str, int] = {}
    found: dict[int, list[Instruction]] = {}
    for each in instructions:
        level = max((levels.get(name, 0) for name in read(each)), default=0)
        if each.opcode == "shfl":
            level += 1
            found.setdefault(level, []).append(each)
        for name in written(each):
            levels[name] = level
    return max(found.values(), key=len, default=[])
