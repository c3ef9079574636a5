"""Holds what is known of the source of machine code: places, loops, and how often each statement is executed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, TypeAlias

NEAR = 8
"""An instruction of a line on which no statement begins is of the statement before, if so few lines lie between."""


Place: TypeAlias = tuple[str, int, int]
"""A file, a line and a column."""
Calls: TypeAlias = tuple[Place, ...]
"""Places of calls by which control comes somewhere, the innermost first."""


class Executions(NamedTuple):
    """Counts how often a work-group executes something, on average: by work-items, and by vectors of them."""

    items: float
    vectors: float

    def of(self, is_vector: bool) -> float:
        return self.vectors if is_vector else self.items


@dataclass(frozen=True)
class SourceBlock:
    """Statements of the source that are executed equally often.

    Attributes:
        places: file, line and column of each.
        calls: the same of the calls by which control comes to them, see `perfmodel.opencl_c.lowered.Straight`.
        loops: the numbers of those around it, the outermost first, but for those in which work-items meet.
        tests: the loop whose test or step they are, which stand on its line; None for none.
        meets_in: the innermost loop around them in which work-items meet; None where they meet in none.
        stores: file and line of each store to memory that other work-items may see.
    """

    places: tuple[Place, ...]
    calls: tuple[Calls, ...]
    loops: tuple[int, ...]
    tests: int | None
    meets_in: int | None
    executions: Executions
    stores: frozenset[tuple[str, int]]


@dataclass(frozen=True)
class SourceLoop:
    """A loop of the source: those around it, its iterations in all, how often it is begun, its counter's step, and the
    bytes of the longest vectors that it computes with itself."""

    outer: tuple[int, ...]
    iterations: Executions
    begun: Executions
    step: int
    vector_bytes: int = 0

    def trips(self, is_vector: bool) -> float:
        """Returns its iterations each time that it is begun, at least one."""
        begun = self.begun.of(is_vector)
        return max(1.0, self.iterations.of(is_vector) / begun) if begun > 0 else 1.0


class Doubt(NamedTuple):
    """Tells how often a core guesses wrongly which way a branch goes, each time that it is met; 0 unless data decide.

    It stands at ``column`` of its line; ``items`` is of work-items one by one, ``vectors`` of vectors of them.
    """

    column: int
    items: float
    vectors: float


@dataclass(frozen=True)
class Source:
    """A kernel's source, at one launch.

    Attributes:
        file: where the kernel stands.
        blocks, loops: by their numbers.
        meetings: file and line of barriers.
        local_size: work-items of a group along each axis that loops go over, the one of vectors first.
        uses_ids: whether it asks who it is; code that does not is executed by a group's first work-item alone.
        doubts: of all branches, by file and line.
    """

    name: str
    file: str
    blocks: Mapping[int, SourceBlock]
    loops: Mapping[int, SourceLoop]
    meetings: frozenset[tuple[str, int]]
    local_size: tuple[int, ...]
    uses_ids: bool
    doubts: Mapping[tuple[str, int], tuple[Doubt, ...]]

    def doubt(self, file: str, line: int, column: int, is_vector: bool) -> float:
        """Returns how often a core guesses wrongly where a jump of some place goes, each time: that of the branch that
        begins last before it on its line."""
        there = self.doubts.get((self._known(file), line), ())
        before = [each for each in there if each.column <= column] or list(there)
        nearest = max(before, key=lambda each: each.column, default=None)
        return 0.0 if nearest is None else nearest.vectors if is_vector else nearest.items

    @property
    def has_loops_at_one_place(self) -> bool:
        """True where loops have their tests at one place, to which control comes by the same calls, as those of a macro
        have."""
        found: dict[tuple[Place, Calls], set[int]] = defaultdict(set)
        for block in self.blocks.values():
            if block.tests is not None:
                for place in block.places:
                    for calls in block.calls or ((),):
                        found[place, calls].add(block.tests)
        return any(len(loops) > 1 for loops in found.values())

    def along(self, axis: int) -> Source:
        """Returns the source with another axis of work-groups taken for the first, as vectors lie along it."""
        sizes = self.local_size
        return replace(self, local_size=(sizes[axis], *sizes[:axis], *sizes[axis + 1 :]))

    def candidates(self, file: str, line: int, column: int, calls: Calls) -> tuple[int, ...]:
        """Returns the blocks that an instruction of some place may come from: on a line, those that begin last before
        it, and of functions that are called from several places, those of the calls that it comes from."""
        there = self._at(file, line, column)
        if len(there) < 2:
            return there
        lines = [line for _, line, _ in calls]
        same = [n for n in there if any([line for _, line, _ in known] == lines for known in self.blocks[n].calls)]
        columns = [column for *_, column in calls]
        if len(same) > 1:
            exact = [n for n in same if any([at for *_, at in known] == columns for known in self.blocks[n].calls)]
            same = exact or same
        return tuple(same) or there

    def _at(self, file: str, line: int, column: int) -> tuple[int, ...]:
        if not line:
            return ()
        file = self._known(file)
        for near in range(NEAR):
            there = self._by_line.get((file, line - near))
            if there is None:
                continue
            before = max((at for _, at in there if at <= column), default=0) if column and not near else 0
            return tuple(sorted({block for block, at in there if not before or at == before}))
        return ()

    def stores_at(self, block: int, file: str, line: int) -> bool:
        return (self._known(file), line) in self.blocks[block].stores

    def has_line(self, file: str, line: int) -> bool:
        return (self._known(file), line) in self._by_line

    def is_meeting(self, file: str, line: int) -> bool:
        return (self._known(file), line) in self.meetings

    def most_executed(self, among: tuple[int, ...], loop: int | None = None) -> int | None:
        """Returns the deepest and most executed of some blocks, of those in a loop."""
        found = [number for number in among if loop is None or loop in self.blocks[number].loops]
        if not found:
            return None
        return max(found, key=lambda n: (len(self.blocks[n].loops), self.blocks[n].executions.items))

    @cached_property
    def tests(self) -> dict[int, int]:
        """The block with each loop's test, or with its step."""
        return {block.tests: n for n, block in self.blocks.items() if block.tests in block.loops}

    def _known(self, file: str) -> str:
        """Returns the file itself, or that of the kernel for one that has another name to the driver."""
        return file if file in self._files else self.file

    @cached_property
    def _files(self) -> frozenset[str]:
        return frozenset(file for file, _ in self._by_line)

    @cached_property
    def _by_line(self) -> dict[tuple[str, int], list[tuple[int, int]]]:
        found: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
        for number, block in self.blocks.items():
            for file, line, column in block.places:
                found[file, line].append((number, column))
        return dict(found)
