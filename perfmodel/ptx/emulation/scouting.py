"""Finds the block of a launch whose loops are the longest, where arrays that are given say how long they are.

A few rows of a sparse matrix, or nodes of a graph, have a thousand times the entries of others; a launch then takes as
long as the thread that goes through the longest of them, which a sample of blocks does not meet. So all blocks are run
as far as their first long loop: two iterations of it say how many are left, and its lanes end there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.errors import EmulationError
from perfmodel.basics.graphs import reached
from perfmodel.ptx.code import Code
from perfmodel.ptx.control_flow import Loop
from perfmodel.ptx.dataflow import LOADS, read, registers_in, written
from perfmodel.ptx.emulation.deciding import TESTS, Deciding
from perfmodel.ptx.emulation.execution import Execution
from perfmodel.ptx.emulation.lanes import WARP, Lanes, Mask
from perfmodel.ptx.emulation.launch import Buffer, Holder, Launch
from perfmodel.ptx.emulation.machine import Machine
from perfmodel.ptx.emulation.recording import Addresses, Tally
from perfmodel.ptx.emulation.skipping import NEVER, Skipper, turns_until
from perfmodel.ptx.parameters import roots
from perfmodel.ptx.syntax import Instruction, Special

LONG = 16
"""A block whose longest loop has fewer iterations does not stand out."""
SHORT = 8
"""Loops that are about to do fewer iterations are run to their end, where lanes may come to another one behind."""
MORE = 2
"""A block stands out whose longest loop is so many times as long as that of most blocks."""
KNOWN = 2
"""Lanes that have come to a loop's beginning more often know how its test moves."""
CHUNK = 2**16
"""So many threads are run side by side."""
MOST_THREADS = 3 * 2**19
"""So many threads are looked at with the usual budget, which takes a second."""
MOST_STEPS = 2_000
"""Chunks that execute more basic blocks are given up."""
MOST_SECONDS = 1.0
"""So long all of it may take with the usual budget, at the nominal speed of emulation, where threads do much before
their loops."""
LOAD_S = 1e-8
"""A load by one of so many lanes takes so long, as each has a place of its own."""

Integers = NDArray[np.int64]


def longest_blocks(code: Code, launch: Launch, budget: float = 1.0) -> tuple[int, ...]:
    """Returns the linear number of the block with the longest loop, and of the one at the other end of the grid along
    axes that no length follows from; none where no array that is given says how long loops are, or no block stands out.

    Args:
        budget: of work, 1 for the usual one; of a grid that takes more, blocks that lie apart evenly are looked at.
    """
    tests = dict(_tests(code, launch))
    if not tests:
        return ()
    left_s = budget * MOST_SECONDS
    deciding = _Deciding(code)
    launch = _without_names(launch)
    threads, every, end = _of_their_own(code, launch, tests)
    chunks = max(math.ceil(len(every) * math.ceil(math.prod(threads) / WARP) * WARP / CHUNK), 1)
    lengths: list[tuple[Integers, Integers]] = []
    for number in range(min(chunks, math.ceil(budget * MOST_THREADS / CHUNK))):
        blocks = every[number::chunks]
        machine = Machine(code, launch, _SomeLanes(launch, threads, blocks), WARP, deciding, has_notes=False)
        execution = Execution(machine, MOST_STEPS)
        scout = execution.skipper = _Scout(deciding, execution, tests, left_s)
        try:
            execution.run()
        except EmulationError:  # other chunks would take as long
            break
        lengths.append((blocks, scout.lengths.reshape(len(blocks), -1).max(axis=1)))
        left_s -= execution.nominal_s + scout.loading_s
        if left_s < 0:
            break
    if not lengths:
        return ()
    blocks, found = (np.concatenate(each) for each in zip(*lengths, strict=True))
    longest = int(blocks[found.argmax()])
    stands_out = found.max() > MORE * max(float(np.median(found)), LONG)
    return tuple(sorted({longest, longest + end})) if stands_out else ()


def _of_their_own(code: Code, launch: Launch, tests: dict[int, Instruction]) -> tuple[tuple[int, ...], Integers, int]:
    """Returns the threads of a block, by axis, and the blocks whose loops differ in length; others are as long as those
    at the origin of an axis that no length follows from. The last number is how far apart the ends of such axes are."""
    registers = tuple(name for test in tests.values() for name in read(test))
    behind = code.dataflow.behind(registers)
    names = {operand.name for each in behind for operand in each.operands if isinstance(operand, Special)}
    is_any = bool(names & {"%laneid", "%warpid"})
    threads = tuple(
        extent if is_any or f"%tid.{axis}" in names else 1 for axis, extent in zip("xyz", launch.block, strict=False)
    )
    blocks, step, end = np.zeros(1, np.int64), 1, 0
    for axis, extent in zip("xyz", launch.grid, strict=False):
        if f"%ctaid.{axis}" in names:
            blocks = (blocks + step * np.arange(extent)[:, None]).reshape(-1)
        else:
            end += step * (extent - 1)
        step *= extent
    return threads, blocks, end


