"""Emulates some blocks of a launch, and holds what they did."""

from __future__ import annotations

import math
import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.counting.resampling import SAMPLES
from perfmodel.ptx.code import Code
from perfmodel.ptx.emulation.deciding import Deciding
from perfmodel.ptx.emulation.execution import MOST_STEPS, Execution
from perfmodel.ptx.emulation.lanes import WARP, Lanes
from perfmodel.ptx.emulation.launch import Launch, Sample, sampled, with_blocks
from perfmodel.ptx.emulation.machine import Machine
from perfmodel.ptx.emulation.recording import Addresses, Tally
from perfmodel.ptx.syntax import Instruction


@dataclass(eq=False)
class Emulation:
    """Holds what some blocks of a launch did.

    Attributes:
        width: threads of the sub-groups that are counted.
        blocks: executions of each basic block; `guarded`: of each instruction that has a guard of its own,
            of copies of tiles by their rows; `copied`: of these as a whole.
        addresses: where accesses went, by instruction and array.
        filtered: reads of images that mix the pixels around a place.
        branches: by basic block that ends in a branch, see `perfmodel.ptx.emulation.execution.Execution`.
        skipped: iterations of loops that were counted without being run.
        seconds: that it took. nominal_s: those that its work takes at a nominal speed, the same each time.
        samples: parts of the grid's inside of which one block each was run, where they are a sample.
    """

    code: Code
    launch: Launch
    sample: Sample
    lanes: Lanes
    width: int
    blocks: list[Tally]
    guarded: dict[Instruction, Tally]
    copied: dict[Instruction, Tally]
    addresses: dict[Instruction, dict[str, Addresses]]
    filtered: set[Instruction]
    branches: dict[int, NDArray[np.int64]]
    skipped: int
    buffers: dict[str, Any]
    seconds: float
    nominal_s: float
    samples: int

    @property
    def work(self) -> NDArray[np.float64]:
        """The instructions that sub-groups of each emulated block executed, shape (B,)."""
        flow = self.code.flow.blocks
        return np.asarray(
            sum(len(block.instructions) * tally.by_block()[1] for block, tally in zip(flow, self.blocks, strict=True)),
            np.float64,
        )

    def array(self, name: str) -> NDArray[np.uint8]:
        """Returns the bytes of an array, or of a variable in global memory, after the emulated blocks."""
        found: NDArray[np.uint8] = self.buffers[name].contents()
        return found

    def tally(self, instruction: Instruction, block: int) -> Tally:
        """Returns the executions of an instruction of a basic block."""
        return self.guarded.get(instruction, self.blocks[block])


def emulate(
    code: Code,
    launch: Launch,
    groups: Any = "sample",
    width: int = WARP,
    seed: int = 0,
    steps: int = MOST_STEPS,
    extrapolate: bool = False,
    budget: float = math.inf,
    samples: int = SAMPLES,
    outstanding: Collection[int] = (),
) -> Emulation:
    """Runs some blocks of a launch.

    Args:
        groups, seed, samples: see `perfmodel.ptx.emulation.launch.sampled`.
        width: threads of the sub-groups that are counted.
        steps: basic blocks that may be executed before an endless loop is assumed.
        extrapolate: whether iterations of loops may be counted without being run, and values that decide on nothing not
            be computed; results are unknown then.
        budget: with `extrapolate`, the work before some iterations of loops stand for others, see
            `perfmodel.ptx.emulation.execution.Execution`.
        outstanding: linear numbers of blocks that are run beside the others, and stand for themselves alone.

    Raises:
        EmulationError: for a kernel that does not end, accesses what isn't there, or does what is not emulated.
    """
    start = time.perf_counter()
    sample = sampled(launch.grid, groups, seed, math.prod(launch.block), samples)
    if outstanding:
        sample = with_blocks(sample, outstanding)
    lanes = Lanes(launch.grid, launch.block, sample.blocks)
    deciding = Deciding(code) if extrapolate else None
    machine = Machine(code, launch, lanes, width, deciding)
    execution = Execution(machine, steps, deciding, budget)
    execution.run()
    return Emulation(
        code=code,
        launch=launch,
        sample=sample,
        lanes=lanes,
        width=width,
        blocks=machine.tallies,
        guarded=machine.guarded,
        copied=machine.copied,
        addresses=machine.accesses.addresses,
        filtered=machine.accesses.filtered,
        branches=execution.branches,
        skipped=execution.skipper.skipped if execution.skipper else 0,
        buffers=machine.buffers,
        seconds=time.perf_counter() - start,
        nominal_s=execution.nominal_s,
        samples=samples,
    )
