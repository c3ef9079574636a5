"""A kernel's demand on a device's registers and memories, as somebody states it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Resources:
    """Holds a kernel's demand on registers and memories.

    Attributes:
        registers: of 32 bits for each work-item; None where the driver does not tell.
        local_bytes: for each work-group.
        private_bytes: in memory for each work-item: arrays that are no registers and, from a driver, what it spilled.
        source: ``driver``; ``assembler`` for NVIDIA's, which says of PTX what a driver would; or ``estimate`` for what
            follows from the source alone.
        spilled_bytes: of the instructions that move registers to memory and back; None where nobody tells.
    """

    registers: int | None
    local_bytes: int
    private_bytes: int
    source: Literal["driver", "assembler", "estimate"]
    spilled_bytes: int | None = None
