"""Says how many iterations of the source one of a loop of machine code does."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from math import gcd, prod
from typing import Any

from perfmodel.x86.counters import step_of, steps_of
from perfmodel.x86.instructions import Instruction
from perfmodel.x86.matching import Part, Turn
from perfmodel.x86.units import is_of_one

VECTOR = 0.5
"""A loop for single work-items has become one over vectors of its iterations where so many of its instructions on
registers of vectors have several numbers in them. What such a loop leaves may be done by another one, over shorter
vectors."""
UNSHARED, TOLD, NEARLY = 0.6, 0.4, 0.75
"""A loop does so many iterations at once if more than this part of its instructions are there that often, or nearly:
iterations share the others, such as loads of what lies side by side. Fewer are enough where its counter goes on by
exactly so many."""
MOST_COPIES = 64
_LONG = ("pd", "q")
"""Endings of instructions on vectors of 64-bit numbers."""
SMALLEST = 16
"""The bytes of the smallest registers for vectors."""
_PACKED = re.compile(r"vmovup[sd]|(?!vmov|vxor|vand|vor).*p[sd]|vp.*|vmovdq.*")
"""Instructions on such registers that hold several numbers; some of the others are for single numbers, too."""
_MOVING = re.compile(
    "vinsert|vpinsr|vextract|vpextr|vmov|vbroadcast|vpbroadcast|vpmovzx|vpmovsx|vperm|vshuf|vunpck|vpunpck|vblend"
    "|vpblend|mov|lea|call|nop|cmp|test"
)
"""Instructions of which there are several for one of the source, as they move lanes, or one for several."""
_FORM = re.compile("(?<=^cmov)[a-z]+|(?<=^set)[a-z]+|132|213|231")
"""Names of copies differ in this: in conditions, and in which operand a multiply-add writes to."""


class Copies:
    """Tells of each loop of a function how many iterations of the source one of its own does."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self._known: dict[tuple[int, bool], int] = {}

    def of(self, head: int, turn: Turn) -> int:
        """Returns how many iterations of the source one of a loop does: as often as most of its instructions are there,
        if the counter's step says the same, and as many as a vector holds if it is over vectors of its own."""
        key = head, turn.is_vector
        if key not in self._known:
            counts, steps = self._duplicates(head, turn), self._steps(head)
            copies = max((_copies(step, counts) for step in steps), default=1)
            widths = () if turn.is_vector else self._widths(head)
            fitting = (width for width in widths if any(step % (width * copies) == 0 for step in steps))
            self._known[key] = copies * next(fitting, 1)
        return self._known[key]

    def _widths(self, head: int) -> tuple[int, ...]:
        """Returns how many iterations a vector may hold in a loop over vectors of its own: numbers of 32 bits, or else
        of 64 where there are such; none of a loop that is no such one. The smallest vectors, and those that the source
        computes with, may be the source's, unless longer ones do other iterations of the same loop."""
        longest, loop = self._longest(head), self.part.matches.get(head)
        own = 0 if loop is None else self.part.source.loops[loop].vector_bytes
        if longest <= max(SMALLEST, own):
            rivals = (other for other, match in self.part.matches.items() if match == loop)
            longest = longest if any(self._longest(other) > longest for other in rivals) else 0
        has_long = any(each.name.endswith(_LONG) for each in self._on_vectors(head))
        return (longest // 4, longest // 8)[: 1 + has_long] if longest else ()

    def _longest(self, head: int) -> int:
        """Returns the bytes of the longest vectors of a loop that has become one over vectors of its iterations; 0 of
        any other, such as one with functions of single numbers, whose vectors are the source's own."""
        if any(is_of_one(each.callee) for block in self.part.flow.own(head) for each in block.instructions):
            return 0
        code = self._on_vectors(head)
        packed = [each.bytes for each in code if _is_packed(each)]
        return max(packed) if len(packed) > VECTOR * len(code) else 0

    def _on_vectors(self, head: int) -> list[Instruction]:
        return [each for block in self.part.flow.own(head) for each in block.instructions if each.bytes]

    def _steps(self, head: int) -> set[int]:
        """Returns by how much a loop's counter goes on, in steps of the source's loop if it is that one's."""
        loop = self.part.matches.get(head)
        step = 1 if loop is None else self.part.source.loops[loop].step or 1
        return {own // step if own % step == 0 else own for own in steps_of(self.part.flow, head)}

    def _duplicates(self, head: int, turn: Turn) -> list[int]:
        """Returns how often each instruction of a loop's own that does not move lanes is there, of those that each
        iteration executes if there are any: 64-bit ones come in pairs, and what lies in inner loops that were written
        out is there for each of their iterations."""
        part = self.part
        for numbers in (part.flow.always(head), [block.number for block in part.flow.own(head)]):
            counts: Counter[tuple[Any, ...]] = Counter()
            for number in numbers:
                code = part.flow.blocks[number].instructions
                for each, among in zip(code, part.candidates[number], strict=True):
                    if each.line and not each.jumps and not step_of(each) and not _MOVING.match(each.name):
                        told = part.source.most_executed(among, part.matches.get(head))
                        counts[told, each.calls, each.line, each.column, _FORM.sub("", each.name)] += 1
            if counts:
                break
        found: list[int] = []
        for (told, *_, name), count in counts.items():
            pairs = name[0] == "v" and name.endswith(_LONG)
            found.append(max(1, round(count / (2 if pairs else 1) / self._written_out(told, head, turn))))
        return found

    def _written_out(self, block: int | None, head: int, turn: Turn) -> float:
        """Returns how many iterations of the source's loops within a loop's own a block is executed in."""
        loop, source = self.part.matches.get(head), self.part.source
        around = source.blocks[block].loops if block is not None else ()
        inside = around[around.index(loop) + 1 :] if loop in around else ()
        return prod(source.loops[each].trips(turn.is_vector) for each in inside)


def _is_packed(each: Instruction) -> bool:
    return each.bytes > SMALLEST or _PACKED.fullmatch(each.name) is not None


def _copies(step: int, counts: Sequence[int]) -> int:
    """Returns how many iterations one of a loop does whose counter goes on by a step: the most that enough of its
    instructions are there for, and at least what most say that are there so often."""
    votes = Counter(gcd(step, count) for count in counts)
    told = max(votes, key=lambda n: (votes[n], -n), default=1)
    more = (n for n in range(min(step, MOST_COPIES), told, -1) if step % n == 0)

    def is_enough(n: int) -> bool:
        return sum(count >= NEARLY * n for count in counts) > (TOLD if n == step else UNSHARED) * len(counts)

    return next(filter(is_enough, more), told)
