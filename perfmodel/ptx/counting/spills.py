"""Counts the registers that the assembler keeps in memory, as a private array that the text does not have.

Registers of short numbers are left out: drivers keep several in one. A median of 25 vectors of 16 bytes, of which ptxas
12.9 spills 808 words, takes an H200 no longer than its instructions do.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from perfmodel.counting.counts import AccessCount, Executions
from perfmodel.ptx.counting.executions import constant
from perfmodel.ptx.counting.launch import EmulatedLaunch
from perfmodel.sass.reading import Instruction

SPILLED = "spilled registers"
DIRECTIONS = {"LDL": "load", "STL": "store"}
WORD_BYTES = 4
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
            if each.opcode not in DIRECTIONS or MARK not in each.operands or each.line in of_shorts:
                continue
            width = _WIDTH.search(each.name)
            n_words = int(width[1]) // 32 if width else 1
            place = _PLACE.search(each.operands)
            places[place[0] if place else each.operands] = n_words * WORD_BYTES
            before = words.get(DIRECTIONS[each.opcode], (0.0, 0.0))
            words[DIRECTIONS[each.opcode]] = (before[0] + n_words * of_all, before[1] + n_words * of_busiest)
    return Spill(sum(places.values()), words) if any(of_all for of_all, _ in words.values()) else None
