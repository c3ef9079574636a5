"""Says how often each block of machine code is executed, by the lines of the source that it comes from.

A driver makes loops over the work-items of a group around a kernel's code, once for vectors of them and once for those
that are left; it copies loops' bodies, writes loops out, and moves instructions out of loops. So loops over work-items
are told from those of the source, each of these is matched to one of the source, and a block is executed as often as
the block of the source that most of its instructions come from, shared out over its copies.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil, floor, gcd, prod

from perfmodel.x86.flow import Block, Flow
from perfmodel.x86.object_code import Instruction
from perfmodel.x86.source import Source

OWN, ALL = 0.5, 0.75
"""So much of a loop's own instructions come from a loop of the source that it is; of all, where it has none of its
own."""
FEW = 2
"""Fewer instructions that are surely of one place say nothing."""
UNLIKE = 0.5
"""Loops that have so many of their lines in common do the same for other work-items."""
VECTOR = 0.3
"""A loop for single work-items with such a share of wide instructions has become one over vectors of its iterations."""
WIDE = 32
"""Bytes of registers that only code for vectors of work-items or iterations uses so much."""
SHARE = 0.2
"""A block is executed as often as the most frequent of the source's blocks that so many of its instructions come from:
what conditions decide is often done under masks, or for nothing."""
_MOVING = re.compile(
    "vinsert|vpinsr|vextract|vpextr|vmov|vbroadcast|vpbroadcast|vpmovzx|vpmovsx|vperm|vshuf|vunpck|vpunpck|vblend"
    "|vpblend|mov|lea|call|nop|cmp|test"
)
"""Instructions of which there are several for one of the source, as they move lanes, or one for several."""


@dataclass
class Part:
    """Tells of one function which loops go over work-items, and which loops of the source the others are.

    Attributes:
        is_kernel: whether it is the kernel itself rather than a function that it calls.
        meets: whether work-items meet in it, so that pieces between barriers have loops of their own.
        over_items: the loops over work-items, by their heads.
        matches: the loop of the source that each other loop is; None for none.
    """

    flow: Flow
    source: Source
    is_kernel: bool
    meets: bool
    over_items: set[int] = field(default_factory=set)
    matches: dict[int, int | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        found = {head: self._loop_of(head) for head in self.flow.loops}
        if self.is_kernel:
            self.over_items = self._over_items(found)
        self.matches = {head: None if head in self.over_items else found[head] for head in found}
        self._match_written_out()

    @cached_property
    def candidates(self) -> dict[int, list[tuple[int, ...]]]:
        """The blocks of the source that each instruction of a block may come from."""
        known = self.source.candidates
        return {
            number: [known(each.file, each.line, each.column) for each in block.instructions]
            for number, block in self.flow.blocks.items()
        }

    def _loop_of(self, head: int) -> int | None:
        """Returns the innermost loop of the source that most of a loop's own instructions come from."""
        own = [among for block in self.flow.own(head) for among in self.candidates[block.number] if among]
        found, told = self._common(own, OWN, surely=True)
        if told < FEW or found is None:
            other, others = self._common(own, OWN)
            found, told = (other, others) if others else (found, told)
        if not told:
            inside = (number for number in self.flow.loops[head].blocks)
            found, _ = self._common([among for n in inside for among in self.candidates[n] if among], ALL)
        return found

    def _common(
        self, instructions: Iterable[tuple[int, ...]], share: float, surely: bool = False
    ) -> tuple[int | None, int]:
        """Returns the innermost loop that such a share of instructions lies in, and how many were asked: if `surely`,
        those of one loop that are no test of it, which may stand before the loop as well."""
        counts: Counter[int] = Counter()
        told = 0
        blocks = self.source.blocks
        for among in instructions:
            chains = [blocks[n].loops[:-1] if surely and blocks[n].is_test else blocks[n].loops for n in among]
            if surely and (
                any(set(chain) != set(chains[0]) for chain in chains) or all(blocks[n].is_test for n in among)
            ):
                continue
            told += 1
            counts.update({loop for chain in chains for loop in chain})
        most = [loop for loop, count in counts.items() if count >= share * told]
        return max(most, key=lambda n: (len(self.source.loops[n].outer), counts[n]), default=None), told

    def _over_items(self, found: Mapping[int, int | None]) -> set[int]:
        """Returns the loops over work-items: as many around each other as the launch has axes; between barriers, those
        that go back where work-items meet or the kernel ends."""
        axes = len(self.source.local_size)
        over: set[int] = set()
        if not self.source.uses_ids and not self.meets:
            return {head for head in found if found[head] is None and self._is_outermost(head, over)}
        deepest = max((len(around) for around in self.flow.around.values()), default=0)
        for head in self.flow.loops:
            if self.meets:
                is_over = self.flow.outer(head) is None or self._goes_back(head)
            elif not self._is_outermost(head, over):
                is_over = False
            elif deepest < axes:
                is_over = found[head] is None
            else:
                is_over = len(self.flow.around[head]) <= axes
            if is_over:
                over.add(head)
        return over

    def _goes_back(self, head: int) -> bool:
        """Returns whether a loop goes back where work-items meet, or the kernel ends."""
        latches = (self.flow.blocks[number].instructions[-1] for number in self.flow.loops[head].latches)
        return any(
            self.source.is_meeting(each.file, each.line) or not self.source.has_line(each.file, each.line)
            for each in latches
        )

    def _is_outermost(self, head: int, over: Collection[int]) -> bool:
        outer = self.flow.outer(head)
        return outer is None or outer in over

    def _match_written_out(self) -> None:
        """Matches a loop that has an inner loop of the source written out in it with the outer one: where the inner
        one's code is there once, it is not the outer one's that is written out."""
        beside: Counter[tuple[int | None, int | None]] = Counter()
        for head, loop in self.matches.items():
            beside[self.flow.outer(head), loop] += 1
        for head, loop in list(self.matches.items()):
            if loop is None or beside[self.flow.outer(head), loop] > 1:
                continue
            outer = self.flow.outer(head)
            around = self.matches.get(outer) if outer is not None else None
            outside = self.source.loops[loop].outer
            between = outside if around is None else outside[outside.index(around) + 1 :] if around in outside else ()
            if between:
                self.matches[head] = between[0]

    def turn(self, number: int) -> int | None:
        """Returns the innermost loop over work-items around a block."""
        return next((head for head in self.flow.around[number] if head in self.over_items), None)

    @cached_property
    def innermost(self) -> list[int]:
        """The loops over work-items that have no such loop in them."""
        return [
            head
            for head in self.over_items
            if not any(other != head and other in self.flow.loops[head].blocks for other in self.over_items)
        ]

    def level(self, head: int) -> int:
        """Returns how many loops over work-items lie in one, one around the other."""
        depths = [
            sum(each in self.flow.loops[head].blocks for each in self.flow.around[inner] if each in self.over_items)
            for inner in self.innermost
            if inner in self.flow.loops[head].blocks
        ]
        return max(depths, default=1) - 1


