"""Tells how many iterations of a loop wait for their asynchronous copies together."""

from __future__ import annotations

from collections.abc import Iterator

from perfmodel.ptx.control_flow import ControlFlow
from perfmodel.ptx.syntax import Immediate, Instruction


def copies_under_way(flow: ControlFlow, block: int) -> int:
    """Returns how many iterations of a loop have copies under way while one waits for its own; 1 outside of loops.

    An iteration that leaves the last n groups of copies alone, and makes c groups itself, waits for those that were
    begun n/c iterations before.
    """
    inside = [each for each in _around(flow, block) if each.opcode == "cp"]
    made = sum(each.has("commit_group") for each in inside)
    waits = (operand for each in inside if each.has("wait_group") for operand in each.operands)
    left = [int(operand.value) for operand in waits if isinstance(operand, Immediate)]
    return 1 + min(left, default=0) // max(made, 1)


def _around(flow: ControlFlow, block: int) -> Iterator[Instruction]:
    """Yields the instructions of the innermost loop around a block."""
    for loop in flow.around(block)[-1:]:
        for number in loop.blocks:
            yield from flow.blocks[number].instructions
