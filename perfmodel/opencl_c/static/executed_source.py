"""Says where the statements of a kernel stand, and how often they are executed: what machine code is compared with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import PurePosixPath
from typing import Any

from perfmodel.counting.counts import Executions as Counted
from perfmodel.counting.domains import Region
from perfmodel.counting.frequency import Frequency
from perfmodel.counting.symbolic import Polynomial
from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import walks
from perfmodel.opencl_c.static.accesses import GlobalArray
from perfmodel.opencl_c.static.branch_statistics import Observed
from perfmodel.opencl_c.static.control_flow import Active
from perfmodel.opencl_c.static.counter import StaticCounter, counting
from perfmodel.opencl_c.static.grid import Grid
from perfmodel.opencl_c.syntax import Place
from perfmodel.opencl_c.types import Vector
from perfmodel.x86.source import Doubt, Executions, Source, SourceBlock, SourceLoop

NOTHING = Executions(0.0, 0.0)
LONGEST = 1 - 1e-6
"""Loops that go on more often than this have so many iterations that their end matters no more."""


def executed_source(
    kernel: low.LoweredKernel,
    grid: Grid,
    arrays: Mapping[str, GlobalArray],
    statistics: Mapping[str, float],
    lanes: int,
    at: Mapping[str, Polynomial],
    observed: Mapping[int, Observed],
    scalars: Mapping[str, Any],
    is_sampled: bool,
    budget: float,
) -> Source:
    """Returns a kernel's statements with how often a work-group executes them on average; arguments as those of
    `count_opencl`, at numbers.

    Args:
        lanes: work-items of a vector.

    Raises:
        CountingError: for what cannot be counted.
    """
    counter = _BlockCounter(kernel, grid, arrays, dict(statistics), lanes, at, observed, False, scalars, is_sampled)
    with counting(kernel.name, budget):
        executions = counter.executions()
    doubts = {} if is_sampled else counter.doubts(min(lanes, prod(grid.local_size)))
    return source_of(kernel, grid.local_size, executions, doubts)


class _BlockCounter(StaticCounter):
    """Counts how often basic blocks are executed, and which branches data decide, and nothing else."""

    def executions(self) -> dict[int, Executions]:
        self._found: dict[int, list[Counted]] = defaultdict(list)
        self._sides: dict[Place, tuple[bool, Frequency]] = {}
        self.walk()
        (groups,) = [self.domains.finished(self.domains.product(self.domains.group_counts))({})]
        return {
            number: Executions(
                sum(float(each.workitem({})) for each in found) / float(groups),
                sum(float((each.subgroup or each.workitem)({})) for each in found) / float(groups),
            )
            for number, found in self._found.items()
        }

    def doubts(self, lanes: int) -> dict[Place, tuple[float, float]]:
        """Returns how often a core guesses wrongly at each branch that data decide, by work-items and by vectors.

        Args:
            lanes: work-items that were seen side by side.
        """
        return {
            place: (_at_ends if is_loop else _at_conditions)(float(taken.item), float(taken.subgroup), lanes)
            for place, (is_loop, taken) in self._sides.items()
        }

    def branch_of_data(self, kind: str, branch: low.If | low.Loop, met: Active, taken: Frequency | None) -> None:
        if taken is not None and not self.is_dry:
            self._sides[branch.place] = isinstance(branch, low.Loop), taken

    def straight(self, block: low.Straight, active: Active) -> Active:
        if not self.is_dry:
            self._found[block.number].append(self.domains.executions(active.region))
        return super().straight(block, active)

    def count(self, statement: Any, region: Region) -> None:
        """Looks at no statement by itself."""


def _at_conditions(item: float, vector: float, lanes: int) -> tuple[float, float]:
    """Returns how often a guess is wrong of a condition that holds for such a part of work-items, and for any work-item
    of such a part of vectors: as often as the rarer side, but for what a neighbour did as well, which a core remembers.
    Vectors are as far from each other as so many work-items."""
    item, vector = min(max(item, 0.0), 1.0), min(max(vector, 0.0), 1.0)
    by_chance = 1 - (1 - item) ** lanes
    apart = min(max((vector - item) / (by_chance - item), 0.0), 1.0) if by_chance > item else 1.0
    return apart * min(item, 1 - item), min(1.0, lanes * apart) * min(vector, 1 - vector)


def _at_ends(item: float, vector: float, lanes: int) -> tuple[float, float]:
    """Returns the same of a loop that goes on so often: once at each end, but where all work-items do as many
    iterations."""
    tests, longest = (1 / (1 - min(each, LONGEST)) for each in (item, max(item, vector)))
    differing = min(1.0, longest - tests) if lanes > 1 else 1.0
    return differing / tests, differing / longest


def source_of(
    kernel: low.LoweredKernel,
    local_size: Iterable[int],
    executions: Mapping[int, Executions],
    doubts: Mapping[Place, tuple[float, float]],
) -> Source:
    """Returns a kernel's statements with how often each basic block is executed in a work-group, on average.

    Args:
        doubts: how often a core guesses wrongly at a branch, by work-items and by vectors of them.
    """
    doubted: defaultdict[tuple[str, int], list[Doubt]] = defaultdict(list)
    for branch in walks.branches(kernel.body):
        file, line, column = _place(branch.place)
        doubted[file, line].append(Doubt(column, *doubts.get(branch.place, (0.0, 0.0))))
    nesting = _Nesting()
    nesting.add(kernel.body)
    meetings = [
        (block.number, each.place)
        for block in walks.straights(kernel.body)
        for each in block.statements
        if isinstance(each, low.Barrier | low.Collective)
    ]
    met = {loop for number, _ in meetings for loop in nesting.of_blocks[number]}
    asked = [
        node
        for statement in walks.simple_statements(kernel.body)
        for each in walks.expressions_of(statement)
        for node in walks.walk(each)
        if isinstance(node, low.WorkItem)
    ]
    loops = list(walks.loops(kernel.body))
    tests = {block.number: loop.number for loop in loops for block in walks.straights((*loop.test, *loop.step))}

    def unmet(around: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(number for number in around if number not in met)

    blocks = {
        block.number: SourceBlock(
            places=tuple(dict.fromkeys(map(_place, _places(block)))),
            calls=tuple(tuple(map(_place, calls)) for calls in block.calls),
            loops=unmet(nesting.of_blocks[block.number]),
            tests=tests.get(block.number),
            meets_in=next((loop for loop in reversed(nesting.of_blocks[block.number]) if loop in met), None),
            executions=executions.get(block.number, NOTHING),
            stores=frozenset(
                _place(each.access.place)[:2]
                for each in block.statements
                if isinstance(each, low.Store) and each.access.space in ("global", "local")
            ),
        )
        for block in walks.straights(kernel.body)
    }
    return Source(
        name=kernel.name,
        file=next((block.places[0][0] for block in blocks.values() if block.places), ""),
        blocks=blocks,
        loops={
            loop.number: _loop(loop, unmet(nesting.of_loops[loop.number]), executions, nesting.before) for loop in loops
        },
        meetings=frozenset(_place(place)[:2] for _, place in meetings),
        local_size=_gone_over(kernel, asked, tuple(local_size)),
        uses_ids=bool(asked),
        doubts={line: tuple(found) for line, found in doubted.items()},
    )


OF_WORK_ITEMS = ("get_global_id", "get_local_id")


@dataclass
class _Nesting:
    """Holds the loops around each basic block and each loop, the outermost first, and the block before each loop."""

    of_blocks: dict[int, tuple[int, ...]] = field(default_factory=dict)
    of_loops: dict[int, tuple[int, ...]] = field(default_factory=dict)
    before: dict[int, int | None] = field(default_factory=dict)

    def add(self, body: Iterable[low.Statement], around: tuple[int, ...] = (), last: int | None = None) -> None:
        """Adds what is in some statements.

        Args:
            last: the block that is executed before, as often.
        """
        for statement in body:
            match statement:
                case low.Straight():
                    self.of_blocks[statement.number] = around
                    last = statement.number
                case low.If():
                    self.add(statement.then, around)
                    self.add(statement.otherwise, around)
                case low.Scope():
                    self.add(statement.body, around, last)
                case low.Loop():
                    self.of_loops[statement.number], self.before[statement.number] = around, last
                    inner = (*around, statement.number)
                    for part in (statement.test, statement.body, statement.step):
                        self.add(part, inner)


def _gone_over(
    kernel: low.LoweredKernel, asked: Iterable[low.WorkItem], local_size: tuple[int, ...]
) -> tuple[int, ...]:
    """Returns a work-group's sizes along those axes that a driver makes loops for: the first, and all others but those
    of one work-item that the source requires to be so, or does not ask for ids along.

    Args:
        asked: all that the kernel asks of who it is.
    """
    axes = [node.axis for node in asked if node.function in OF_WORK_ITEMS]
    last = max((int(axis.value) if isinstance(axis, low.Constant) else 2 for axis in axes), default=0)
    return tuple(
        size
        for axis, size in enumerate(local_size)
        if axis == 0 or size > 1 or (axis <= last and kernel.work_group is None)
    )


def _place(place: Place) -> tuple[str, int, int]:
    return PurePosixPath(place.file).name, place.line, place.column


def _places(block: low.Straight) -> Iterator[Place]:
    yield from block.places
    for statement in block.statements:
        for node in walks.accesses_of(statement):
            yield node.access.place


def _loop(
    loop: low.Loop,
    outer: tuple[int, ...],
    executions: Mapping[int, Executions],
    before: Mapping[int, int | None],
) -> SourceLoop:
    """Returns a loop with its iterations: those of its body. Its test is asked once more each time that it is begun,
    but where it comes behind: there, the block before says how often that is, if there is one."""
    test, body = (
        next((executions.get(block.number, NOTHING) for block in walks.straights(part)), None)
        for part in (loop.test, loop.body)
    )
    iterations = body or test or NOTHING
    begun = iterations
    last = before[loop.number]
    if test is not None and body is not None and not loop.is_do:
        begun = Executions(max(0.0, test.items - body.items), max(0.0, test.vectors - body.vectors))
    elif last is not None:
        begun = executions.get(last, NOTHING)
    return SourceLoop(
        outer=outer, iterations=iterations, begun=begun, step=_step(loop), vector_bytes=_vector_bytes(loop)
    )


def _vector_bytes(loop: low.Loop) -> int:
    """Returns the bytes of the longest vectors that a loop's statements compute with; 0 for none."""
    types = (
        node.type
        for statement in walks.simple_statements((loop,))
        for each in walks.expressions_of(statement)
        for node in walks.walk(each)
    )
    return max((type_.size for type_ in types if isinstance(type_, Vector)), default=0)


def _step(loop: low.Loop) -> int:
    """Returns by how much a loop's counter goes up or down; 1 where that is no number."""
    for statement in walks.simple_statements(loop.step):
        for node in (node for each in walks.expressions_of(statement) for node in walks.walk(each)):
            if isinstance(node, low.Constant) and isinstance(node.value, int) and node.value:
                return abs(node.value)
    return 1
