"""Some iterations of long loops are run for all of them here, once the work that a count may take is done.

What is left of a loop is cut into parts; of each part one iteration by chance is run, and counts for the others. All
that loops carry from one iteration to the next but what moves by a constant step stays as the iterations that were run
leave it, so that counts are estimates. The parts tell how far they are off.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from perfmodel.opencl_c.emulation.extrapolation import Extrapolated
from perfmodel.opencl_c.emulation.lanes import Bits, Integers, Layout, Mask, Values
from perfmodel.opencl_c.emulation.loop_plans import Plan
from perfmodel.opencl_c.emulation.recording import ACCESS_NAMES, Recorder, Totals

IN_TURN = 4
"""Parts of loops are told apart by so many numbers, in turn."""
DECIDED = IN_TURN
"""This number is for what follows from a state that iterations left out would have changed."""
PARTS = IN_TURN + 2
"""Numbers come in pairs, see `perfmodel.counting.resampling`; the last one is of nothing."""
_SAMPLES = 16
"""So many iterations stand for what is left of a loop."""
_FEWEST = 2
_MORE = 0.5
"""After so much more of the work that a count may take, half as many iterations stand for the others."""
LATER = 0.5
"""Loops that depend on what their iterations have made are run on until so much more of the work is done."""
_LEAST = 4
"""Fewer iterations are all run."""
_LOOKING = 20
"""Adding up what was counted takes as long as so many statements for each block, branch and access of a kernel."""
_WORTH = 4
"""A part is so many times the work of adding up."""
_BY_ITEM = np.array([name in ("executions", "bytes") for name in ACCESS_NAMES])


@dataclass
class Turn:
    """One time that a loop is run.

    Attributes:
        values: the loop's registers that move, at the end of the iteration before.
        steps: by how much they move, once that is known.
        others: of each lane, the iterations that the one that runs now stands for, itself left out; and those of them
            that are still `ahead`.
        before: what was counted before it.
        work: that was left at the end of the iteration before.
        least: iterations that are too few to leave some out. length: iterations of a part.
    """

    values: tuple[Values, ...]
    work: float
    steps: tuple[Values, ...] = ()
    others: Integers | None = None
    ahead: Integers | None = None
    before: tuple[Totals, Totals] | None = None
    least: int = 0
    length: int = 0
    is_over: bool = False


class Thinning:
    """Has some iterations of a batch's loops run for others.

    Attributes:
        parts: what iterations that were not run add to the totals, by the number of their part.
        done: of each loop of which some were not run, by its number, what became of it.
    """

    def __init__(self, recorder: Recorder, layout: Layout, work: float, seed: int) -> None:
        self.recorder, self.layout, self._work = recorder, layout, work
        self._seed = seed
        self._looking = _LOOKING * (len(recorder.blocks) + len(recorder.went) + len(recorder.handlers))
        self._drawn = 0
        self.parts: Totals | None = None
        self.done: dict[int, Extrapolated] = {}

    @cached_property
    def _random(self) -> np.random.Generator:
        return np.random.default_rng(self._seed)

    def iteration(
        self, plan: Plan, turn: Turn | None, mask: Mask, bound: Values, values: tuple[Values, ...], work: float
    ) -> tuple[Turn, tuple[Values, ...] | None]:
        """Returns how a loop stands after an iteration, and its registers behind iterations left out, if any.

        Args:
            work: that a count may still take, which is less than nothing.
        """
        if turn is None:
            return Turn(values, work), None
        if turn.is_over:
            return turn, None
        if not turn.steps:
            turn.steps = tuple(now - before for now, before in zip(values, turn.values, strict=True))
            turn.least = max(_LEAST, -int(-_WORTH * self._looking // (turn.work - work)))
        skipped = np.zeros(self.layout.lanes, np.int64)
        if turn.ahead is not None:
            self._count_others(plan, turn)
            skipped += np.where(mask.bits, turn.ahead, 0)
        left = np.where(mask.bits, self._left(plan.operator, turn, bound, values) - skipped, 0)
        most = int(left.max())
        if most < turn.least or most < min(turn.length, _SAMPLES * turn.least):
            turn.is_over = True
        else:
            turn.length = max(turn.least, turn.length, -(-most // self._samples(work)))
            part = np.minimum(left, turn.length)
            first = np.clip(self._random.integers(turn.length), 0, np.maximum(part - 1, 0))
            skipped += first
            turn.others = np.maximum(part - 1, 0)
            turn.ahead = turn.others - first
            totals = self.recorder.totals()
            turn.before = totals.copy(), self._parts_of(totals).copy()
            self._note(plan, 1, min(turn.length, most))
        if not skipped.any():
            return turn, None
        own = skipped[mask.lanes]
        times = own[0] if (own == own[0]).all() else skipped
        return turn, tuple(
            now + step * np.asarray(times).astype(now.dtype) for now, step in zip(values, turn.steps, strict=True)
        )

    def _samples(self, work: float) -> int:
        """Returns how many iterations stand for what is left of a loop."""
        halved = int(min(-work / (_MORE * self._work), 30)) if self._work else 30
        return max(_SAMPLES >> halved, _FEWEST)

    def _left(self, operator: str, turn: Turn, bound: Values, values: tuple[Values, ...]) -> Integers:
        """Returns how many iterations of a loop are still to come for each lane."""
        lanes = (self.layout.lanes,)
        now, step, last = (
            np.broadcast_to(each, lanes).astype(np.int64) for each in (values[0], turn.steps[0], np.asarray(bound))
        )
        away = last - now
        if operator in (">", ">="):
            step, away = -step, -away
        moves = np.where(step == 0, 1, step)
        if operator == "!=":
            return np.asarray(np.where((step != 0) & (away % moves == 0), np.maximum(away // moves, 0), 0))
        found = away // moves + 1 if "=" in operator else -(-away // moves)
        return np.asarray(np.where(step > 0, np.maximum(found, 0), 0))

    def _count_others(self, plan: Plan, turn: Turn) -> None:
        """Counts the iteration that was run for the others of its part."""
        assert turn.before is not None
        assert turn.others is not None
        totals = self.recorder.totals()
        parts, inner = self._parts_of(totals), turn.before[1]
        more = _without_end(totals.minus(turn.before[0]), plan.loop.number)
        scale = self._scale(turn.others)
        within = parts.minus(inner)
        for total, change, times in zip(totals.arrays, more.arrays, scale.arrays, strict=True):
            total += np.rint(change * times).astype(np.int64)
        for part, change, times in zip(parts.arrays, within.arrays, scale.arrays, strict=True):
            part += np.rint(change * times).astype(np.int64)
        for part, change, times in zip(parts.arrays, more.arrays, scale.arrays, strict=True):
            part[self._drawn % IN_TURN] += np.rint(change * times).astype(np.int64)
        self._drawn += 1
        if plan.depends_on_state:
            iterations = more.sides[:, plan.loop.number, 1]
            parts.blocks[DECIDED] += _in_doubt(more.blocks, iterations[:, None], scale.blocks)
            parts.sides[DECIDED] += _in_doubt(more.sides, iterations[:, None, None], scale.sides)

    def _parts_of(self, totals: Totals) -> Totals:
        if self.parts is None:
            self.parts = Totals(*(np.zeros((PARTS, *array.shape), np.int64) for array in totals.arrays))
        return self.parts

    def _scale(self, others: Integers) -> Totals:
        """Returns how often the counts of an iteration are added, by group, in the shapes of totals."""
        layout = self.layout
        ran = others > 0
        items = _mean(others, ran, layout.group_of, layout.groups)
        most = np.zeros((layout.groups, layout.subgroups), np.int64)
        np.maximum.at(most.reshape(-1), layout.subgroup_of, others)
        subgroups = most.sum(axis=1) / np.maximum((most > 0).sum(axis=1), 1)
        groups = most.max(axis=1)
        by_all = np.stack([items, subgroups, groups], axis=1)
        return Totals(
            blocks=by_all[:, None, :],
            branches=subgroups[:, None, None],
            sides=by_all[:, None, None, :],
            barriers=groups[:, None],
            accesses=np.where(_BY_ITEM, items[:, None], subgroups[:, None])[:, None, :],
        )

    def _note(self, plan: Plan, run: int, iterations: int) -> None:
        loop = plan.loop
        found = Extrapolated(loop.place, loop.name, run, iterations, has_whole_footprint=False, is_exact=False)
        self.done[loop.number] = found.plus(self.done.get(loop.number))


def _mean(values: Integers, chosen: Bits, group_of: Integers, groups: int) -> NDArray[np.float64]:
    sums = np.bincount(group_of, weights=values, minlength=groups)
    return np.asarray(sums / np.maximum(np.bincount(group_of[chosen], minlength=groups), 1))


def _in_doubt(change: Integers, iterations: Integers, times: Integers) -> Integers:
    """Returns how far counts are off if what only some lanes do in an iteration is done twice as often by them all."""
    rare = np.where(change > iterations, change, np.minimum(change, iterations - change))
    signed = np.where((change > iterations) | (2 * change <= iterations), rare, -rare)
    return np.asarray(np.rint(signed * times).astype(np.int64))


def _without_end(change: Totals, loop: int) -> Totals:
    """Returns what an iteration counted, as if no lane had left its loop before it."""
    change.sides[:, loop, 2] = 0
    change.sides[:, loop, 0] = change.sides[:, loop, 1]
    change.branches[:, loop, 0] = change.sides[:, loop, 1, 1]
    change.branches[:, loop, 1] = 0
    return change
