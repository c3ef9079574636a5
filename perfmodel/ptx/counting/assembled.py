"""Counts what the assembler makes of PTX: what its instructions take of each pipe, and how a sub-group waits.

Each basic block of machine code is executed as often as the block of PTX that it comes from, shared out over its
copies. One sub-group, the busiest, goes through it in order, as on a GPU: an instruction is issued once what it waits
for is there, and the next one after the cycles that its encoding says.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from perfmodel.counting.counts import Issue, KernelCounts
from perfmodel.ptx.control_flow import ControlFlow
from perfmodel.ptx.counting.launch import EmulatedLaunch
from perfmodel.ptx.counting.spills import Executed, with_spilled_registers
from perfmodel.sass.loops import Loop
from perfmodel.sass.origins import OriginatedBlock, originated
from perfmodel.sass.pipes import CYCLES, cycles_by_pipe, pipe_of
from perfmodel.sass.reading import LENGTH, Instruction
from perfmodel.sass.waiting import GLOBAL, LOCAL, PIXELS, PRIVATE, SLOW, cycles_of_trip, cycles_once

NEAR = {"local": (LOCAL, 23.0), "scratch": (PRIVATE, 33.0), "global": (GLOBAL - PRIVATE, 33.0)}
"""The loads from each space, and their cycles from the memory that is nearest, measured by `benchmarks.warps_alone`; a
chain of loads takes an H100 29 and 41 cycles each, with what their addresses need (Luo et al., arXiv:2402.13499)."""
LATER = dict.fromkeys(PIXELS, 51.0)
"""Cycles more, about, that pixels take to come than numbers of an array, measured by `benchmarks.pixels`."""
FAR = 300.0
"""Cycles beyond these, about, that loads take from the second-level cache or from memory."""
OPERATION = 4.0
"""Cycles that the next operation waits for one."""
KEPT_CODE, FETCHED = 32768, 1.6
"""Beyond so many bytes of code, which are kept near the schedulers, an instruction takes so many cycles of one, unless
warps go through it side by side; all of code that is twice as long. Measured by `benchmarks.warps_alone`."""
RAREST = 1 / 6
"""Blocks that are executed in a smaller part of a loop's trips are gone through by themselves."""
_IN_BACKGROUND = frozenset(("LDGSTS", "LDGDEPBAR", "UBLKCP", "UTMALDG", "SYNCS"))


@dataclass(frozen=True)
class Alone:
    """Tells what the busiest sub-group waits for, if it runs alone.

    Attributes:
        waits: for loads, by the space that they are from.
        operations: as many as take the time of all that is done with loads from the nearest memories, one after the
            other.
    """

    waits: Mapping[str, float]
    operations: float


def is_known(code: Sequence[Instruction]) -> bool:
    """Returns whether machine code tells what is counted: it says where it comes from, has no products of matrices, and
    copies no tiles in the background, whose waits it has elsewhere."""
    return any(each.line for each in code) and not any(
        each.opcode in _IN_BACKGROUND or pipe_of(each) == "tensor" for each in code
    )


def as_assembled(counts: KernelCounts, launch: EmulatedLaunch, code: Sequence[Instruction]) -> KernelCounts:
    """Returns counts with what machine code issues, and with waits as it has them."""
    lines: dict[int, set[int]] = defaultdict(set)
    for block in launch.code.flow.blocks:
        for each in (*block.instructions, *filter(None, [block.ending])):
            lines[each.line].add(block.number)
    flow = launch.code.flow
    around = {
        number: tuple(each.header for each in flow.around(number)) for loop in flow.loops for number in loop.blocks
    }
    blocks = originated(code, {line: frozenset(numbers) for line, numbers in lines.items()}, around)
    by_all, by_busiest = (list(_executed(blocks, flow, times)) for times in (launch.by_subgroups, launch.by_busiest))
    counts = with_spilled_registers(counts, launch, by_all, by_busiest)
    alone = _alone(by_busiest)
    factors = {}
    for space, waits in alone.waits.items():
        told = _waits(counts, space) / launch.items
        factors[space] = waits / told if told else 1.0
    accesses = tuple(
        replace(each, wait=each.wait * factors.get(each.space, 1.0)) if each.direction == "load" else each
        for each in counts.accesses
    )
    issue = Issue(
        cycles=_cycles_by_pipe(by_all, _fetched(by_busiest)),
        operations=alone.operations * launch.items,
        longest=launch.longest,
        uneven=launch.uneven,
    )
    return replace(counts, accesses=accesses, issue=issue)


