"""Says for how many cycles a core stands still in a function, as it waits for results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import hypot

from perfmodel.x86.flow import Block, Flow
from perfmodel.x86.instructions import Instruction
from perfmodel.x86.latencies import waits
from perfmodel.x86.units import PER_CYCLE, function_cycles, units_of

IN_FLIGHT = 256
"""Instructions that a core looks ahead over."""
IN_A_CYCLE = 3
"""Instructions that a core does in a cycle of a function of vectors."""
TYPICAL = 0.5
"""Blocks of a loop that are executed so much more seldom than its most frequent one are no part of its waits."""
_AT_ONCE = {
    "slots": 4, "loads": 2, "stores": 1, "floats": 2, "shuffles": 2, "transfers": 1, "divides": 1, "products": 1,
}  # fmt: skip
"""Each unit of a core does about so much in a cycle."""


def stalls(flow: Flow, times: Mapping[int, float], doubts: Mapping[int, float]) -> float:
    """Returns the cycles in which nothing is done, as results are waited for: those that each loop, and what lies in
    none, takes longer for its chains than for what its instructions keep busy.

    Args:
        times: how often each block is executed.
        doubts: how often a core guesses wrongly where control goes after it.
    """
    total = 0.0
    for head in (None, *flow.loops):
        blocks = flow.own(head)
        if often := _most_often(blocks, times):
            code = _typical(blocks, times, often)
            total += often * max(0.0, _waited(code, head, flow, times, doubts) - _busy(code))
    return total


def _waited(
    code: list[Instruction], head: int | None, flow: Flow, times: Mapping[int, float], doubts: Mapping[int, float]
) -> float:
    """Returns the cycles that one pass through a loop's code takes if nothing but results is waited for: the longest
    chain, as far as a core does not look beyond it, or what each iteration waits for the one before.

    A core looks beyond the end of a loop, too, if it guesses right where that is, and what comes then does not go on
    with the same chain.
    """
    chain, carried = waits(code)
    length = len(code) + IN_A_CYCLE * sum(function_cycles(each.callee) for each in code) / PER_CYCLE
    ahead = chain * min(1.0, length / IN_FLIGHT)
    if head is None:
        return ahead
    inside, outer = flow.loops[head].blocks, flow.outer(head)
    often = _most_often(flow.own(head), times)
    around = 1.0 if outer is None else _most_often(flow.own(outer), times)
    trips = max(1.0, often / around) if around else 1.0
    at_once = max(1.0, IN_FLIGHT / max(length * trips, 1))
    if outer is not None and at_once > 1 and _goes_on(outer, flow, times, carried):
        at_once = 1.0
    ends = (number for number in inside if not inside.issuperset(flow.blocks[number].following))
    wrong = min(1.0, sum(times[number] * doubts[number] for number in ends) * trips / often)
    return max(ahead, carried * (wrong + (1 - wrong) / at_once))


def _goes_on(outer: int, flow: Flow, times: Mapping[int, float], carried: float) -> bool:
    """Returns whether iterations of a loop wait for each other as long as those of a loop inside, whose chain begins
    anew otherwise."""
    around = [flow.blocks[number] for number in sorted(flow.loops[outer].blocks)]
    return waits(_typical(around, times, _most_often(flow.own(outer), times)))[1] >= carried


def _busy(code: Iterable[Instruction]) -> float:
    """Returns the cycles that some code keeps the units of a core busy for, if it waits for nothing."""
    asked = units_of(code)
    functions = asked.get("functions", 0.0) / PER_CYCLE
    return hypot(*(asked.get(unit, 0.0) / each for unit, each in _AT_ONCE.items())) + functions


def _most_often(blocks: Iterable[Block], times: Mapping[int, float]) -> float:
    return max((times[block.number] for block in blocks), default=0.0)


def _typical(blocks: Iterable[Block], times: Mapping[int, float], often: float) -> list[Instruction]:
    return [each for block in blocks if times[block.number] >= TYPICAL * often for each in block.instructions]
