"""Says how code waits for loads: how many are under way, and how often a warp that runs alone waits for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import floor

from perfmodel.sass.reading import LENGTH, NONE, Instruction

PIXELS = frozenset(("TEX", "TLD", "TLD4", "SULD"))
"""Reads of pixels of images."""
GLOBAL = frozenset(("LDG", "LD", "ATOM", "ATOMG", "LDL", *PIXELS))
"""Loads that go to caches and memory, those of a thread's own memory and of pixels included."""
LOCAL = frozenset(("LDS", "LDSM", "ATOMS"))
"""Loads from shared memory."""
PRIVATE = frozenset(("LDL",))
"""Loads of a thread's own memory."""
SLOW: Mapping[str, float] = {
    **dict.fromkeys(("MUFU", "F2I", "F2F", "POPC", "FLO", "BREV", "FRND", "FCHK"), 18.0),
    "S2R": 20.0,
    **dict.fromkeys(("SHFL", "I2F"), 24.0),
    "LDC": 31.0,
    **dict.fromkeys(("I2F.S64", "I2F.U64", "F2I.S64", "F2I.U64"), 40.0),
}
"""Cycles of other instructions that set a barrier, about, by opcode, of some with the type that they convert; measured,
like those below, by `benchmarks.warps_alone`."""
TAKEN = 4.0
"""Cycles until a warp goes on at another place than behind an instruction."""
REDIRECTED: Mapping[str, float] = {"CALL": 19.0, "RET": 19.0, "BSYNC": 8.0, "BAR": 3.5}
"""Cycles beyond those of their encoding that a warp waits for these."""
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


def cycles_of_trip(
    code: Sequence[Instruction], latencies: Mapping[str, float], parts: Sequence[float] | None = None
) -> float:
    """Returns the cycles of a warp's trip through a loop, if it runs alone.

    Args:
        latencies: in cycles, by opcode, of instructions that others wait for; those of others are short.
        parts: the part of the trips in which each instruction is executed; all of them in every trip without.
    """
    warp = _Warp(latencies)
    ends = []
    pairs = [(each, 1.0) for each in code] if parts is None else list(zip(code, parts, strict=True))
    for trip in range(TRIPS):
        for each, part in pairs:
            if floor((trip + 1) * part + 0.5) > floor(trip * part + 0.5):
                warp.issue(each)
        ends.append(warp.now)
    half = TRIPS // 2
    return (ends[-1] - ends[half - 1]) / (TRIPS - half)


def cycles_once(code: Sequence[Instruction], latencies: Mapping[str, float]) -> float:
    """Returns the cycles until a warp that runs alone has issued code once, and has all that it began."""
    warp = _Warp(latencies)
    for each in code:
        warp.issue(each)
    return max((warp.now, *warp.ready.values()))


class _Warp:
    """A warp that runs alone: the cycle that it has come to, and when what it began is there, by barriers."""

    def __init__(self, latencies: Mapping[str, float]) -> None:
        self.latencies = latencies
        self.now = 0.0
        self.ready: dict[int, float] = {}
        self._next: int | None = None

    def issue(self, instruction: Instruction) -> None:
        if self._next not in (None, instruction.place):
            self.now += TAKEN
        self._next = instruction.place + LENGTH
        self.now += REDIRECTED.get(instruction.opcode, 0)
        self.now = max((self.now, *(self.ready.get(barrier, 0.0) for barrier in instruction.waits)))
        if instruction.sets != NONE:
            there = self.now + instruction.of_kind(self.latencies, SHORT)
            self.ready[instruction.sets] = max(self.ready.get(instruction.sets, 0.0), there)
        self.now += max(instruction.stall, 1)
