"""Tells how threads wait for their loads: which follow from others, and which iterations have theirs under way.

PTX stands as its compiler has unrolled it; the assembler unrolls short loops again, and moves loads ahead of all but
what they need, barriers, divisions and roots that are exact, as these may branch off to a slow way, and stores that
they might see. Numbers as in `perfmodel.opencl_c.static.waits`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from perfmodel.counting.waits import MOST_UNDER_WAY, Wait
from perfmodel.ptx.control_flow import Block, ControlFlow, Loop
from perfmodel.ptx.dataflow import LOADS, read, written
from perfmodel.ptx.syntax import Instruction

UNROLLED, MOST_UNROLLED = 4, 45
"""The assembler writes out so many iterations of a loop that is no longer than so many instructions."""
_EXACT = frozenset(("div", "rcp", "sqrt"))
_BARRIERS = frozenset(("bar", "barrier"))
_SPACES = ("global", "shared")


@dataclass
class _Way:
    """The way through the blocks of a loop, without those of loops in it, or through what lies in no loop."""

    depths: dict[str, int] = field(default_factory=dict)
    levels: dict[Instruction, int] = field(default_factory=dict)
    finished: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_SPACES, 0))
    is_stopped: bool = False

    def follow(self, blocks: Iterable[Block], has_hidden: bool) -> None:
        for block in blocks:
            for each in block.instructions:
                self._step(each, has_hidden)

    def _step(self, instruction: Instruction, has_hidden: bool) -> None:
        depth = max((self.depths.get(name, 0) for name in read(instruction)), default=0)
        space = _space(instruction)
        if space is not None:
            before = self.finished[space] if space == "shared" or not instruction.has("nc") else self.finished["shared"]
            depth = max(depth, before) + 1
            self.levels[instruction] = depth
        if instruction.opcode == "atom":
            depth += 1
        for name in written(instruction):
            self.depths[name] = depth
        last = max(self.levels.values(), default=0)
        if _is_exact(instruction) or instruction.opcode in _BARRIERS:
            self.finished = dict.fromkeys(_SPACES, last)
            self.is_stopped = True
        elif has_hidden and instruction.has("global") and instruction.opcode in ("st", "atom", "red"):
            self.finished["global"] = last
            self.is_stopped = True


class Waits:
    """Finds how each load of a kernel is waited for."""

    def __init__(self, flow: ControlFlow) -> None:
        self._found: dict[Instruction, Wait] = {}
        loops: list[Loop | None] = [None, *flow.loops]
        for loop in loops:
            self._add(
                flow, loop, [each for each in flow.blocks if next(iter(flow.around(each.number)[-1:]), None) is loop]
            )

    def of(self, instruction: Instruction) -> Wait:
        """Returns how a load is waited for."""
        return self._found.get(instruction, Wait())

    def _add(self, flow: ControlFlow, loop: Loop | None, blocks: list[Block]) -> None:
        inside = [each for block in blocks for each in block.instructions]
        has_hidden = any(_space(each) == "global" and not each.has("nc") for each in inside)
        way = _Way()
        way.follow(blocks, has_hidden)
        unrolled = 1
        if loop is not None and not way.is_stopped and len(inside) <= MOST_UNROLLED and len(blocks) == len(loop.blocks):
            again = _Way(depths=way.depths)
            again.follow(blocks, has_hidden)
            exits = sum(any(to not in loop.blocks for to in block.successors) for block in blocks)
            unrolled = UNROLLED if exits == 1 and again.levels == way.levels else 1
        number = Counter((_space(each), level) for each, level in way.levels.items())
        for each, level in way.levels.items():
            waits = max(1.0, number[_space(each), level] * unrolled / MOST_UNDER_WAY)
            self._found[each] = Wait(waits / unrolled, level)


def _space(instruction: Instruction) -> str | None:
    """Returns the memory that a load is from, if it is one that is waited for."""
    if instruction.opcode not in LOADS:
        return None
    return next((space for space in _SPACES if instruction.has(space)), None)


def _is_exact(instruction: Instruction) -> bool:
    if instruction.opcode not in _EXACT or not instruction.has("rn") or not instruction.types:
        return False
    return instruction.types[-1].is_float and instruction.types[-1].bits >= 32
