"""Tells how many asynchronous copies are under way while one of them is waited for."""

from __future__ import annotations

from perfmodel.ptx.control_flow import ControlFlow
from perfmodel.ptx.syntax import Immediate


def under_way(flow: ControlFlow, block: int) -> int:
    """Returns how many turns of a loop have their copies under way while one waits for its own, for copies in a block;
    1 outside of loops.

    A turn that leaves the last n groups of copies alone, and makes c groups itself, waits for those that were begun n/c
    turns before.
    """
    loops = flow.around(block)
    if not loops:
        return 1
    inside = [each for number in loops[-1].blocks for each in flow.blocks[number].instructions if each.opcode == "cp"]
    made = sum(each.has("commit_group") for each in inside)
    waits = (operand for each in inside if each.has("wait_group") for operand in each.operands)
    left = [int(operand.value) for operand in waits if isinstance(operand, Immediate)]
    return 1 + min(left, default=0) // max(made, 1)
