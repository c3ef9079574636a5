"""Emulation is as long as its work at a nominal speed: what decides how many blocks are looked at is that, and not the
time that it took, which depends on the machine and on what else it does.

The numbers are those of one core of the machine that perfmodel was developed on, fitted to the emulations of some
hundred kernels; most took between a quarter and four times as long as they say.
"""

from __future__ import annotations

from collections.abc import Sequence

from perfmodel.ptx.dataflow import ACCESSING
from perfmodel.ptx.syntax import Instruction

BLOCK_S = 6e-6
"""A basic block takes so long each time that lanes come to it, beside its instructions."""
INSTRUCTION_S = 6e-6
"""An instruction of few lanes takes so long."""
LANE_S = 6e-10
"""It takes so much longer for every lane that there is."""
WIDE_LANES, ACCESS_LANES = 90, 14
"""A fused product of doubles, which is computed in a wider type, is as long as so many other instructions are, and so
is an access to memory, whose addresses are looked up and recorded."""
PREPARING_S = 5e-5
"""An instruction of the text takes so long before anything is run."""
PAGE_S, COPY_S = 1e-4, 6e-6
"""A page of random contents takes so long, and one that is copied from an array."""


def block_seconds(instructions: Sequence[Instruction], lanes: int) -> float:
    """Returns how long those instructions of a basic block that are run take each time that lanes come to it."""
    by_lane = sum(map(_lanes, instructions))
    return BLOCK_S + len(instructions) * INSTRUCTION_S + by_lane * lanes * LANE_S


def preparing_seconds(instructions: int, made: int, copied: int) -> float:
    """Returns how long so many instructions of the text take to be made ready, and so many pages of contents."""
    return instructions * PREPARING_S + made * PAGE_S + copied * COPY_S


def _lanes(instruction: Instruction) -> int:
    """Returns as many other instructions as one takes as long as, of many lanes."""
    if instruction.opcode in ACCESSING:
        return 1 if instruction.has("param") else ACCESS_LANES
    is_wide = instruction.opcode in ("fma", "mad") and instruction.types[-1].name == "f64"
    return WIDE_LANES if is_wide else 1
