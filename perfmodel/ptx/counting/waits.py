"""Tells how threads wait for their loads: which follow from others, and which iterations have theirs under way.

PTX stands as its compiler has unrolled it; the assembler unrolls short loops again, if they are of one block and count
by a number, and moves loads ahead of all but what they need, barriers, divisions and roots that are exact, as these may
branch off to a slow way, and stores of what was loaded that they might see: not where all places are numbers apart,
from one register that moves by a number. It moves none over a branch, so that what was loaded and is used before one
has come before any load behind it; short blocks that only one way goes through are executed under a predicate, without
a branch. A predicate on what was loaded has to be known before anything behind it is issued but loads, and before loads
and stores that are under it. Numbers as in `perfmodel.opencl_c.static.waits`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd

from perfmodel.counting.waits import ADDRESS, BESIDE, MOST_UNDER_WAY, Wait
from perfmodel.ptx.code import Code
from perfmodel.ptx.control_flow import EXIT, Block, Loop
from perfmodel.ptx.counting.latencies import CONDITION, latency_of
from perfmodel.ptx.counting.operations import is_multiplied
from perfmodel.ptx.counting.side_by_side import left_beside, moved_at_once, words_held
from perfmodel.ptx.dataflow import LOADS, address_of, read, written
from perfmodel.ptx.liveness import words_of
from perfmodel.ptx.syntax import Immediate, Instruction, Operand, Register

UNROLLED, MOST_UNROLLED, MOST_NEAR = 4, 47, 38
"""The assembler writes out so many iterations of a loop that is no longer than so many instructions; than fewer where
it loads from shared memory alone."""
_LENGTHS = {"ex2": 4, "lg2": 4, "rsqrt": 4, "rcp": 3, "sqrt": 5, "div": 9}
"""So many instructions an approximate function becomes that keeps to small numbers (without ``ftz``)."""
ROOM, FEWEST = 30, 8
"""The words of registers that values and loads share, as the assembler keeps to 32, and those that are under way even
where PTX has more values live, some of which the assembler computes again."""
MOST_PREDICATED, MOST_WITHOUT_LOADS = 16, 8
"""A block of more instructions is branched over where a condition says so; one that loads nothing from global memory is
so much sooner (ptxas 12.9 and 13.5 for sm_90)."""
MOST_OF_SIDE = 2
"""So many blocks lie on one side of a branch, where one of them holds nothing but a jump."""
_EXACT = frozenset(("div", "rcp", "sqrt"))
_BARRIERS = frozenset(("bar", "barrier"))
_SPACES = ("global", "shared")


@dataclass
class _Way:
    """The way through the blocks of a loop, without those of loops in it, or through what lies in no loop.

    Attributes:
        depths: loads that come one after the other up to a register's value.
        operations: operations on floats likewise, apart from those on what goes on to the next iteration.
        carried: registers that hold such.
        free: loads that pass stores.
    """

    depths: dict[str, int] = field(default_factory=dict)
    levels: dict[Instruction, int] = field(default_factory=dict)
    finished: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_SPACES, 0))
    hidden: dict[str, int] = field(default_factory=dict)
    """Up to which level loads have come before any further one, and before one that may see what was stored."""
    used: int = 0
    """Up to which level they have come as an instruction needs them."""
    decided: int = 0
    """Up to which level they have come as a condition needs them that stands before."""
    conditions: dict[int, int] = field(default_factory=dict)
    """Up to which level the condition at the end of a block, by its number, needs them."""
    begun: int = 0
    """The operations that have been done before any further one, as a condition waits for them."""
    operations: dict[str, int] = field(default_factory=dict)
    carried: set[str] = field(default_factory=set)
    is_stopped: bool = False
    free: set[Instruction] = field(default_factory=set)
    following: set[Instruction] = field(default_factory=set)
    """The loads whose addresses follow from others."""
    longest: int = 0
    latest: int = 0
    issued: dict[int, int] = field(default_factory=dict)
    """The operations up to the end of a block, by its number."""

    def follow(
        self,
        block: Block,
        hiding: Collection[str],
        is_branched_to: bool = False,
        deciding: Iterable[int] = (),
        before: Iterable[int] = (),
    ) -> None:
        """Goes through a block; at a branch, what instructions before it use has come, and all of them are issued.

        Args:
            deciding: the blocks whose conditions decide whether there is this one.
            before: the blocks that it follows.
        """
        if is_branched_to:
            self.finished = {space: max(level, self.used) for space, level in self.finished.items()}
            self.begun = max([self.begun, *(self.issued.get(number, 0) for number in before)])
        self.latest = self.begun
        under = max((self.conditions.get(number, 0) for number in deciding), default=0)
        for each in block.instructions:
            self._step(each, hiding, under)
        if block.guard is not None:
            self.conditions[block.number] = self._decide(block.guard.register.name)
        self.issued[block.number] = self.latest

    def _decide(self, register: str) -> int:
        """Waits for a condition: what stands behind it in the text is issued after it, under a predicate or not.

        Returns the level of the loads that it needs.
        """
        level = self.depths.get(register, 0)
        self.used, self.decided = max(self.used, level), max(self.decided, level)
        if level:
            self.begun = max(self.begun, self.operations.get(register, 0) + CONDITION)
            self.longest = max(self.longest, self.begun)
        return level

    def stop(self) -> None:
        """Has what was loaded come before any further load."""
        self.finished.update(dict.fromkeys(_SPACES, max(self.levels.values(), default=0)))
        self.is_stopped = True

    def stops(self, load: Instruction) -> bool:
        """Returns whether loads come before what is issued next, so that no further iteration's are under way."""
        return self.is_stopped or (load not in self.free and _space(load) in self.hidden)

    def _step(self, instruction: Instruction, hiding: Collection[str], under: int) -> None:
        depth = max((self.depths.get(name, 0) for name in read(instruction)), default=0)
        self.used = max(self.used, depth)
        space = _space(instruction)
        if space is not None:
            before = self.finished[space] if space == "shared" or not instruction.has("nc") else self.finished["shared"]
            seen = 0 if instruction in self.free else self.hidden.get(space, 0)
            if depth:
                self.following.add(instruction)
            depth = max(depth, before, seen, under) + 1
            self.levels[instruction] = depth
        if instruction.opcode == "atom":
            depth += 1
        for name in written(instruction):
            self.depths[name] = depth
        self._operate(instruction)
        if _is_exact(instruction) or instruction.opcode in _BARRIERS:
            self.stop()
        elif instruction.opcode in ("st", "atom", "red") and max(depth, self.decided):
            # Nothing is waited for to store what is there, but under a condition on what was loaded.
            spaces = [hidden for hidden in hiding if instruction.has(hidden)]
            self.hidden.update(dict.fromkeys(spaces, max(depth, *self.levels.values(), 0)))

    def _operate(self, instruction: Instruction) -> None:
        before = read(instruction)
        number = max([self.begun, *(self.operations.get(name, 0) for name in before)])
        is_carried = not self.carried.isdisjoint(before) and instruction.opcode not in LOADS
        if not is_carried and instruction.opcode not in LOADS:
            number += latency_of(instruction)
        self.longest, self.latest = max(self.longest, number), max(self.latest, number)
        for name in written(instruction):
            self.operations[name] = number
            if is_carried:
                self.carried.add(name)
            else:
                self.carried.discard(name)


