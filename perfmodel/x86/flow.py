"""Finds the basic blocks of machine code, the ways between them, and loops by what dominates what."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from perfmodel.basics.graphs import dominates, immediate_dominators, reached
from perfmodel.x86.instructions import JUMPS_ALWAYS, Instruction

_ENDS = ("ret", "ud2", "hlt")


@dataclass(frozen=True)
class Block:
    """Instructions that are executed one after the other, all equally often; it is known by its number in the code."""

    number: int
    instructions: tuple[Instruction, ...]
    following: tuple[int, ...]

    @property
    def deciding(self) -> list[int]:
        """The places of the last instruction, if it jumps, and of the one that decides whether it does."""
        code, last = self.instructions, len(self.instructions) - 1
        if not code[last].jumps:
            return []
        before = next((place for place in range(last - 1, -1, -1) if "flags" in code[place].writes), last)
        return [last, before] if "flags" in code[last].reads else [last]


@dataclass(frozen=True)
class Loop:
    """A natural loop: `head` is the number of its first block, `blocks` those of all, inner loops' among them.

    `latches` are the blocks that go back to the head.
    """

    head: int
    blocks: frozenset[int]
    latches: tuple[int, ...]


class Flow:
    """The blocks of a function that are reached, and its loops."""

    def __init__(self, code: Sequence[Instruction]) -> None:
        cut = _by_tables(_cut(code))
        live = reached([0], lambda number: cut[number].following) if cut else set()
        self.blocks = {block.number: block for block in cut if block.number in live}

    @cached_property
    def _before(self) -> dict[int, list[int]]:
        before: dict[int, list[int]] = {number: [] for number in self.blocks}
        for block in self.blocks.values():
            for number in block.following:
                before[number].append(block.number)
        return before

    @cached_property
    def _dominators(self) -> dict[int, int]:
        return immediate_dominators(0, lambda number: self.blocks[number].following, self._before.__getitem__)

    @cached_property
    def loops(self) -> dict[int, Loop]:
        """The loops by their heads, outer ones first."""
        before, dominators = self._before, self._dominators
        bodies: dict[int, set[int]] = {}
        latches: dict[int, list[int]] = {}
        for block in self.blocks.values():
            for head in block.following:
                if dominates(dominators, head, block.number):
                    latches.setdefault(head, []).append(block.number)
                    body = bodies.setdefault(head, {head})
                    body |= reached([block.number], lambda n, h=head: () if n == h else before[n])  # type: ignore[misc]
        ordered = sorted(bodies.items(), key=lambda each: (-len(each[1]), each[0]))
        return {head: Loop(head, frozenset(body), tuple(latches[head])) for head, body in ordered}

    @cached_property
    def around(self) -> dict[int, tuple[int, ...]]:
        """The heads of the loops around each block, the innermost first."""
        found: dict[int, tuple[int, ...]] = dict.fromkeys(self.blocks, ())
        for loop in self.loops.values():
            for number in loop.blocks:
                found[number] = (loop.head, *found[number])
        return found

    def before(self, number: int) -> list[int]:
        """Returns the blocks that lead to another one."""
        return self._before[number]

    def innermost(self, number: int) -> int | None:
        return next(iter(self.around[number]), None)

    def own(self, head: int | None) -> list[Block]:
        """Returns the blocks of a loop that lie in no loop within it, in their order; those in no loop for None."""
        inside = self.blocks if head is None else self.loops[head].blocks
        return [self.blocks[n] for n in sorted(inside) if self.innermost(n) == head]

    def is_always_executed(self, number: int) -> bool:
        """Returns whether a block is executed in each iteration of its innermost loop, or where it lies in none,
        whenever the function is."""
        head = self.innermost(number)
        ends = self._returning if head is None else self.loops[head].latches
        return all(self.dominates(number, end) for end in ends)

    def is_on_one_way(self, one: int, other: int, head: int) -> bool:
        """Returns whether control may come to both blocks in one iteration of a loop around them."""
        return any(
            end in reached([start], lambda n: (each for each in self.blocks[n].following if each != head))
            for start, end in ((one, other), (other, one))
        )

    def sides(self, number: int) -> tuple[int, ...]:
        """Returns the blocks after another one, if one of several is executed after it, and after nothing else."""
        following = self.blocks[number].following
        return following if len(following) > 1 and all(self._before[each] == [number] for each in following) else ()

    def dominates(self, above: int, below: int) -> bool:
        """Returns whether every way to a block goes through another one, or itself."""
        return dominates(self._dominators, above, below)

    def always(self, head: int) -> list[int]:
        """Returns the blocks of a loop, but for inner ones', that each iteration executes."""
        return [block.number for block in self.own(head) if self.is_always_executed(block.number)]

    @cached_property
    def _returning(self) -> tuple[int, ...]:
        return tuple(number for number, block in self.blocks.items() if not block.following)

    def only_with(self, head: int) -> set[int]:
        """Returns the blocks beside a loop, in the one around it, that control comes to, or leaves, by that loop alone:
        what prepares it, and what goes on with its results."""
        own = self.loops[head].blocks
        beside = {number for number, around in self.around.items() if around == self.around[head][1:]}
        found: set[int] = set()
        more = beside
        while more:
            among = own | found
            ways = {number: (self._before[number], self.blocks[number].following) for number in beside - found}
            more = {number for number, sides in ways.items() if any(each and among.issuperset(each) for each in sides)}
            found |= more
        return found

    def outer(self, head: int) -> int | None:
        """Returns the loop around another one."""
        return next(iter(self.around[head][1:]), None)


def _by_tables(blocks: Sequence[Block]) -> list[Block]:
    """Returns blocks with the ways of jumps to places that a table holds, as of a switch: to all blocks behind one that
    nothing else leads to, up to the next such jump; what only fills the room before a place that others jump to is
    none."""
    known = {number for block in blocks for number in block.following}
    found = list(blocks)
    last: int | None = None
    for block in blocks:
        if last is not None and block.number not in known and any(each.name != "nop" for each in block.instructions):
            found[last] = replace(found[last], following=(*found[last].following, block.number))
        final = block.instructions[-1]
        if final.name in JUMPS_ALWAYS and final.target is None:
            last = block.number
    return found


def _cut(code: Sequence[Instruction]) -> list[Block]:
    """Returns code cut into blocks; a jump to what was left out goes to what comes behind it."""
    if not code:
        return []
    addresses = [each.address for each in code]
    first, last = addresses[0], addresses[-1]
    starts = {0}
    for place, each in enumerate(code):
        if each.jumps or each.name in _ENDS:
            starts.add(place + 1)
            if each.target is not None and first <= each.target <= last:
                starts.add(bisect_left(addresses, each.target))
    ordered = sorted(start for start in starts if start < len(code))
    found = []
    for number, start in enumerate(ordered):
        end = ordered[number + 1] if number + 1 < len(ordered) else len(code)
        instructions = tuple(code[start:end])
        final = instructions[-1]
        following = []
        if final.name not in _ENDS and final.name not in JUMPS_ALWAYS and number + 1 < len(ordered):
            following.append(number + 1)
        if final.jumps and final.target is not None and first <= final.target <= last:
            following.append(bisect_right(ordered, bisect_left(addresses, final.target)) - 1)
        found.append(Block(number, instructions, tuple(dict.fromkeys(following))))
    return found
