"""Tells how threads wait for their loads: which follow from others, and which iterations have theirs under way.

PTX stands as its compiler has unrolled it; the assembler unrolls short loops again, if they are of one block and count
by a number, and moves loads ahead of all but what they need, barriers, divisions and roots that are exact, as these may
branch off to a slow way, and stores that they might see. Numbers as in `perfmodel.opencl_c.static.waits`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from perfmodel.counting.waits import LATENCIES, MOST_UNDER_WAY, Wait
from perfmodel.ptx.control_flow import Block, ControlFlow, Loop
from perfmodel.ptx.dataflow import LOADS, read, written
from perfmodel.ptx.syntax import Immediate, Instruction

UNROLLED, MOST_UNROLLED = 4, 45
"""The assembler writes out so many iterations of a loop that is no longer than so many instructions."""
_EXACT = frozenset(("div", "rcp", "sqrt"))
_BARRIERS = frozenset(("bar", "barrier"))
_SPACES = ("global", "shared")
_KINDS = {"ex2": "exp2", "lg2": "log2", "rcp": "div"}
"""Kinds of operations, by opcodes that have other names."""


@dataclass
class _Way:
    """The way through the blocks of a loop, without those of loops in it, or through what lies in no loop.

    Attributes:
        depths: loads that come one after the other up to a register's value.
        operations: operations on floats likewise, apart from those on what goes on to the next iteration.
        carried: registers that hold such.
    """

    depths: dict[str, int] = field(default_factory=dict)
    levels: dict[Instruction, int] = field(default_factory=dict)
    finished: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_SPACES, 0))
    stopped: set[str] = field(default_factory=set)
    """Spaces whose loads come before what is issued next, so that no further iteration's are under way with them."""
    operations: dict[str, int] = field(default_factory=dict)
    carried: set[str] = field(default_factory=set)
    longest: int = 0

    def follow(self, blocks: Iterable[Block], hiding: Collection[str]) -> None:
        for block in blocks:
            for each in block.instructions:
                self._step(each, hiding)

    def _step(self, instruction: Instruction, hiding: Collection[str]) -> None:
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
        self._operate(instruction)
        last = max(self.levels.values(), default=0)
        if _is_exact(instruction) or instruction.opcode in _BARRIERS:
            self.finished = dict.fromkeys(_SPACES, last)
            self.stopped.update(_SPACES)
        elif instruction.opcode in ("st", "atom", "red"):
            for hidden in hiding:
                if instruction.has(hidden):
                    self.finished[hidden] = last
                    self.stopped.add(hidden)

    def _operate(self, instruction: Instruction) -> None:
        before = read(instruction)
        number = max((self.operations.get(name, 0) for name in before), default=0)
        is_carried = not self.carried.isdisjoint(before) and instruction.opcode not in LOADS
        if not is_carried and instruction.opcode not in LOADS:
            number += _latency(instruction)
        self.longest = max(self.longest, number)
        for name in written(instruction):
            self.operations[name] = number
            if is_carried:
                self.carried.add(name)
            else:
                self.carried.discard(name)


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
        hiding = {space for each in inside if (space := _space(each)) is not None and not each.has("nc")}
        way = _Way(carried=_carried(inside) if loop is not None else set())
        way.follow(blocks, hiding)
        unrolled = 1
        if loop is not None and len(inside) <= MOST_UNROLLED and len(loop.blocks) == 1 and _counts_by_number(blocks[0]):
            again = _Way(depths=way.depths)
            again.follow(blocks, hiding)
            unrolled = UNROLLED if again.levels == way.levels else 1
        number = Counter((_space(each), level) for each, level in way.levels.items())
        depth = way.longest / (1 if "global" in way.stopped else unrolled)
        for each, level in way.levels.items():
            together = 1 if _space(each) in way.stopped else unrolled
            waits = max(1.0, number[_space(each), level] * together / MOST_UNDER_WAY)
            self._found[each] = Wait(waits / together, level, depth)


def _counts_by_number(block: Block) -> bool:
    """Returns True if a loop of one block goes on as long as a register says that moves by a number."""
    deciding = block.guard.register if block.guard is not None else None
    compared = {
        operand
        for each in block.instructions
        if each.opcode == "setp" and deciding in each.operands[:1]
        for operand in each.operands[1:]
    }
    return any(
        each.opcode in ("add", "sub") and isinstance(each.operands[2], Immediate) and each.operands[0] in compared
        for each in block.instructions
    )


def _space(instruction: Instruction) -> str | None:
    """Returns the memory that a load is from, if it is one that is waited for."""
    if instruction.opcode not in LOADS:
        return None
    return next((space for space in _SPACES if instruction.has(space)), None)


def _carried(instructions: Iterable[Instruction]) -> set[str]:
    """Returns the registers that a loop's iteration reads before it writes them."""
    first: set[str] = set()
    after: set[str] = set()
    for each in instructions:
        first.update(name for name in read(each) if name not in after)
        after.update(written(each))
    return first & after


def _latency(instruction: Instruction) -> int:
    """Returns how many simple operations take as long as an operation on floats; 0 for other instructions."""
    if not instruction.types or not instruction.types[-1].is_float or instruction.opcode in ("mov", "cvt", "st"):
        return 0
    return LATENCIES.get(_KINDS.get(instruction.opcode, instruction.opcode), 1)


def _is_exact(instruction: Instruction) -> bool:
    if instruction.opcode not in _EXACT or not instruction.has("rn") or not instruction.types:
        return False
    return instruction.types[-1].is_float and instruction.types[-1].bits >= 32