def _waits(counts: KernelCounts, space: str) -> float:
    """Returns the waits of all work-items for loads, if all were as long as the longest, as accesses say."""
    most: dict[tuple[object, ...], float] = defaultdict(float)
    for each in counts.accesses:
        if each.direction == "load" and each.space == space:
            key = each.body, each.level
            most[key] = max(most[key], each.wait * float(each.rounds.longest[0]({})))
    return sum(most.values())


def _executed(
    blocks: Sequence[OriginatedBlock], flow: ControlFlow, executions: Callable[[int], float]
) -> Iterator[Executed]:
    """Yields blocks with how often each is executed, by how often the blocks of PTX are."""
    known = cache(executions)
    inside = {loop.header: loop.blocks for loop in flow.loops}
    for block in blocks:
        times = sum(known(number) for number in block.origin) / block.copies
        if block.written_out is not None:
            before = flow.predecessors[block.written_out]
            begun = sum(known(number) for number in before if number not in inside[block.written_out])
            times = min(times, begun)
        yield block, times


def _fetched(executed: Iterable[Executed]) -> float:
    """Returns the cycles of a scheduler until it has an instruction, by the code that a sub-group goes through."""
    n_bytes = sum(LENGTH * len(block.instructions) for block, times in executed if times >= RAREST)
    return 1 + (FETCHED - 1) * min(max(n_bytes / KEPT_CODE - 1, 0), 1)


def _cycles_by_pipe(executed: Iterable[Executed], fetched: float) -> dict[str, float]:
    """Returns the cycles that all sub-groups take of a scheduler, by so many for each instruction, and of its pipes."""
    found = dict.fromkeys(CYCLES, 0.0)
    for block, times in executed:
        for pipe, cycles in cycles_by_pipe(block.instructions).items():
            found[pipe] += times * cycles
    return {**found, "slots": fetched * found["slots"]}


def _alone(executed: Iterable[Executed]) -> Alone:
    by_loop: dict[Loop | None, list[tuple[OriginatedBlock, float]]] = defaultdict(list)
    for block, times in executed:
        by_loop[block.loop].append((block, times))

    def cycles(latencies: Mapping[str, float]) -> float:
        return sum(_cycles_of_piece(loop, inside, latencies) for loop, inside in by_loop.items())

    latencies: dict[str, float] = dict(SLOW)
    before = cycles(latencies)
    waits = {}
    for space, (opcodes, near) in NEAR.items():
        latencies |= {opcode: near + LATER.get(opcode, 0.0) for opcode in opcodes}
        after = cycles(latencies)
        waits[space] = (after - before) / near
        before = after
    far = {opcode: latencies[opcode] + FAR for opcode in NEAR["global"][0]}
    waits["global"] = (cycles(latencies | far) - before) / FAR
    return Alone(waits, before / OPERATION)


def _cycles_of_piece(
    loop: Loop | None, blocks: Collection[tuple[OriginatedBlock, float]], latencies: Mapping[str, float]
) -> float:
    """Returns the cycles of a warp in a loop, or in what lies in none, with the times that it executes each block."""
    trips = 1.0 if loop is None else max(times for _, times in blocks)
    code: list[Instruction] = []
    parts: list[float] = []
    beside = 0.0
    for block, times in blocks:
        together = min(times, trips)
        if together >= RAREST * trips > 0:
            code += block.instructions
            parts += [together / trips] * len(block.instructions)
            times -= together
        if times:
            beside += times * cycles_once(block.instructions, latencies)
    if loop is None:
        return cycles_once(code, latencies) + beside
    return trips * cycles_of_trip(code, latencies, parts) + beside
