"""Knows how often an emulated launch executes what: some blocks of the grid each stand for so many others."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from perfmodel.counting import resampling
from perfmodel.counting.counts import SUBGROUP_SIZE, Executions
from perfmodel.ptx.counting.executions import constant
from perfmodel.ptx.counting.origins import Origins
from perfmodel.ptx.emulation.emulation import Emulation
from perfmodel.ptx.emulation.recording import PARTS, Tally
from perfmodel.ptx.syntax import Instruction


class EmulatedLaunch:
    """A launch of which some blocks were emulated.

    Args:
        arrays: the type and number of elements of each array.
        given: arrays whose contents are known, so that what depends on them is as it is.
        has_vectors: whether the assembler makes vectors of neighbouring loads from shared memory, as it knows where
            that lies; what NVIDIA's OpenCL assembles goes to memory that is laid out later.
        has_scratch: whether private arrays lie in memory, as the text has them, and not in registers all the same.

    Attributes:
        width: lanes of a sub-group, the usual ones where none are asked for.
    """

    def __init__(
        self,
        emulation: Emulation,
        arrays: Mapping[str, tuple[str, int]],
        given: Collection[str],
        subgroup_size: int | None,
        *,
        has_vectors: bool = True,
        has_scratch: bool = True,
    ) -> None:
        self.has_vectors, self.has_scratch = has_vectors, has_scratch
        self.emulation, self.code = emulation, emulation.code
        self.arrays, self.given, self.subgroup_size = arrays, given, subgroup_size
        self.weights = np.asarray(emulation.sample.weights)
        self.items = emulation.launch.blocks * emulation.lanes.threads
        self.width = subgroup_size or SUBGROUP_SIZE
        self._origins = Origins(emulation)
        self._executions: dict[int, Executions] = {}

    @cached_property
    def is_estimate(self) -> bool:
        """True where blocks that stand for several others did not all do the same, or iterations stood for others."""
        if any(tally.parts for tally in self.emulation.blocks):
            return True
        several = self.weights > 1
        done = np.stack([tally.by_block()[0] for tally in self.emulation.blocks])[:, several]
        return bool(done.size) and bool(np.any(done != done[:, :1]))

    @cached_property
    def _busiest(self) -> int:
        """The sub-group that executes most instructions, of which `Executions.longest` tells: another one may go
        through another loop for as long, but neither goes through both."""
        return int(np.argmax(self._work))

    @cached_property
    def _work(self) -> NDArray[np.int64]:
        """The instructions that each emulated sub-group executes."""
        guarded = {each: tally for each, tally in self.emulation.guarded.items() if each not in self.emulation.copied}
        total = sum(tally.by_subgroup() for tally in guarded.values())
        for block, tally in zip(self.code.flow.blocks, self.emulation.blocks, strict=True):
            total = total + sum(each not in guarded for each in block.instructions) * tally.by_subgroup()
        return np.asarray(total)

    @property
    def longest(self) -> float:
        """The instructions of the busiest sub-group, over those that the busiest of a block has on average."""
        by_block = self._work.reshape(len(self.weights), -1).max(axis=1)
        mean = float(self.weights @ by_block) / float(self.weights.sum())
        return float(by_block.max()) / mean if mean else 1.0

    @property
    def uneven(self) -> float:
        """The standard deviation of the instructions that blocks execute, over their mean, by what blocks that follow
        each other differ: what changes over the launch is shared out, as compute units take blocks in turn."""
        by_block = self._work.reshape(len(self.weights), -1).sum(axis=1)
        mean = float(np.average(by_block, weights=self.weights))
        if not mean or len(by_block) < 2:
            return 0.0
        weights = self.weights[1:] + self.weights[:-1]
        variance = float(np.average(np.diff(by_block) ** 2, weights=weights)) / 2
        return float(variance**0.5) / mean

    def executions(self, tally: Tally) -> Executions:
        key = id(tally)
        if key not in self._executions:
            items, warps, groups = found = tuple(float(self.weights @ numbers) for numbers in tally.by_block())
            self._executions[key] = Executions(
                workitem=constant(items),
                subgroup=None if self.subgroup_size is None else constant(warps),
                workgroup=constant(groups),
                longest=(constant(self.items * int(tally.by_subgroup()[self._busiest])),),
                spread=self._spread(tally, found),
            )
        return self._executions[key]

    def any_of(self, instructions: Sequence[Instruction], block: int) -> Executions:
        """Returns how often any of some instructions of one block is executed, which may have guards of their own: as
        often as the one that each sub-group executes most, as guards of one kind say how far rows of data go."""
        tallies = list(dict.fromkeys(self.emulation.tally(each, block) for each in instructions))
        if len(tallies) == 1:
            return self.executions(tallies[0])
        warps = np.max([tally.by_subgroup() for tally in tallies], axis=0)
        by_block = warps.reshape(len(self.weights), -1)
        items = np.max([tally.by_block()[0] for tally in tallies], axis=0)
        return Executions(
            workitem=constant(float(self.weights @ items)),
            subgroup=None if self.subgroup_size is None else constant(float(self.weights @ by_block.sum(axis=1))),
            workgroup=constant(float(self.weights @ by_block.max(axis=1))),
            longest=(constant(self.items * int(warps[self._busiest])),),
        )

    def _spread(self, tally: Tally, counted: Sequence[float]) -> tuple[tuple[float, float, float], ...]:
        """Returns how many times as much there is in each replica, where iterations of loops stood for others."""
        if not tally.parts:
            return ()
        parts = {number: counts @ self.weights for number, counts in tally.parts.items()}
        found = []
        for replica, weights in enumerate(resampling.weights(PARTS)):
            usual = sum(weights) / len(weights)
            weights = [*weights, weights[replica]]  # of DECIDED
            more = sum((weights[number] / usual - 1) * counts for number, counts in parts.items())
            items, warps, groups = (
                1 + float(each) / total if total else 1.0 for each, total in zip(more, counted, strict=True)
            )
            found.append((items, warps, groups))
        return tuple(found)

    def by_subgroups(self, number: int) -> float:
        """Returns how often all sub-groups together execute a block."""
        return float(self.weights @ self.emulation.blocks[number].by_block()[1])

    def by_busiest(self, number: int) -> int:
        """Returns how often the busiest sub-group executes a block."""
        return int(self.emulation.blocks[number].by_subgroup()[self._busiest])

    def of(self, instruction: Instruction, block: int) -> Executions:
        return self.executions(self.emulation.tally(instruction, block))

    def copies(self, instruction: Instruction, block: int) -> Executions:
        """Returns how often a copy of a tile is made, each of which is waited for once."""
        emulation = self.emulation
        return self.executions(emulation.copied.get(instruction, emulation.blocks[block]))

    def instructions(self) -> Iterator[tuple[Instruction, int]]:
        for block in self.code.flow.blocks:
            for instruction in block.instructions:
                yield instruction, block.number

    def is_known(self, instruction: Instruction) -> bool:
        """Returns whether the contents are known of all arrays that decide where an instruction goes; variables that
        the text leaves empty matter little where a given array decides, too."""
        behind = self.arrays_behind(instruction)
        unknown = behind - self._origins.constants - {*self.given}
        return not unknown or (unknown <= self._origins.unset and not behind.isdisjoint(self.given))

    def arrays_behind(self, instruction: Instruction) -> frozenset[str]:
        """Returns the arrays whose contents decide where an instruction goes."""
        return self._origins.arrays_behind(instruction)
