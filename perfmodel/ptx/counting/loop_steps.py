"""Tells how an access moves on through memory from one of its executions to the next."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.distinct import distinct
from perfmodel.ptx.emulation.lanes import Lanes, Mask
from perfmodel.ptx.emulation.recording import NOWHERE, Addresses

Array = NDArray[np.int64]
MOST_PAIRS = 64
"""So many executions at scattered addresses are compared with the one behind."""


class LoopSteps:
    """Finds the stride by which an access's innermost loop moves it.

    Args:
        bases: the addresses that the thread at the origin of each block would access, execution by execution.
    """

    def __init__(self, noted: Addresses, bases: Array) -> None:
        self._noted, self._bases = noted, bases

    @cached_property
    def stride(self) -> int | None:
        """Bytes from an execution to the next one, where that is mostly the same."""
        if not len(self._steps):
            return 0 if self._noted.is_regular else None
        values, counts = np.unique(self._steps, return_counts=True)
        best = int(np.argmax(counts))
        return int(values[best]) if counts[best] * 2 >= len(self._steps) else None

    def steadiness(self, width: int) -> float:
        """Returns the part of executions to which all lanes of a sub-group have moved on by the stride, which has to be
        known."""
        if self._noted.is_regular:
            return float(np.mean(self._steps == self.stride))
        steady, total = 0, 0
        for mask, moved in self._moves:
            own = subgroups_of(self._noted.lanes, mask, width)
            total += len(distinct(own))
            steady += len(distinct(own)) - len(distinct(own[moved != self.stride]))
        return steady / total

    @cached_property
    def _steps(self) -> Array:
        """The bytes by which the block that takes part most often moves on each time, or all lanes if they are at
        places of their own."""
        if not self._noted.is_regular:
            return np.concatenate([np.zeros(0, np.int64), *(moved[moved != NOWHERE] for _, moved in self._moves)])
        known = self._bases != NOWHERE
        longest = np.argmax(known.sum(axis=0))  # others may leave a loop earlier
        return np.asarray(np.diff(self._bases[:, longest])[known[1:, longest] & known[:-1, longest]])

    @cached_property
    def _moves(self) -> list[tuple[Mask, Array]]:
        """Who takes part in some executions, and by how many bytes each lane has moved on from the one before;
        `NOWHERE` if it took no part in that."""
        executions = self._noted.scattered
        firsts = np.unique(np.linspace(0, max(len(executions) - 2, 0), MOST_PAIRS).astype(int))
        moves = []
        for first in firsts if len(executions) > 1 else ():
            (before, own), (after, others) = executions[first : first + 2]
            moved = np.full(len(others), NOWHERE)
            again = before.active[after.index]
            moved[again] = others[again] - own[after.active[before.index]]
            moves.append((after, moved))
        return moves


def subgroups_of(lanes: Lanes, mask: Mask, width: int) -> Array:
    """Returns the number of each lane's sub-group."""
    return lanes.block_of[mask.index] * (-(-lanes.per_block // width)) + mask.within // width