class _Places:
    """Knows from which registers a loop's accesses go, or those of what lies in no loop.

    Attributes:
        writing: the instructions that write each register, in their order.
    """

    def __init__(self, instructions: Sequence[Instruction]) -> None:
        self._instructions = instructions
        self.writing: dict[str, list[Instruction]] = {}
        for each in instructions:
            for name in written(each):
                self.writing.setdefault(name, []).append(each)

    def of(self, access: Instruction) -> tuple[str, int]:
        """Returns the register that an access is a number of bytes from, and that number; an empty name where it is
        from no register."""
        address = address_of(access)
        if address is None or not isinstance(address.base, Register):
            return "", 0
        base = address.base.name
        for each in self.writing.get(base, ()):
            match _number_added(each), each.operands:
                case int(number), (_, Register(name=other), _) if other != base:
                    return other, address.offset + number
        return base, address.offset

    def unstored(self, space: str) -> set[Instruction]:
        """Returns the loads from a space that no store reaches, as everybody sees: all accesses are numbers of bytes
        from one register that moves by a number in each iteration."""
        own = [each for each in self._instructions if each.opcode in (*LOADS, "st", "atom", "red") and each.has(space)]
        places = {each: self.of(each) for each in own if not each.has("nc")}
        bases = {base for base, _ in places.values()}
        moving = [each for base in bases for each in self.writing.get(base, ())]
        step = _number_added(moving[0]) if len(moving) == 1 else None
        if len(bases) != 1 or step is None:
            return set()
        stored = {offset for each, (_, offset) in places.items() if each.opcode != "ld"}
        before = {offset - turn * step for offset in stored for turn in range(1, MOST_UNDER_WAY)}
        found: set[Instruction] = set()
        behind: set[int] = set()
        for each, (_, offset) in places.items():
            if each.opcode != "ld":
                behind.add(offset)
            elif offset not in before | behind:
                found.add(each)
        return found

    def again(self, levels: Mapping[Instruction, int]) -> set[Instruction]:
        """Returns the loads at places where others have been that came before, by the levels at which they come."""
        found: set[Instruction] = set()
        been: dict[str, list[tuple[int, int]]] = {}
        for each, level in levels.items():
            base, offset = self.of(each)
            here = been.setdefault(base, [])
            if base and any(before < level and abs(other - offset) < BESIDE for other, before in here):
                found.add(each)
            here.append((offset, level))
        return found


