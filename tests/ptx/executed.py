"""Tells what emulated blocks of a kernel executed."""

from __future__ import annotations

from typing import Any

from perfmodel import Kernel


def executions(
    kernel: Kernel, arrays: dict[str, Any] | None, extrapolate: bool
) -> tuple[list[Any], dict[str, Any], int]:
    """Returns executions by basic block and by access, and turns of loops that were not run."""
    program: Any = kernel.program
    emulation = program.emulated(kernel.bound, arrays=arrays, groups="sample", extrapolate=extrapolate)
    by_block = [
        [each.tolist() for each in tally.by_block()] + [int(tally.by_subgroup().max(initial=0))]
        for tally in emulation.blocks
    ]
    made = {
        f"{instruction.line} {name}": places.executions
        for instruction, by_array in emulation.addresses.items()
        for name, places in by_array.items()
    }
    return by_block, made, emulation.skipped