def _tests(code: Code, launch: Launch) -> Iterator[tuple[int, Instruction]]:
    """Yields loops, by their headers, with the comparison that ends each, where a given array decides on it; of loops
    within each other the outer one."""
    positions = {each.name: place for place, each in enumerate(code.kernel.parameters)}

    def is_given(load: Instruction) -> bool:
        places = [(launch.arguments[positions[name]], offset) for name, offset in roots(code, load)]
        arrays = [each.buffers.get(offset) if isinstance(each, Holder) else each for each, offset in places]
        return any(isinstance(each, Buffer) and each.contents is not None for each in arrays)

    found: list[Loop] = []
    for loop in sorted(code.flow.loops, key=lambda each: len(each.blocks), reverse=True):
        test = None if any(loop.header in outer.blocks for outer in found) else _test(code, loop)
        if test is not None:
            loads = [e for e in code.dataflow.behind(read(test)) if e.opcode in LOADS and not e.has("param", "shared")]
            if any(map(is_given, loads)):
                found.append(loop)
                yield loop.header, test


def _test(code: Code, loop: Loop) -> Instruction | None:
    """Returns the comparison of whole numbers that ends a loop."""
    blocks = [code.flow.blocks[number] for number in sorted(loop.blocks)]
    for block in blocks:
        if block.guard is not None and any(successor not in loop.blocks for successor in block.successors):
            name = block.guard.register.name
            found = [each for own in blocks for each in own.instructions if name in written(each)]
            if len(found) == 1 and found[0].opcode == "setp" and not found[0].types[-1].is_float:
                modifiers = [each for each in found[0].modifiers if each in TESTS]
                if len(modifiers) == len(found[0].modifiers) == 1:
                    return found[0]
    return None


def _without_names(launch: Launch) -> Launch:
    """Returns a launch of whose arrays nothing is noted."""
    arguments = [replace(each, name="") if isinstance(each, Buffer) else each for each in launch.arguments]
    return replace(launch, arguments=tuple(arguments))


class _SomeLanes(Lanes):
    """The lanes of some threads of blocks: those at the origin of the axes along which fewer are given."""

    def __init__(self, launch: Launch, threads: tuple[int, ...], blocks: Integers) -> None:
        super().__init__(launch.grid, threads, blocks.tolist())
        self.block = tuple((*launch.block, 1, 1)[:3])


class _Deciding(Deciding):
    """Finds what decides on the lengths of loops, and whether lanes come to them: no more is computed."""

    def __init__(self, code: Code) -> None:
        self.code, self.flow = code, code.dataflow
        guards = [
            block.guard.register.name
            for block in code.flow.blocks
            if block.guard is not None
            and all(any(to not in loop.blocks for to in block.successors) for loop in code.flow.around(block.number))
        ]
        indices = [name for block in code.flow.blocks if block.index is not None for name in registers_in(block.index)]
        self.instructions = self.flow.behind((*guards, *indices))
        self.depends_on_data = True
        self.names = {name for each in self.instructions for name in written(each)}


class _Scout(Skipper):
    """Ends lanes in long loops, once they have shown how long these are, and where no more such loop is to come.

    Attributes:
        lengths: the iterations of each lane's longest loop.
        loading_s: the seconds that loads take, beside what the execution says.
    """

    def __init__(self, deciding: Deciding, execution: Execution, tests: dict[int, Instruction], most_s: float) -> None:
        super().__init__(execution.machine, deciding)
        self.execution, self.tests, self.most_s = execution, tests, most_s
        total = self.machine.lanes.total
        self.lengths = np.zeros(total, np.int64)
        self._met = {header: np.zeros(total, np.int64) for header in tests}
        self._before = {header: np.zeros(total, np.int64) for header in tests}
        is_met_once = all(len(deciding.code.flow.around(header)) == 1 for header in tests)
        self._least = 1 if len(tests) == 1 and is_met_once else SHORT
        before = deciding.code.flow.predecessors
        self._before_tests = reached(tests, lambda number: before[number])
        self.loading_s = 0.0
        self._loads = {
            block.number: sum(each.opcode in LOADS and each in deciding.instructions for each in block.instructions)
            for block in deciding.code.flow.blocks
        }

    def arrives(self, block: int, mask: Mask, parted: int) -> None:
        self.loading_s += LOAD_S * mask.count * self._loads[block]
        if self.execution.run_s + self.loading_s > self.most_s:
            raise EmulationError("blocks take too long to be looked at all")
        if block not in self._before_tests:
            self.execution.end(mask)
        if block not in self.tests:
            return
        met, before, test = self._met[block], self._before[block], self.tests[block]
        lanes = mask.index
        now = met[lanes] + 1
        met[lanes] = now
        self.lengths[lanes] = np.maximum(self.lengths[lanes], now)
        if int(now.max()) < KNOWN:  # what the test compares is not yet there
            return
        apart = self.apart(self.sides(test))[lanes]
        is_known = now > KNOWN
        left = np.where(is_known, turns_until(test, apart, apart - before[lanes]), 0)
        before[lanes] = apart
        is_long = (left >= self._least) & (left < NEVER)
        if is_long.any():
            lanes = lanes[is_long]
            self.lengths[lanes] = np.maximum(self.lengths[lanes], now[is_long] + left[is_long])
            ends = np.zeros_like(mask.active)
            ends[lanes] = True
            self.execution.end(Mask(self.machine.lanes, ends))

    def note_tally(self, tally: Tally, mask: Mask) -> None:
        """Notes nothing, as only lengths are wanted."""

    def note_row(self, noted: Addresses, mask: Mask, row: Integers | None) -> None:
        """Notes nothing."""

    def note_branch(self, record: Integers, more: Integers) -> None:
        """Notes nothing."""
