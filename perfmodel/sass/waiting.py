"""Counts the loads that are under way when code first waits for one of them, by the barriers that loads set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perfmodel.sass.reading import NONE, Instruction

GLOBAL = frozenset(("LDG", "LD", "ATOM", "ATOMG", "LDL"))
"""Loads that go to caches and memory, those of a thread's own memory included."""
LOCAL = frozenset(("LDS", "LDSM", "ATOMS"))
"""Loads from shared memory."""


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