@dataclass(frozen=True)
class Turn:
    """Tells how a loop over work-items goes: in vectors or one by one, and what share of all that is to do."""

    is_vector: bool
    share: float


def turns_of(part: Part, lanes: int, is_vectorized: bool) -> dict[int, Turn]:
    """Returns how each innermost loop over work-items goes; of two that do the same, the one with more wide
    instructions of its own goes in vectors, and the other one does what is left.

    Args:
        lanes: work-items of a vector.
        is_vectorized: whether there are vectors at all.
    """
    width, items = part.source.local_size[0], prod(part.source.local_size)
    full = width // lanes * (items // width) / ceil(items / lanes)  # of those that were counted
    left = width % lanes / width
    wide = {head: _wide(part.flow.own(head)) for head in part.innermost}
    lines = {head: _lines(part.flow, head) for head in part.innermost}
    found: dict[int, Turn] = {}
    for head in part.innermost:
        if part.meets:
            found[head] = Turn(is_vectorized, 1.0)
            continue
        twins = [
            other
            for other in part.innermost
            if other != head and len(lines[other] & lines[head]) >= UNLIKE * min(len(lines[other]), len(lines[head]))
        ]
        if not is_vectorized or not full:
            is_narrowest = all(wide[head] <= wide[other] for other in twins)
            found[head] = Turn(False, 1.0 if is_narrowest else 0.0)
        elif twins:
            is_vector = all(wide[head] >= wide[other] for other in twins)
            found[head] = Turn(is_vector, full if is_vector else left)
        else:
            found[head] = Turn(wide[head] > 0, full if wide[head] > 0 else 1.0)
    return found


