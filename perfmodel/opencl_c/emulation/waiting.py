"""Loops that go on for ever are found here: those that wait for a work-item or group that does not run meanwhile.

A loop whose iteration leaves everything as it was will leave everything as it was the next time too: the lanes in it,
the registers that it decides, addresses and stores by, and the memory that it may write. That is looked at now and
then, seldom enough to cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from perfmodel.basics.errors import EmulationError
from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import walks
from perfmodel.opencl_c.emulation.address_space import Regions
from perfmodel.opencl_c.emulation.footprints import Bytes
from perfmodel.opencl_c.emulation.lanes import Integers, Mask, Values
from perfmodel.opencl_c.emulation.memory import Region
from perfmodel.opencl_c.origins import Origins

SOON = 512
"""Steps until a loop is looked at for the first time."""
_SELDOM = 1 << 17
_PATIENCE = 1000
"""So many iterations of loops inside may pass before the loop around them comes again."""
_MOST_BYTES = 1 << 26
"""A kernel that writes more than this is not looked at."""


def deciding(loop: low.Loop) -> tuple[low.Register, ...]:
    """Returns the registers set in a loop that say where it goes on, what it touches and what it stores."""
    found = set(loop_conditions(loop))
    for statement in walks.simple_statements((loop,)):
        if isinstance(statement, low.Store | low.Atomic):
            found |= {register for each in walks.expressions_of(statement) for register in walks.registers_read(each)}
    found |= _of_pointers(loop)
    changed = Origins((loop,)).registers_behind(found) & walks.registers_set((loop,))
    return tuple(sorted(changed, key=lambda register: register.name))


def loop_conditions(loop: low.Loop) -> Iterator[low.Register]:
    """Iterates over the conditions of a loop and of all branches within it."""
    return (statement.condition for statement in walks.branches((loop,)))


def _of_pointers(loop: low.Loop) -> set[low.Register]:
    accesses = (each for inner in walks.simple_statements((loop,)) for each in walks.accesses_of(inner))
    return {register for each in accesses for register in walks.registers_read(each.pointer)}


@dataclass
class _Seen:
    """Holds how a loop stood at the start of an iteration; the memory only once the rest has stayed.

    Attributes:
        changes: it does something, so that only a loop around it may wait.
        others: how often this loop or those within it came meanwhile.
    """

    loop: int
    mask: Mask
    values: tuple[Values, ...]
    memory: list[Any] | None = None
    changes: bool = False
    others: int = 0


class Waiting:
    """Looks at the loops of one batch."""

    def __init__(self, kernel: low.LoweredKernel, regions: Regions) -> None:
        self.kernel, self.regions = kernel, regions
        self._seen: _Seen | None = None
        self._interval = SOON

    def look(self, steps: int, loop: int, mask: Mask, values: tuple[Values, ...]) -> int:
        """Returns the steps that may be left when this is to be called again.

        Raises:
            EmulationError: the loop goes on for ever.
        """
        seen = self._seen
        if seen is None or (seen.loop != loop and loop not in self._inside[seen.loop]):
            # A loop outside that comes again starts the one within anew, whose state says nothing then.
            self._seen = _Seen(loop, mask, values)
            return steps
        if seen.others < _PATIENCE and (seen.changes or seen.loop != loop):
            seen.others += 1
            return steps
        stays = (
            seen.loop == loop
            and seen.mask is mask
            and all(_same(*pair, mask) for pair in zip(seen.values, values, strict=True))
        )
        if stays and seen.memory is None:
            seen.memory = self._written()
            if seen.memory is not None:
                return steps
        elif stays and _equal(seen.memory, self._written()):
            raise EmulationError(self._sentence(loop))
        if not seen.changes and any(loop in inside for outer, inside in self._inside.items() if outer != loop):
            seen.changes, seen.others = True, 0
            return steps
        self._seen = None
        self._interval = min(2 * self._interval, _SELDOM)
        return max(steps - self._interval, 0)

    @cached_property
    def _inside(self) -> dict[int, set[int]]:
        """The numbers of the loops within each loop, by its number."""
        found = walks.loops(self.kernel.body)
        return {loop.number: {each.number for each in walks.loops((loop,))} for loop in found}

    def _written(self) -> list[Any] | None:
        """Returns what the kernel has written and where, or None if that is much."""
        found: list[Any] = []
        size = 0
        regions: dict[int, Region] = {id(each): each for each in self.regions.by_number.values()}
        for region in [*regions.values(), self.regions.local]:
            if region.stores is not None:
                units, starts = region.stores.touched()
                stride, unit = region.stores.stride // region.stores.unit, region.stores.unit
                groups = np.arange(len(starts) - 1).repeat(np.diff(starts))
                places = units if region.lane_offsets is None else groups * stride + units
                size += len(places) * unit
                if size > _MOST_BYTES:
                    return None
                found += [places, _rows(region.data, unit, places)]
        if self.kernel.private_bytes:
            size += len(self.regions.private.data)
            found.append(self.regions.private.data.copy() if size <= _MOST_BYTES else None)
        return found if size <= _MOST_BYTES else None

    def _sentence(self, number: int) -> str:
        loop = next(loop for loop in walks.loops(self.kernel.body) if loop.number == number)
        awaited = list(dict.fromkeys(f"{each.text} (line {each.place.line})" for each in _awaited(loop)))
        what = " or ".join(awaited[:3]) if awaited else "what decides its end"
        return (
            f"{loop.place}: the loop of '{loop.name}' in kernel '{self.kernel.name}' goes on for ever: it waits "
            f"for another work-item to change {what}, but all are emulated in step, and wait for each other behind a "
            "loop; give arrays with which it ends, or emulate the group that writes it at the same time"
        )


def _awaited(loop: low.Loop) -> Iterable[low.Access]:
    """Returns the accesses to memory that others can write by which a loop ends."""
    left = [each for each in walks.statements((loop,)) if isinstance(each, low.If) and walks.labels_left((each,))]
    behind = Origins((loop,)).behind([loop.condition, *(each.condition for each in left)])
    found = [each.access for each in behind if isinstance(each, low.Load | low.Atomic)]
    return [each for each in found if each.space != "private"]


def _same(one: Values, other: Values, mask: Mask) -> bool:
    if one is other:
        return True
    if not one.ndim and not other.ndim:
        return bool(one == other)
    lanes = mask.layout.lanes
    wide = [np.broadcast_to(each, (*each.shape[:-1], lanes))[..., mask.lanes] for each in (one, other)]
    return bool(np.array_equal(wide[0], wide[1]))


def _rows(data: Bytes, unit: int, places: Integers) -> Bytes:
    return data[: len(data) // unit * unit].reshape(-1, unit)[places]


def _equal(before: Sequence[Any] | None, after: Sequence[Any] | None) -> bool:
    return before is not None and after is not None and all(map(np.array_equal, before, after))
