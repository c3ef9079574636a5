"""Says by how much the counters of machine code's loops go on."""

from __future__ import annotations

from collections import defaultdict

from perfmodel.x86.flow import Flow
from perfmodel.x86.instructions import Instruction


def steps_of(flow: Flow, head: int) -> set[int]:
    """Returns by how much a loop's counter goes up or down: the registers that decide where it goes back, or where
    none of these does, all that may count."""
    latches = [flow.blocks[number] for number in flow.loops[head].latches]
    deciding = [latch.instructions[place] for latch in latches for place in latch.deciding]
    asked = {name for each in deciding for name in (*each.reads, *each.writes)}
    steps: dict[str, int] = defaultdict(int)
    for each in (each for block in flow.own(head) for each in block.instructions):
        for name in each.writes:
            if name != "flags" and (step := step_of(each)):
                steps[name] = steps[name] + step if name in each.reads else max(steps[name], step)
    return {step for name, step in steps.items() if name in asked} or set(steps.values())


def step_of(each: Instruction) -> int:
    """Returns by how much an instruction counts up or down; 0 for one that does not."""
    if each.name in ("inc", "dec"):
        return 1
    if each.name in ("add", "sub", "lea") and each.constant is not None:
        return abs(each.constant)
    return 0
