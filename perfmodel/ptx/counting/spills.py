"""Counts the registers that the assembler keeps in memory, as a private array that the text does not have.

Registers of short numbers are left out: drivers keep several in one. A median of 25 vectors of 16 bytes, of which ptxas
12.9 spills 808 words, takes an H200 no longer than its instructions do.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from perfmodel.counting.banks import WORD_BYTES
from perfmodel.counting.counts import AccessCount, Executions, KernelCounts
from perfmodel.ptx.counting.executions import constant
from perfmodel.ptx.counting.launch import EmulatedLaunch
from perfmodel.sass.origins import OriginatedBlock
from perfmodel.sass.reading import Instruction

Executed: TypeAlias = tuple[OriginatedBlock, float]
"""A block of machine code, and how often it is executed."""

SPILLED = "spilled registers"
DIRECTIONS = {"LDL": "load", "STL": "store"}
SHORT_BITS = 16
MARK = "SpillRefill"
"""So the disassembler marks accesses to spilled registers; others are to private arrays of the text."""
_WIDTH = re.compile(r"\.(64|128)\b")
_PLACE = re.compile(r"\[[^\]]*\]")


@dataclass(frozen=True)
class Spill:
    """Holds the accesses to a thread's spilled registers, by words of 32 bits.

    Attributes:
        n_bytes: that a thread's registers take in memory.
        words: that a sub-group loads and stores, by the direction: of all sub-groups, and of the busiest one.
    """

    n_bytes: int
    words: dict[str, tuple[float, float]]

    def accesses(self, launch: EmulatedLaunch) -> Iterable[AccessCount]:
        """Yields the loads and the stores of a launch."""
        of_group = launch.emulation.lanes.threads / launch.width
        for direction, (of_all, of_busiest) in self.words.items():
            executions = Executions(
                workitem=constant(of_all * launch.width),
                subgroup=None if launch.subgroup_size is None else constant(of_all),
                workgroup=constant(of_all / max(of_group, 1.0)),
                longest=(constant(of_busiest * launch.items),),
            )
            yield AccessCount(
                space="scratch",
                variable=SPILLED,
                tags=frozenset(),
                dtype="uint32",
                bits=8 * WORD_BYTES,
                direction=direction,
                local_strides={},
                group_strides={},
                loop_strides={},
                executions=executions,
                body=(SPILLED,),
                rounds=executions,
                footprint=None,
                text=SPILLED,
                instruction=f"{direction}s of {SPILLED}",
            )


def with_spilled_registers(
    counts: KernelCounts, launch: EmulatedLaunch, by_all: Sequence[Executed], by_busiest: Sequence[Executed]
) -> KernelCounts:
    """Returns counts with the accesses to spilled registers; themselves where there are none.

    Args:
        by_all, by_busiest: the same blocks in one order, as all sub-groups and as the busiest one execute them.
    """
    if not any(_is_marked(each) for block, _ in by_all for each in block.instructions):
        return counts
    of_shorts = {each.line for each, _ in launch.instructions() if each.types and each.types[0].bits <= SHORT_BITS}
    pairs = zip(by_all, by_busiest, strict=True)
    found = spill([(block.instructions, of_all, of_busiest) for (block, of_all), (_, of_busiest) in pairs], of_shorts)
    if found is None:
        return counts
    accesses = (*counts.accesses, *found.accesses(launch))
    return replace(counts, accesses=accesses, scratch=(*counts.scratch, (SPILLED, found.n_bytes)))


def spill(code: Iterable[tuple[Collection[Instruction], float, float]], of_shorts: Collection[int]) -> Spill | None:
    """Returns what is spilled; None for nothing.

    Args:
        code: pieces of machine code, each with how often all sub-groups and the busiest one execute it.
        of_shorts: lines of the PTX of which short numbers come.
    """
    places: dict[str, int] = {}
    words: dict[str, tuple[float, float]] = {}
    for instructions, of_all, of_busiest in code:
        for each in instructions:
            if not _is_marked(each) or each.line in of_shorts:
                continue
            width = _WIDTH.search(each.name)
            n_words = int(width[1]) // 32 if width else 1
            place = _PLACE.search(each.operands)
            places[place[0] if place else each.operands] = n_words * WORD_BYTES
            before = words.get(DIRECTIONS[each.opcode], (0.0, 0.0))
            words[DIRECTIONS[each.opcode]] = (before[0] + n_words * of_all, before[1] + n_words * of_busiest)
    return Spill(sum(places.values()), words) if any(of_all for of_all, _ in words.values()) else None


def _is_marked(instruction: Instruction) -> bool:
    return instruction.opcode in DIRECTIONS and MARK in instruction.operands