def _wide(blocks: Iterable[Block]) -> float:
    instructions = [each for block in blocks for each in block.instructions]
    return sum(each.bytes >= WIDE for each in instructions) / max(len(instructions), 1)


def _lines(flow: Flow, head: int) -> set[tuple[str, int]]:
    blocks = (flow.blocks[number] for number in flow.loops[head].blocks)
    return {(each.file, each.line) for block in blocks for each in block.instructions if each.line}


class Executed:
    """Finds out how often each block of a function is executed in a work-group, on average.

    Args:
        once: how often the function is entered.
        by_default: how code goes that lies in no loop over work-items.
        lanes: work-items of a vector.

    Attributes:
        times: by the numbers of the blocks.
    """

    def __init__(self, part: Part, turns: Mapping[int, Turn], once: float, by_default: Turn, lanes: int) -> None:
        self.part, self.turns, self.once, self.by_default, self.lanes = part, turns, once, by_default, lanes
        self.times: dict[int, float] = {}
        last: dict[int | None, int] = {}
        for number in sorted(part.flow.blocks):
            self.times[number] = self._times(number, last)

    def turn(self, number: int) -> Turn:
        """Returns how the loop over work-items goes that a block lies in."""
        over = self.part.turn(number)
        return self.by_default if over is None else self.turns.get(over, self.by_default)

    def _times(self, number: int, last: dict[int | None, int]) -> float:
        part, flow, source = self.part, self.part.flow, self.part.source
        inner, over = flow.innermost(number), part.turn(number)
        loop = None if inner is None or inner in part.over_items else part.matches[inner]
        if over is None and part.is_kernel and loop is None:
            return self.once
        if over is not None and not part.meets and (level := part.level(over)) > 0:
            sizes = (*source.local_size, 1, 1)
            return float(sizes[1] * sizes[2] if level == 1 else sizes[2])
        turn = self.turn(number)
        if loop is not None and inner is not None:
            main = self._main(inner, loop, over, turn)
            if main != inner:
                return self._left(loop, main, inner, turn)
        votes: Counter[int] = Counter()
        for among in part.candidates[number]:
            told = source.most_executed(among, loop)
            if told is not None:
                votes[told] += 1
        if votes:
            enough = min(SHARE * votes.total(), max(votes.values()))
            told_by = [block for block, count in votes.items() if count >= enough]
            last[inner] = max(told_by, key=lambda block: (self._of_source(block, inner, loop, turn), votes[block]))
        if inner not in last:
            return self._unknown(number, inner, loop, turn)
        return self._of_source(last[inner], inner, loop, turn)

    def _of_source(self, block: int, inner: int | None, loop: int | None, turn: Turn) -> float:
        """Returns how often code of a block of the source is executed in a loop, the loops written out in there
        once."""
        source, told = self.part.source, self.part.source.blocks[block]
        times = told.executions.of(turn.is_vector)
        if self.part.is_kernel and told.meets_in is not None:
            times /= self._pieces[told.meets_in]
        around = told.loops[told.loops.index(loop) + 1 :] if loop in told.loops else told.loops
        for written_out in around:
            times /= source.loops[written_out].trips(turn.is_vector)
        if loop is not None and inner is not None:
            times /= self._outside(inner, loop, turn)
            copies = self.copies(inner, turn)
            trips = source.loops[loop].trips(turn.is_vector)
            if copies > 1:
                times *= floor(trips / copies) / trips
        return times * turn.share

    def _unknown(self, number: int, inner: int | None, loop: int | None, turn: Turn) -> float:
        """Returns how often code is executed of which no instruction has a place."""
        if inner is not None and inner not in self.part.over_items and loop is None:
            return self.times.get(number - 1, 0.0)
        if inner is None:
            return self.once
        return prod(self.part.source.local_size) / (self.lanes if turn.is_vector else 1) * turn.share

    @cached_property
    def _pieces(self) -> dict[int, int]:
        """The number of pieces of code between barriers that statements are in of each loop with barriers: several
        where the loop was written out."""
        source = self.part.source
        spread: dict[int, Counter[int | None]] = defaultdict(Counter)
        for number, candidates in self.part.candidates.items():
            over = self.part.turn(number)
            for each, among in zip(self.part.flow.blocks[number].instructions, candidates, strict=True):
                likely = source.most_executed(among)
                if likely is not None and not source.is_meeting(each.file, each.line):
                    spread[likely][over] += 1
        found: dict[int, int] = defaultdict(lambda: 1)
        for block, by_piece in spread.items():
            told = source.blocks[block]
            loop = told.meets_in
            if loop is not None and not told.is_test:  # which may stand before the loop as well
                pieces = sum(2 * count >= max(by_piece.values()) for count in by_piece.values())
                found[loop] = max(found[loop], pieces)
        return found

    def _main(self, inner: int, loop: int, over: int | None, turn: Turn) -> int:
        """Returns the loop that does most of a source's loop, of those that do not lie in each other: the one with most
        copies of its body; others do what is left of its iterations."""
        flow = self.part.flow
        rivals = [
            head
            for head, match in self.part.matches.items()
            if match == loop
            and self.part.turn(head) == over
            and (head == inner or (head not in flow.around[inner] and inner not in flow.around[head]))
        ]
        sizes = {head: sum(map(bool, self._candidates_of(head))) for head in rivals}
        best = max(rivals, key=lambda head: (self.copies(head, turn), sizes[head]), default=inner)
        return best if self.copies(best, turn) > self.copies(inner, turn) else inner

    def _candidates_of(self, head: int) -> Iterable[tuple[int, ...]]:
        for block in self.part.flow.own(head):
            yield from self.part.candidates[block.number]

    def _left(self, loop: int, main: int, inner: int, turn: Turn) -> float:
        """Returns how often the body of a loop is executed that does what another one has left."""
        told = self.part.source.loops[loop]
        trips, copies = told.trips(turn.is_vector), self.copies(main, turn)
        left = trips - floor(trips / copies) * copies
        begun = told.begun.of(turn.is_vector) / self._outside(inner, loop, turn)
        return begun * left * turn.share / self.copies(inner, turn)

    def _outside(self, inner: int, loop: int, turn: Turn) -> float:
        """Returns the iterations of the source's loops that were written out around a loop: it is there once for
        each."""
        outside = self.part.source.loops[loop].outer
        for head in self.part.flow.around[inner][1:]:
            around = self.part.matches.get(head)
            if around in outside:
                outside = outside[outside.index(around) + 1 :]
                break
        return prod(self.part.source.loops[each].trips(turn.is_vector) for each in outside)

    def copies(self, head: int, turn: Turn) -> int:
        """Returns how many iterations of the source one of a loop does: as often as most of its instructions are there,
        if the counter's step says the same, and as many as a vector holds if it has become one."""
        key = head, turn.is_vector
        if key not in self._copies:
            there, steps = _duplicates(self.part.flow.own(head)), _steps(self.part.flow.own(head))
            copies = max((gcd(step, there) for step in steps), default=1)
            is_wide = not turn.is_vector and _wide(self.part.flow.own(head)) > VECTOR
            is_wide = is_wide and any(step % (self.lanes * copies) == 0 for step in steps)
            self._copies[key] = min(copies, there) * (self.lanes if is_wide else 1)
        return self._copies[key]

    @cached_property
    def _copies(self) -> dict[tuple[int, bool], int]:
        return {}


def _duplicates(blocks: Iterable[Block]) -> int:
    """Returns how often most instructions are there, of those that do not move lanes; 64-bit ones come in pairs."""
    counts: Counter[tuple[str, int, int, str]] = Counter()
    for block in blocks:
        for each in block.instructions:
            if each.line and not each.jumps and not _step(each) and not _MOVING.match(each.name):
                counts[each.file, each.line, each.column, each.name] += 1
    times: Counter[int] = Counter()
    for (_, _, _, name), count in counts.items():
        times[max(1, count // 2) if name[0] == "v" and name.endswith(("pd", "q")) else count] += 1
    return max(times, key=lambda n: (times[n], -n), default=1)


def _steps(blocks: Iterable[Block]) -> set[int]:
    """Returns by how much the registers of a loop that may count go up or down."""
    found: set[int] = set()
    for block in blocks:
        for each in block.instructions:
            if step := _step(each):
                found.add(step)
    return found


def _step(each: Instruction) -> int:
    if each.name in ("inc", "dec"):
        return 1
    if each.name in ("add", "sub", "lea") and each.constant is not None:
        return abs(each.constant)
    return 0
