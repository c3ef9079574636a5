"""Tells how threads wait for their loads: which follow from others, and which iterations have theirs under way.

PTX stands as its compiler has unrolled it; the assembler unrolls short loops again, if they are of one block and count
by a number, and moves loads ahead of all but what they need, barriers, divisions and roots that are exact, as these may
branch off to a slow way, and stores that they might see. Numbers as in `perfmodel.opencl_c.static.waits`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from perfmodel.counting.waits import ADDRESS, LATENCIES, MOST_UNDER_WAY, Wait
from perfmodel.ptx.code import Code
from perfmodel.ptx.control_flow import Block, Loop
from perfmodel.ptx.dataflow import LOADS, read, written
from perfmodel.ptx.liveness import words_of
from perfmodel.ptx.syntax import Immediate, Instruction

UNROLLED, MOST_UNROLLED = 4, 49
"""The assembler writes out so many iterations of a loop that is no longer than so many instructions."""
ROOM, FEWEST = 30, 8
"""The words of registers that values and loads share, as the assembler keeps to 32, and those that are under way even
where PTX has more values live, some of which the assembler computes again."""
MOST_PREDICATED = 16
"""A block of more instructions is branched over where a condition says so, so that its loads are waited for there."""
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

    def follow(self, block: Block, hiding: Collection[str], is_branched: bool = False) -> None:
        """Goes through a block; one that a processor branches over waits for its own loads, and for those before."""
        if is_branched:
            self.stop(*_SPACES)
        for each in block.instructions:
            self._step(each, hiding)
        if is_branched:
            self.stop(*_SPACES)

    def stop(self, *spaces: str) -> None:
        """Has what was loaded come before any further load from some spaces."""
        self.finished.update(dict.fromkeys(spaces, max(self.levels.values(), default=0)))
        self.stopped.update(spaces)

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
        if _is_exact(instruction) or instruction.opcode in _BARRIERS:
            self.stop(*_SPACES)
        elif instruction.opcode in ("st", "atom", "red"):
            self.stop(*(hidden for hidden in hiding if instruction.has(hidden)))

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

    def __init__(self, code: Code) -> None:
        self.code, self.words = code, words_of(code)
        self._found: dict[Instruction, Wait] = {}
        self._shared: dict[tuple[int, str], object] = {}
        flow = code.flow
        loops: list[Loop | None] = [None, *flow.loops]
        for loop in loops:
            self._add(loop, [each for each in flow.blocks if next(iter(flow.around(each.number)[-1:]), None) is loop])

    def of(self, instruction: Instruction) -> Wait:
        """Returns how a load is waited for."""
        return self._found.get(instruction, Wait())

    def shared_by(self, block: int, load: Instruction) -> object:
        """Returns what a block has in common with the others whose waits for a load it shares; None for none.

        The copies of a body in which something is done under a condition are blocks of their own, short ones of which
        are predicated.
        """
        return self._shared.get((block, _space(load) or ""))

    def _add(self, loop: Loop | None, blocks: list[Block]) -> None:
        inside = [each for block in blocks for each in block.instructions]
        hiding = {space for each in inside if (space := _space(each)) is not None and not each.has("nc")}
        way = _Way(carried=_carried(inside) if loop is not None else set())
        branched = set() if loop is None else {each for each in blocks if self._is_branched(loop, each)}
        for block in blocks:
            way.follow(block, hiding, block in branched)
        unrolled = 1
        if loop is not None and len(inside) <= MOST_UNROLLED and len(loop.blocks) == 1 and _counts_by_number(blocks[0]):
            again = _Way(depths=way.depths)
            again.follow(blocks[0], hiding)
            unrolled = UNROLLED if again.levels == way.levels else 1
        brought = {each: sum(self.words.get(name, 1) for name in written(each)) for each in way.levels}
        room = self._room(loop)
        words: Counter[tuple[str | None, int]] = Counter()
        for each, level in way.levels.items():
            words[_space(each), level] += brought[each] + (ADDRESS if level > 1 else 0)
        depth = way.longest / (1 if "global" in way.stopped else unrolled)
        if loop is not None:
            open_ = [space for space in _SPACES if space not in way.stopped]
            plain = [each.number for each in blocks if each not in branched]
            self._shared.update({(number, space): loop for number in plain for space in open_})
        else:
            self._share_levels(way, [each for each in blocks if _is_predicated(each)])
        for each, level in way.levels.items():
            space = _space(each)
            together = 1 if space in way.stopped else unrolled
            # Shared memory answers while others of its loads are issued, be they many.
            rounds = 1.0 if space == "shared" else max(1.0, words[space, level] * together / room)
            self._found[each] = Wait(rounds / together, level, depth)

    def _share_levels(self, way: _Way, blocks: list[Block]) -> None:
        """Notes blocks in no loop whose loads come at the same level, one after the other, and share a wait so."""
        for block in blocks:
            for space in _SPACES:
                levels = {way.levels[each] for each in block.instructions if _space(each) == space}
                if len(levels) == 1:
                    self._shared[block.number, space] = levels.pop()

    def _is_branched(self, loop: Loop, block: Block) -> bool:
        """Returns whether a processor branches over a block of a loop, which loads, as a condition has it."""
        flow = self.code.flow
        before = flow.dominators[block.number]
        if before is None or _is_predicated(block) or block.number == loop.header:
            return False
        ways = flow.blocks[before].successors
        is_condition = len(ways) > 1 and loop.blocks.issuperset(ways) and flow.meeting[before] != block.number
        return is_condition and any(_space(each) == "global" for each in block.instructions)

    def _room(self, loop: Loop | None) -> float:
        """Returns the words that loads may bring at once, beside those that are live."""
        live = 0 if loop is None else sum(self.words.get(name, 0) for name in self.code.dataflow.alive[loop.header])
        return min(max(ROOM - live, FEWEST), MOST_UNDER_WAY)


def _is_predicated(block: Block) -> bool:
    """Returns whether a block is short enough to be executed without a branch where a condition says so."""
    return len(block.instructions) <= MOST_PREDICATED


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
