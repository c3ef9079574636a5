"""Runs a machine: lanes that part at a branch go one side after the other, and together again where all ways meet, or
where the loop begins anew that some of them leave."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.errors import EmulationError
from perfmodel.counting.usual_budget import GIVEN_MORE, MOST_BUDGETS
from perfmodel.ptx.control_flow import EXIT, Block
from perfmodel.ptx.emulation.deciding import Deciding
from perfmodel.ptx.emulation.lanes import Mask
from perfmodel.ptx.emulation.locks import looks, spins
from perfmodel.ptx.emulation.machine import Machine
from perfmodel.ptx.emulation.skipping import Skipper
from perfmodel.ptx.emulation.thinning import Thinner
from perfmodel.ptx.names import own_name
from perfmodel.ptx.types import TYPES

MOST_STEPS = 500_000
"""So many basic blocks may be executed before an endless loop is assumed."""
MORE = 0.1
"""After so much more of the budget, loops are cut into half as many parts."""
HURRIED = 2
"""After so many times the budget, loops that data may end are cut into parts."""
LANES = 3000
"""An instruction takes twice as long as of few lanes where there are so many."""


@dataclass(eq=False)
class _Way:
    """Lanes that are on one way: where they are, where they wait for others, and what others still need.

    Attributes:
        rounds: ways for the next iterations of loops that they are in, which wait at the loops' beginnings and take
            those that come there.
        coming: the lanes that such a way has taken; None for any other.
    """

    place: int
    meeting: int
    mask: Mask
    protected: frozenset[int]
    rounds: tuple[_Way, ...] = ()
    coming: list[Mask] | None = None


class Execution:
    """Runs the lanes of a machine from the kernel's first block to its end.

    Args:
        deciding: given where iterations of loops may be counted without being run.
        budget: instructions of few lanes that may be run before some iterations of loops stand for others.

    Attributes:
        work: as many instructions of few lanes would have taken as long.
        run_s: the seconds that the basic blocks that were run take at the nominal speed of emulation.
        branches: for each block that ends in a branch, by emulated block: how often sub-groups met it, took it and
            parted, and how often lanes and the block took it.
    """

    def __init__(
        self,
        machine: Machine,
        steps: int = MOST_STEPS,
        deciding: Deciding | None = None,
        budget: float = math.inf,
    ) -> None:
        self.machine, self.most = machine, steps
        self.parted = 0
        self.skipper: Skipper | None = None
        if deciding is not None and machine.code.flow.loops:
            self._watch(Skipper(machine, deciding))
        self.work, self._budget, self._limit = 0.0, budget, budget
        self._cost = 1 + machine.lanes.total / LANES
        self.steps, self.run_s = 0, 0.0
        by_size = sorted(machine.code.flow.loops, key=lambda loop: len(loop.blocks), reverse=True)
        self._loops = {number: loop for loop in by_size for number in loop.blocks}  # the innermost one of each block
        self.branches: dict[int, NDArray[np.int64]] = {}
        self._live_changed = False
        self._looks = looks(machine.code)
        self._looked: dict[int, int] = {}

    def _watch(self, skipper: Skipper) -> None:
        machine = self.machine
        self.skipper = skipper
        machine.noted, machine.accesses.noted = skipper.note_tally, skipper.note_row
        machine.accesses.noted_execution = skipper.note_tally

    def _thin(self) -> None:
        """Has some iterations of loops run for others; for the more, the more work has been done since that began, and
        in the end of loops that data end, too."""
        assert self.skipper is not None
        if not isinstance(self.skipper, Thinner):
            self._watch(Thinner(self.skipper))
        elif self.work > HURRIED * self._budget and not self.skipper.is_hurried:
            self.skipper.hurry()
        else:
            self.skipper.parts = max(self.skipper.parts // 2, 1)
        self._limit += MORE * self._budget

    def run(self) -> None:
        """Runs all lanes; of a kernel whose blocks wait for each other's locks, one block after the other.

        Raises:
            EmulationError: for a kernel that does not end, or does what is not emulated.
        """
        machine = self.machine
        if not spins(machine.code):
            self._run(machine.live)
            return
        of_block = machine.lanes.block_of
        for block in range(machine.lanes.count):
            self._run(machine.live.where(of_block == block))

    def _run(self, mask: Mask) -> None:
        """Runs some lanes to their end."""
        machine = self.machine
        ways = [_Way(0, EXIT, mask, frozenset())]
        with np.errstate(all="ignore"):
            while ways:
                way = ways[-1]
                if way.coming is not None:
                    self._begin_round(way, ways)
                    continue
                if round_ := next((each for each in way.rounds if each.place == way.place), None):
                    ways.pop()
                    assert round_.coming is not None
                    round_.coming.append(way.mask)
                    continue
                if way.place == way.meeting or way.place == EXIT:
                    ways.pop()
                    if way.mask is not machine.live:
                        way.mask.forget()
                    if way.place == EXIT:
                        self.end(way.mask)
                    continue
                if way.mask is not machine.live and self._live_changed:
                    active = way.mask.active & machine.live.active
                    if not active.any():
                        ways.pop()
                        continue
                    if not (active == way.mask.active).all():
                        way.mask = Mask(machine.lanes, active)
                if way.mask is not machine.live and way.mask.count == machine.live.count:
                    way.mask = machine.live  # one object for all, whose counts are known
                self._execute(way, ways)

    def _begin_round(self, way: _Way, ways: list[_Way]) -> None:
        """Goes on with all lanes that came to a loop's beginning."""
        assert way.coming is not None
        if not way.coming:
            ways.pop()
            return
        active = np.logical_or.reduce([mask.active for mask in way.coming])
        way.mask, way.coming = Mask(self.machine.lanes, active), None

    def _execute(self, way: _Way, ways: list[_Way]) -> None:
        machine = self.machine
        block = machine.code.flow.blocks[way.place]
        self.steps += 1
        if self.steps > self.most or self.work > MOST_BUDGETS * self._budget:
            raise EmulationError(self._endless())
        mask = way.mask
        if self._looks:
            self._look(block.number, mask)
        steps, seconds = machine.steps_of(way.place)
        self.run_s += seconds
        self.work += self._cost * len(steps)
        if self.skipper is not None:
            if self.work > self._limit:
                self._thin()
            self.skipper.arrives(block.number, mask, self.parted)
            self.skipper.note_tally(machine.tallies[block.number], mask)
        machine.tallies[block.number].add(mask)
        machine.registers.protected = way.protected
        for step in steps:
            step(mask)
        if block.index is not None:
            self._choose(block, way, ways)
        elif block.guard is None:
            way.place = block.successors[0]
        else:
            self._branch(block, way, ways)

    def _look(self, number: int, mask: Mask) -> None:
        """Ends the run where lanes look at memory again that nobody has changed since, as no others go on meanwhile."""
        for header, blocks in self._looks.items():
            if number not in blocks:
                self._looked.pop(header, None)
            elif number == header and self._looked.get(header) == mask.count:
                raise EmulationError(
                    f"kernel {own_name(self.machine.code.kernel.name)!r} waits for other blocks to change memory, of "
                    "which some at a time are emulated; take the wait out, or launch it as blocks that do not wait"
                )
            elif number == header:
                self._looked[header] = mask.count

    def _endless(self) -> str:
        name = own_name(self.machine.code.kernel.name)
        if self.steps > self.most:
            return (
                f"kernel {name!r} has executed {self.most} basic blocks and not ended; it may wait for other blocks, "
                "or loop without end"
            )
        return (
            f"kernel {name!r} has taken {MOST_BUDGETS} times the budget of counting in loops that data end, and not "
            f"ended; give its own data by kernel.as_observed(arrays) (--arg NAME=FILE.npy), or more time {GIVEN_MORE}"
        )

    def _branch(self, block: Block, way: _Way, ways: list[_Way]) -> None:
        guard = block.guard
        assert guard is not None
        machine, mask = self.machine, way.mask
        holds = machine.registers.values[machine.registers.numbers[guard.register.name]]
        if guard.is_negated:
            holds = np.logical_not(holds)
        yes, no = block.successors
        record = self.branches.get(block.number)
        if record is None:
            record = self.branches[block.number] = np.zeros((5, machine.lanes.count), np.int64)
        if np.ndim(holds) == 0:
            self._note(record, mask, mask if holds else None)
            way.place = yes if holds else no
            return
        taken = mask.where(holds)
        if taken.count in (0, mask.count):
            self._note(record, mask, mask if taken.count else None)
            way.place = yes if taken.count else no
            return
        rest = mask.without(holds)
        self._note(record, mask, taken, rest)
        self._part(way, ways, block.number, [(yes, taken), (no, rest)])

    def _note(self, record: NDArray[np.int64], mask: Mask, taken: Mask | None, rest: Mask | None = None) -> None:
        """Notes lanes at a branch: by how many sub-groups it is met, taken, and both taken and not."""
        width = self.machine.width
        more = np.zeros_like(record)
        more[0] = met = mask.warps(width).sum(axis=1)
        if taken is not None:
            more[1] = went = taken.warps(width).sum(axis=1)
            if rest is not None:
                more[2] = went + rest.warps(width).sum(axis=1) - met
            more[3] = of_block = taken.by_block
            more[4] = of_block > 0
        record += more
        if self.skipper is not None:
            self.skipper.note_branch(record, more)

    def _choose(self, block: Block, way: _Way, ways: list[_Way]) -> None:
        machine, mask = self.machine, way.mask
        assert block.index is not None
        assert block.ending is not None
        index = machine.registers.reader(block.index, TYPES["u32"], block.ending)()
        index = np.broadcast_to(index, (machine.lanes.total,))
        chosen: dict[int, Any] = {}
        for place, successor in enumerate(block.successors):
            here = index == place
            chosen[successor] = chosen[successor] | here if successor in chosen else here
        sides = [(successor, mask.where(here)) for successor, here in chosen.items()]
        sides = [(successor, side) for successor, side in sides if side.count]
        if sum(side.count for _, side in sides) != mask.count:
            raise EmulationError(f"line {block.ending.line} of the PTX chooses from beyond its targets")
        if len(sides) == 1:
            way.place = sides[0][0]
        else:
            self._part(way, ways, block.number, sides)

    def _part(self, way: _Way, ways: list[_Way], number: int, sides: list[tuple[int, Mask]]) -> None:
        """Parts lanes into several ways, which meet again where all of them lead."""
        self.parted += 1
        machine = self.machine
        blocks = machine.code.flow.blocks
        going: list[tuple[int, Mask]] = []
        for place, side in sides:
            if place == EXIT or blocks[place].is_end:
                if place != EXIT:
                    machine.tallies[place].add(side)
                self.end(side)
            else:
                going.append((place, side))
        if len(going) == 1 and len(sides) == 2:
            way.place, way.mask = going[0]
            return
        meeting = machine.code.flow.meeting[number]
        if meeting != EXIT and blocks[meeting].is_end:
            meeting = EXIT
        parted = [(place, side) for place, side in going if place != meeting]
        protected = way.protected
        if meeting == EXIT or meeting == way.meeting:
            ways.pop()
            if way.mask is not machine.live:
                way.mask.forget()
        else:
            protected = protected | machine.alive[meeting]
            way.place = meeting
        waiting = machine.alive[meeting] if meeting != EXIT else frozenset()
        rounds = way.rounds if meeting == way.meeting else ()
        loop = self._loops.get(number)
        is_left = loop is not None and meeting not in loop.blocks and len(parted) > 1
        if loop is not None and is_left and all(each.place != loop.header for each in rounds):
            around = _Way(
                place=loop.header,
                meeting=meeting,
                mask=way.mask,
                protected=protected.union(waiting),
                rounds=rounds,
                coming=[],
            )
            ways.append(around)
            rounds = (*rounds, around)
        waiting = waiting.union(*(machine.alive[each.place] for each in rounds))
        for position, (place, side) in enumerate(parted):
            others = [machine.alive[other] for k, (other, _) in enumerate(parted) if k != position]
            needed = protected.union(waiting, *others)
            ways.append(_Way(place=place, meeting=meeting, mask=side, protected=needed, rounds=rounds))

    @property
    def nominal_s(self) -> float:
        """The seconds that all of it takes at the nominal speed, with its machine's preparation."""
        return self.run_s + self.machine.preparing_s

    def end(self, mask: Mask) -> None:
        """Ends lanes."""
        self.machine.live = self.machine.live.without(mask.active)
        self._live_changed = True