class Waits:
    """Finds how each load of a kernel is waited for."""

    def __init__(self, code: Code) -> None:
        self.code, self.words = code, words_of(code)
        self._held = words_held(code, self.words)
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
        flow, inside = self.code.flow, [each for block in blocks for each in block.instructions]
        hiding = {space for each in inside if (space := _space(each)) is not None and not each.has("nc")}
        places = _Places(inside)
        free = set() if loop is None else {each for space in hiding for each in places.unstored(space)}
        way = _Way(carried=_carried(inside) if loop is not None else set(), free=free)
        for block in blocks:
            before = flow.predecessors[block.number]
            way.follow(block, hiding, self._is_branched_to(block), self._deciding(block), before)
        unrolled = 1
        if loop is not None and _is_short(inside) and len(loop.blocks) == 1 and self._counts_by_number(blocks[0]):
            again = _Way(depths=way.depths, free=free)
            again.follow(blocks[0], hiding)
            unrolled = UNROLLED if again.levels == way.levels else 1
        brought = {each: sum(self.words.get(name, 1) for name in written(each)) for each in way.levels}
        room = self._room(loop)
        words: Counter[tuple[str | None, int]] = Counter()
        for each, level in way.levels.items():
            # Where there is hardly any room, addresses take turns in the registers of those that are done with.
            is_narrow = room == FEWEST and each in way.following
            address = ADDRESS if each in way.following and not is_narrow else self._of_address(each, places)
            words[_space(each), level] += brought[each] + (0 if is_narrow else address)
        # What is computed from what was loaded stays in registers as long, however soon shared memory answers.
        # Copies whose loads come one after the other are done so, too.
        copies = unrolled * _copies(way.levels) / max(way.levels.values(), default=1) if loop is not None else 1.0
        held = min(max(sum(brought.values()) * unrolled / room, 1.0), max(copies, 1.0))
        left = left_beside(self._live(loop, self._held)) if loop is not None else MOST_UNDER_WAY
        tight = min(max(sum(brought.values()) * unrolled / left, 1.0), max(copies, 1.0))
        moved = moved_at_once(inside) if loop is not None else []
        in_turn = max(tight, min(len(moved) / room, _copies(moved)) * unrolled)
        depth = in_turn * way.longest / (1 if way.is_stopped or "global" in way.hidden else unrolled)
        if loop is None:
            self._share_levels(way, [each for each in blocks if _is_predicated(each)], _SPACES)
        elif not way.is_stopped:
            self._share_levels(way, blocks, [space for space in _SPACES if space not in way.hidden], loop)
        seen = places.again(way.levels)
        for each, level in way.levels.items():
            space = _space(each)
            together = 1 if way.stops(each) else unrolled
            # Shared memory answers while others of its loads are issued, be they many.
            rounds = held if space == "shared" else max(1.0, words[space, level] * together / room)
            self._found[each] = Wait(rounds / together, level, depth, is_again=each in seen)

    def _share_levels(
        self, way: _Way, blocks: Iterable[Block], spaces: Iterable[str], loop: Loop | None = None
    ) -> None:
        """Notes blocks whose loads come at the same levels, one after the other, and share waits so."""
        for space in spaces:
            for block in blocks:
                levels = frozenset(way.levels[each] for each in block.instructions if _space(each) == space)
                if len(levels) == 1 or (loop is not None and levels):
                    self._shared[block.number, space] = loop, levels

    def _is_branched_to(self, block: Block) -> bool:
        """Returns whether a branch is left before a block: not where it goes on from one block, is executed under a
        predicate, or comes behind such a one."""
        flow = self.code.flow
        before = flow.predecessors[block.number]
        if len(before) == 1:
            return len(flow.blocks[before[0]].successors) > 1 and not self._is_predicated_side(block)
        above = flow.dominators[block.number]
        return not all(each == above or self._is_predicated_side(flow.blocks[each]) for each in before)

    def _deciding(self, block: Block) -> Iterator[int]:
        """Yields the blocks above one whose conditions decide whether it is executed."""
        flow = self.code.flow
        own = {block.number}
        at: int | None = flow.dominators[block.number]
        while at is not None:
            if len(flow.blocks[at].successors) > 1 and flow.meeting[at] not in own:
                yield at
            own.add(at)
            at = flow.dominators[at] if at != 0 else None

    def _is_predicated_side(self, block: Block) -> bool:
        """Returns whether a block is executed under a predicate: both ways from the branch above meet behind short
        blocks, or one leads there at once."""
        flow = self.code.flow
        above = self._branch_above(block)
        if above is None or block.number == flow.meeting[above]:
            return False
        sides = [self._side(each, flow.meeting[above]) for each in flow.blocks[above].successors]
        return all(side is not None for side in sides) and any(block.number in side for side in sides if side)

    def _branch_above(self, block: Block) -> int | None:
        """Returns the block with the branch that one way leads from to a block, and no other."""
        flow = self.code.flow
        number = block.number
        for _ in range(MOST_OF_SIDE):
            before = flow.predecessors[number]
            if len(before) != 1 or len(flow.blocks[before[0]].successors) == 2:
                return before[0] if len(before) == 1 else None
            number = before[0]
        return None

    def _side(self, number: int, meeting: int) -> list[int] | None:
        """Returns the blocks from one on to where ways meet again; None where they are long, or others come there."""
        flow = self.code.flow
        found: list[int] = []
        while number != meeting:
            block = None if number == EXIT or len(found) == MOST_OF_SIDE else flow.blocks[number]
            if block is None or len(flow.predecessors[number]) != 1 or len(block.successors) != 1:
                return None
            if not _is_predicated(block):
                return None
            found.append(number)
            number = block.successors[0]
        return found

    def _of_address(self, load: Instruction, places: _Places) -> int:
        """Returns the words that the address of a load takes which a loop moves by steps of 64 bits, in two halves;
        one whose step is the wide product of a stride is moved by one instruction, whose registers are free at once."""
        base, _ = places.of(load)
        for each in places.writing.get(base, ()):
            if each.opcode == "add" and isinstance(step := each.operands[2], Register):
                given = {other.opcode for other in self.code.dataflow.definitions.get(step.name, ())}
                return 1 if given.isdisjoint(("mul", "mad")) else 0
        return 0

    def _counts_by_number(self, block: Block) -> bool:
        """Returns True if a loop of one block goes on as long as a register says that moves by a number."""
        deciding = block.guard.register if block.guard is not None else None
        compared = {
            operand
            for each in block.instructions
            if each.opcode == "setp" and deciding in each.operands[:1]
            for operand in each.operands[1:]
        }
        return any(
            each.opcode in ("add", "sub") and each.operands[0] in compared and self._is_number(each.operands[2], block)
            for each in block.instructions
        )

    def _is_number(self, operand: Operand, block: Block) -> bool:
        """Returns whether an operand is a number, as the text says it there or on all ways to a block."""
        if not isinstance(operand, Register):
            return isinstance(operand, Immediate)
        flow, seen, waiting = self.code.flow, {block.number}, [block.number]
        while waiting:
            before = flow.predecessors[waiting.pop()]
            for number in before:
                giving = [each for each in flow.blocks[number].instructions if operand.name in written(each)]
                if giving and not (giving[-1].opcode == "mov" and isinstance(giving[-1].operands[-1], Immediate)):
                    return False
                if not giving and number not in seen:
                    waiting.append(number)
                seen.add(number)
        return operand.name in self.code.dataflow.definitions

    def _room(self, loop: Loop | None) -> float:
        """Returns the words that loads may bring at once, beside those that are live."""
        live = 0 if loop is None else self._live(loop, self.words)
        return min(max(ROOM - live, FEWEST), MOST_UNDER_WAY)

    def _live(self, loop: Loop, words: Mapping[str, int]) -> int:
        """Returns the words that are live at the beginning of a loop, by those of each register."""
        return sum(words.get(name, 0) for name in self.code.dataflow.alive[loop.header])


