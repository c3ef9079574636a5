"""Says which loops of machine code go over work-items, and which loops of the source the others are.

A driver makes loops over the work-items of a group around a kernel's code, once for vectors of them and once for those
that are left. All other loops are the source's, of which some were written out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil, prod

from perfmodel.x86.counters import steps_of
from perfmodel.x86.flow import Flow
from perfmodel.x86.instructions import Instruction
from perfmodel.x86.source import Source

OWN, ALL = 0.5, 0.75
"""So much of a loop's own instructions come from a loop of the source that it is; of all, where it has none of its
own."""
FEW = 2
"""Fewer instructions that are surely of one place say nothing."""
UNLIKE = 0.5
"""Loops that have so many of their lines in common do the same for other work-items."""
WIDE = 32
"""Bytes of registers that only code for vectors of work-items or iterations uses so much."""


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
        tested = {head: self._tested(head) for head in self.flow.loops if head not in self.over_items}
        self.matches = {
            head: None if head in self.over_items else found[head] if tested[head] is None else tested[head]
            for head in found
        }
        self._match_written_out([head for head in tested if tested[head] is None])

    @cached_property
    def candidates(self) -> dict[int, list[tuple[int, ...]]]:
        """The blocks of the source that each instruction of a block may come from."""
        known = self.source.candidates
        return {
            number: [known(each.file, each.line, each.column, each.calls) for each in block.instructions]
            for number, block in self.flow.blocks.items()
        }

    def _tested(self, head: int) -> int | None:
        """Returns the loop of the source whose test or step the jumps back to a loop's head come from; None where they
        come from several, or from none."""
        latches = [self.flow.blocks[number] for number in self.flow.loops[head].latches]
        asked = [self.candidates[latch.number][place] for latch in latches for place in latch.deciding]
        blocks = [self.source.blocks[n] for among in asked for n in among]
        tested = {block.tests for block in blocks if block.tests in block.loops}
        return tested.pop() if len(tested) == 1 else None

    def _loop_of(self, head: int) -> int | None:
        """Returns the innermost loop of the source that most of a loop's own instructions come from."""
        found, told = self._surely_of(head)
        if found is None:
            other, others = self._common(self._own(head), OWN)
            found, told = (other, others) if others else (found, told)
        if not told:
            inside = (number for number in self.flow.loops[head].blocks)
            found, _ = self._common([among for n in inside for among in self.candidates[n] if among], ALL)
        return found

    def _own(self, head: int) -> list[tuple[int, ...]]:
        """Returns the blocks of the source that a loop's own instructions may come from."""
        return [among for block in self.flow.own(head) for among in self.candidates[block.number] if among]

    def _surely_of(self, head: int) -> tuple[int | None, int]:
        """Returns the loop of the source, in which nobody meets, that a loop is by instructions which are of one place,
        and how many these are; None where too few say so."""
        found, told = self._common(self._own(head), OWN, surely=True)
        return (None if told < FEW else found), told

    def _common(
        self, instructions: Iterable[tuple[int, ...]], share: float, surely: bool = False
    ) -> tuple[int | None, int]:
        """Returns the innermost loop that such a share of instructions lies in, and how many were asked: if `surely`,
        those of one loop that are no test of it, which may stand before the loop as well."""
        counts: Counter[int] = Counter()
        told = 0
        blocks = self.source.blocks
        for among in instructions:
            chains = [
                tuple(loop for loop in blocks[n].loops if loop != blocks[n].tests) if surely else blocks[n].loops
                for n in among
            ]
            if surely and (
                any(set(chain) != set(chains[0]) for chain in chains) or all(blocks[n].tests is not None for n in among)
            ):
                continue
            told += 1
            counts.update({loop for chain in chains for loop in chain})
        most = [loop for loop, count in counts.items() if count >= share * told]
        return max(most, key=lambda n: (len(self.source.loops[n].outer), counts[n]), default=None), told

    def _over_items(self, found: Mapping[int, int | None]) -> set[int]:
        """Returns the loops over work-items: as many around each other as the launch has axes; between barriers, those
        that go back where work-items meet or the kernel ends, but for those in a loop in which nobody meets."""
        axes = len(self.source.local_size)
        over: set[int] = set()
        if not self.source.uses_ids and not self.meets:
            return {head for head in found if found[head] is None and self._is_outermost(head, over)}
        deepest = max((len(around) for around in self.flow.around.values()), default=0)
        for head in self.flow.loops:
            if self.meets:
                outer = self.flow.outer(head)
                is_within = outer is not None and outer not in over and self._surely_of(outer)[0] is not None
                is_over = outer is None or (self._goes_back(head) and not is_within)
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

    def _match_written_out(self, heads: Iterable[int]) -> None:
        """Matches those loops that have an inner loop of the source written out in them with the outer one: where the
        inner one's code is there once, it is not the outer one's that is written out."""
        beside: Counter[tuple[int | None, int | None]] = Counter()
        for head, loop in self.matches.items():
            beside[self.flow.outer(head), loop] += 1
        for head in heads:
            loop = self.matches[head]
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
    """Returns how each innermost loop over work-items goes; of two that do the same, the one that counts by vectors, or
    has more wide instructions of its own, goes in vectors, and the other one does what is left.

    Args:
        lanes: work-items of a vector.
        is_vectorized: whether there are vectors at all.
    """
    width, items = part.source.local_size[0], prod(part.source.local_size)
    full = width // lanes * (items // width) / ceil(items / lanes)  # of those that were counted
    left = width % lanes / width
    flow = part.flow
    wide = {
        head: (
            lanes in steps_of(flow, head),
            _wide_share(each for block in flow.own(head) for each in block.instructions),
            _wide_share(each for block in flow.loops[head].blocks for each in flow.blocks[block].instructions),
        )
        for head in part.innermost
    }
    lines = {head: _lines(flow, head) for head in part.innermost}
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
            found[head] = Turn(any(wide[head][:2]), full if any(wide[head][:2]) else 1.0)
    return found


def _wide_share(code: Iterable[Instruction]) -> float:
    """Returns the share of instructions that have wide registers."""
    wide = [each.bytes >= WIDE for each in code]
    return sum(wide) / max(len(wide), 1)


def _lines(flow: Flow, head: int) -> set[tuple[str, int]]:
    blocks = (flow.blocks[number] for number in flow.loops[head].blocks)
    return {(each.file, each.line) for block in blocks for each in block.instructions if each.line}
