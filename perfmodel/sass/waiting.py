"""Says how code waits for loads: how many are under way, and how often a warp that runs alone waits for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perfmodel.sass.reading import NONE, Instruction

GLOBAL = frozenset(("LDG", "LD", "ATOM", "ATOMG", "LDL"))
"""Loads that go to caches and memory, those of a thread's own memory included."""
LOCAL = frozenset(("LDS", "LDSM", "ATOMS"))
"""Loads from shared memory."""
SHORT, TRIPS = 4.0, 12
"""The cycles of any other instruction, and the trips that are looked at, the first half of which warm up."""


@dataclass(frozen=True)
class Waiting:
    """Tells how code that is executed in one piece waits for loads of one kind.

    Attributes:
        loads: that are issued.
        in_flight: the most that are under way when one is waited for.
        rounds: waits for a load before which others were issued than before the last wait; so often the whole latency
            passes, where nothing else hides it.
    """

    loads: int
    in_flight: int
    rounds: int


def waiting(code: Sequence[Instruction], opcodes: frozenset[str], is_loop: bool = False) -> Waiting:
    """Returns how code waits for loads of some opcodes.

    Args:
        is_loop: whether it is executed again and again; loads of one iteration may then be waited for in the next.
    """
    under_way: list[int] = []
    in_flight = rounds = loads = 0
    has_new = False
    for iteration in range(2 if is_loop else 1):
        in_flight, rounds, loads = (0, 0, 0) if iteration else (in_flight, rounds, loads)
        for each in code:
            if any(barrier in each.waits for barrier in under_way):
                in_flight = max(in_flight, len(under_way))
                rounds += has_new
                has_new = False
                under_way = [barrier for barrier in under_way if barrier not in each.waits]
            if each.opcode in opcodes:
                loads += 1
                has_new = True
                if each.sets != NONE:
                    under_way.append(each.sets)
    return Waiting(loads, max(in_flight, len(under_way) if not is_loop else 0), rounds)


def waits_of_trip(code: Sequence[Instruction], opcodes: frozenset[str], latency: float = 2000.0) -> float:
    """Returns how often a warp waits for loads in each trip through a loop, if it runs alone and nothing else is slow.

    Args:
        latency: the cycles that a load of these opcodes takes; what they hide behind other instructions is no wait.
    """
    return (cycles_of_trip(code, dict.fromkeys(opcodes, latency)) - cycles_of_trip(code, {})) / latency


def cycles_of_trip(code: Sequence[Instruction], latencies: Mapping[str, float]) -> float:
    """Returns the cycles of a warp's trip through a loop, if it runs alone.

    Args:
        latencies: in cycles, by opcode, of instructions that others wait for; those of others are short.
    """
    ready: dict[int, float] = {}
    ends: list[float] = []
    now = 0.0
    for _ in range(TRIPS):
        for each in code:
            now = max((now, *(ready.get(barrier, 0.0) for barrier in each.waits)))
            if each.sets != NONE:
                ready[each.sets] = max(ready.get(each.sets, 0.0), now + latencies.get(each.opcode, SHORT))
            now += max(each.stall, 1)
        ends.append(now)
    half = TRIPS // 2
    return (ends[-1] - ends[half - 1]) / (TRIPS - half)