def _copies(loads: Iterable[Instruction]) -> int:
    """Returns how many iterations of its source a loop's body holds, by how often it has each load."""
    return gcd(*Counter(each.source for each in loads if each.source is not None).values()) or 1


def _is_short(instructions: Sequence[Instruction]) -> bool:
    """Returns whether a loop of these instructions is short enough for the assembler to write it out again."""
    return _length(instructions) <= (
        MOST_NEAR if {_space(each) for each in instructions} == {None, "shared"} else MOST_UNROLLED
    )


def _length(instructions: Sequence[Instruction]) -> int:
    """Returns how many instructions of the machine these become."""
    return sum(1 if each.has("ftz") or is_multiplied(each) else _LENGTHS.get(each.opcode, 1) for each in instructions)


def _is_predicated(block: Block) -> bool:
    """Returns whether a block is simple enough to be executed without a branch where a condition says so."""
    has_loads = any(_space(each) == "global" for each in block.instructions)
    most = MOST_PREDICATED if has_loads else MOST_WITHOUT_LOADS
    return _length(block.instructions) <= most and not any(map(_is_long, block.instructions))


def _is_long(instruction: Instruction) -> bool:
    """Returns whether an instruction becomes a loop, a call or a branch: atomics, quotients and exact divisions."""
    is_quotient = instruction.opcode in ("div", "rem") and not instruction.types[-1].is_float
    return is_quotient or instruction.opcode in ("atom", "red") or _is_exact(instruction)


def _space(instruction: Instruction) -> str | None:
    """Returns the memory that a load is from, if it is one that is waited for."""
    if instruction.opcode not in LOADS:
        return None
    return next((space for space in _SPACES if instruction.has(space)), None)


def _number_added(instruction: Instruction) -> int | None:
    """Returns the number that an instruction adds to a register; None for any other instruction."""
    match instruction.opcode, instruction.operands:
        case "add", (_, _, Immediate(value=int(number))):
            return number
    return None


def _carried(instructions: Iterable[Instruction]) -> set[str]:
    """Returns the registers that a loop's iteration reads before it writes them."""
    first: set[str] = set()
    after: set[str] = set()
    for each in instructions:
        first.update(name for name in read(each) if name not in after)
        after.update(written(each))
    return first & after


def _is_exact(instruction: Instruction) -> bool:
    if instruction.opcode not in _EXACT or not instruction.has("rn") or not instruction.types:
        return False
    return instruction.types[-1].is_float and instruction.types[-1].bits >= 32
