"""Finds the loops of machine code, which lie in one piece from where a branch goes back to, up to that branch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perfmodel.sass.reading import Instruction

BRANCHES = frozenset(("BRA", "BRX", "JMP"))


@dataclass(frozen=True, eq=False)
class Loop:
    """A loop by the places of its first and last instruction, with those of others in it.

    Attributes:
        depth: how many loops it lies in, itself included.
        own: its instructions, without those of loops in it.
    """

    first: int
    last: int
    depth: int
    own: tuple[Instruction, ...]
    is_innermost: bool


def loops_of(code: Sequence[Instruction]) -> list[Loop]:
    """Returns the loops in the order of their first instructions, outer ones first."""
    ends: dict[int, int] = {}
    for each in code:
        is_back = each.opcode in BRANCHES and each.target is not None and each.target <= each.place
        if is_back and each.target != each.place:  # behind the last instruction stands one that branches to itself
            ends[each.target or 0] = max(ends.get(each.target or 0, 0), each.place)
    spans = sorted(ends.items(), key=lambda span: (span[0], -span[1]))
    return [_loop(code, span, spans) for span in spans]


def outside(code: Sequence[Instruction], loops: Sequence[Loop]) -> tuple[Instruction, ...]:
    """Returns the instructions that lie in no loop."""
    return tuple(each for each in code if not any(loop.first <= each.place <= loop.last for loop in loops))


def _loop(code: Sequence[Instruction], span: tuple[int, int], spans: Sequence[tuple[int, int]]) -> Loop:
    first, last = span
    inner = [other for other in spans if other != span and first <= other[0] and other[1] <= last]
    around = [other for other in spans if other[0] <= first and last <= other[1]]
    own = tuple(
        each
        for each in code
        if first <= each.place <= last and not any(start <= each.place <= end for start, end in inner)
    )
    return Loop(first=first, last=last, depth=len(around), own=own, is_innermost=not inner)
