"""A pattern has the addresses of one access relative to that of the first active lane.

In most kernels an access has few patterns, met again and again at other places of memory. All that depends on the
pattern alone is worked out once: the lowest and highest address, where in memory each lane finds its number, how many
blocks of memory or cycles of the banks it takes. What is left to do each time is comparing addresses with the last
pattern's, and counting.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.distinct import distinct
from perfmodel.counting.atomics import Update, bank_passes, sector_passes
from perfmodel.counting.banks import WORD_BYTES, bank_cycles
from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c.emulation.lanes import Integers, Layout, Mask
from perfmodel.opencl_c.emulation.machine import Machine
from perfmodel.opencl_c.emulation.memory import PAGE
from perfmodel.opencl_c.types import Pointer, Scalar, Vector

_NOBODY = np.int64(-(1 << 62))
"""This stands for the address of a lane that is not active; it is lower than all others."""


class Accessor(ABC):
    """An accessor is one access of the kernel in one batch, as far as its patterns depend on it.

    Attributes:
        element: bytes of a number, a power of two, and `shift` which one. width: numbers moved. bytes: moved by each
            work-item.
        alignment: bytes that addresses must be multiples of to go the quick way.
        phases: the low bits of addresses that matter for counts.
        lane_offsets, group_stride: see `Region` and `Footprint`; they are those of the region that it goes to.
    """

    lane_offsets: Integers | None
    group_stride: int

    def __init__(self, access: low.Access, machine: Machine) -> None:
        self.access = access
        assert isinstance(access.type, Scalar | Vector | Pointer)
        scalar = access.type.element if isinstance(access.type, Vector) else access.type
        self.dtype = np.dtype(np.int64) if isinstance(scalar, Pointer) else scalar.numpy
        self.element = self.dtype.itemsize
        self.shift = self.element.bit_length() - 1
        self.is_vector = isinstance(access.type, Vector)
        self.width = access.type.width if isinstance(access.type, Vector) else 1
        self.bytes = self.element * self.width
        self.alignment = max(access.alignment, self.element)
        self.is_store = access.direction != "load"
        if access.space in ("global", "constant"):
            self.phases = max(machine.transaction_bytes, machine.line_bytes) - 1
        else:
            self.phases = machine.bank_bytes - 1 if access.space == "local" else 0

    @abstractmethod
    def mark_ahead(self, pattern: Pattern, addresses: Integers) -> None:
        """Marks only the footprint, of accesses that are counted without being carried out."""


class Pattern:
    """A pattern tells where active lanes find what they access, relative to the first of them.

    Attributes:
        offsets: byte offsets of the active lanes. low, high: of the first byte and behind the last one.
        is_regular: all are multiples of the alignment, so that typed views of memory serve.
        is_uniform: all are the same.
        index: positions of numbers relative to the one at `low`, of all lanes (inactive ones read what the first one
            reads); vectors have an axis of components in front.
        active: the same of active lanes only. marks: the same in footprints. Each is worked out when it is asked for.
        counts: how often it was met, by the low bits of its address that matter for the counts.
        known: addresses at which it was met before.
    """

    __slots__ = (
        "__dict__",
        "accessor",
        "counts",
        "high",
        "is_regular",
        "is_uniform",
        "known",
        "low",
        "mask",
        "offsets",
    )

    def __init__(self, accessor: Accessor, mask: Mask, offsets: Integers) -> None:
        self.accessor, self.mask, self.offsets = accessor, mask, offsets
        self.counts: dict[int, int] = {}
        self.known: set[int] = set()
        self.is_uniform = not offsets.any()
        if self.is_uniform:
            self.low, self.high, self.is_regular = 0, accessor.bytes, True
        else:
            self.low, self.high = int(offsets.min()), int(offsets.max()) + accessor.bytes
            self.is_regular = not (offsets & (accessor.alignment - 1)).any()

    @cached_property
    def active(self) -> Integers:
        found = self._relative
        if self.accessor.lane_offsets is not None:
            found = found + self.accessor.lane_offsets[self.mask.lanes] // self.accessor.element
        return self._with_components(found)

    @cached_property
    def index(self) -> Integers:
        if self.mask.is_full:
            return self.active
        found = np.repeat(self.active[..., :1], self.mask.layout.lanes, axis=-1)
        found[..., self.mask.lanes] = self.active
        return found

    def pages(self, phase: int) -> Integers:
        """Returns the pages of memory that are touched, from the one that the position at `low` is so far within."""
        found = self._pages.get(phase)
        if found is None:
            found = self._pages[phase] = distinct((self._touched * self.accessor.element + phase) // PAGE)
        return found

    @cached_property
    def _pages(self) -> dict[int, Integers]:
        return {}

    @cached_property
    def _touched(self) -> Integers:
        """Holds the positions of active lanes, once where all have the same one."""
        if self.is_uniform and self.accessor.lane_offsets is None:
            return self._with_components(np.zeros(1, np.int64))
        return self.active

    @cached_property
    def marks(self) -> Integers:
        stride = self.accessor.group_stride // self.accessor.element
        if not stride:
            return distinct(self._touched) if self.is_uniform else self.active
        if self.is_uniform:
            return distinct(self._with_components(self.mask.items_of_groups.nonzero()[0] * stride))
        return self._with_components(self._relative + self.mask.layout.group_of[self.mask.lanes] * stride)

    @property
    def marked_bytes(self) -> int:
        return self.accessor.element

    @property
    def _relative(self) -> Integers:
        return (self.offsets - self.low) >> self.accessor.shift

    def _with_components(self, found: Integers) -> Integers:
        return found if self.accessor.width == 1 else found + np.arange(self.accessor.width)[:, np.newaxis]

    @cached_property
    def has_repeats(self) -> bool:
        """Tells whether two active lanes touch the same memory."""
        ordered = np.sort(self.active[0] if self.active.ndim == 2 else self.active)
        return bool((ordered[1:] - ordered[:-1] < self.accessor.width).any())


Met = tuple[Pattern, int]
"""An access is met as a pattern, and the low bits of its address."""


def _addresses(met: Sequence[Met], layout: Layout) -> Integers:
    """Returns the address of each lane, or nobody's: (patterns, slots)."""
    addresses = np.full((len(met), layout.slots), _NOBODY)
    for row, (pattern, phase) in zip(addresses, met, strict=True):
        row[layout.slot[pattern.mask.lanes]] = pattern.offsets + phase
    return addresses


def _in_order(addresses: Integers, size: int, block: int) -> Integers:
    """Returns numbers of blocks that accesses at addresses in order touch, along the last axis and in order."""
    shift = block.bit_length() - 1
    first = addresses >> shift
    if (addresses & (block - 1)).max() <= block - size:
        return first
    last = (addresses + (size - 1)) >> shift
    most = int((last - first).max()) + 1
    numbers = np.concatenate([first] + [np.minimum(first + step, last) for step in range(1, most)], axis=-1)
    numbers.sort(axis=-1)
    return numbers


def _distinct(numbers: Integers) -> NDArray[np.bool_]:
    """Returns where each block number stands for the first time in its sorted row, inactive lanes left out."""
    new = np.empty(numbers.shape, bool)
    new[..., 0] = True
    np.not_equal(numbers[..., 1:], numbers[..., :-1], out=new[..., 1:])
    # Shifting nobody's address leaves it far below all others.
    result: NDArray[np.bool_] = new & (numbers > _NOBODY >> 12)
    return result


def _alike(
    met: Sequence[Met], of_one: Callable[[int], Any], of_others: Callable[[Sequence[Met]], Integers]
) -> Integers:
    """Returns what patterns take, (patterns, groups, ...): of those with one address, what it takes each sub-group."""
    uniform = [pattern.is_uniform for pattern, _ in met]
    if not any(uniform):
        return of_others(met)
    known = {
        phase: of_one(phase) for phase in {phase for (_, phase), is_one in zip(met, uniform, strict=True) if is_one}
    }
    found = [
        np.multiply.outer(pattern.mask.totals[:, 1], known[phase]) if is_one else None
        for (pattern, phase), is_one in zip(met, uniform, strict=True)
    ]
    others = [each for each, is_one in zip(met, uniform, strict=True) if not is_one]
    rest = iter(of_others(others)) if others else iter(())
    return np.stack([next(rest) if each is None else each for each in found])


def blocks_touched(met: Sequence[Met], size: int, blocks: Sequence[int], layout: Layout) -> Integers:
    """Returns how many aligned blocks of so many bytes each sub-group touches: (patterns, groups, sizes of blocks)."""
    shifts = np.array([block.bit_length() - 1 for block in blocks])
    return _alike(
        met,
        lambda phase: (phase + size - 1 >> shifts) - (phase >> shifts) + 1,
        lambda others: _blocks_touched(others, size, blocks, layout),
    )


def _blocks_touched(met: Sequence[Met], size: int, blocks: Sequence[int], layout: Layout) -> Integers:
    addresses = _addresses(met, layout).reshape(len(met), layout.groups, layout.subgroups, layout.subgroup_size)
    addresses.sort(axis=3)
    return np.stack([_distinct(_in_order(addresses, size, block)).sum(axis=(2, 3)) for block in blocks], axis=2)


def private_blocks_touched(met: Sequence[Met], size: int, blocks: Sequence[int], layout: Layout) -> Integers:
    """Returns the same of private arrays, whose words of one place lie side by side for a sub-group."""
    addresses = _addresses(met, layout).reshape(len(met), layout.groups, layout.subgroups, layout.subgroup_size)
    row, lanes = layout.subgroup_size * WORD_BYTES, np.arange(layout.subgroup_size) * WORD_BYTES
    places = np.where(addresses > _NOBODY >> 1, addresses // WORD_BYTES * row + lanes, _NOBODY)
    places.sort(axis=3)
    touched = [_distinct(_in_order(places, WORD_BYTES, block)).sum(axis=(2, 3)) for block in blocks]
    return max(size // WORD_BYTES, 1) * np.stack(touched, axis=2)


def local_cycles(
    met: Sequence[Met], size: int, machine: Machine, layout: Layout, *, are_shared: bool
) -> tuple[Integers, Integers]:
    """Returns cycles that local memory takes for each sub-group, and those that conflicts add: (patterns, groups).

    Work-items may share what is at one place, as loads do. Conflicts are the cycles beyond those that as many distinct
    words take if spread evenly.
    """

    def of_one(phase: int) -> Integers:
        cycles, least = bank_cycles(np.array([[phase]]), size, machine.banks, machine.bank_bytes)
        return np.array([cycles[0], cycles[0] - least[0]])

    def of_many(others: Sequence[Met]) -> tuple[Integers, Integers]:
        addresses = _addresses(others, layout).reshape(-1, layout.subgroup_size)
        active = addresses > _NOBODY >> 1
        cycles, least = bank_cycles(addresses, size, machine.banks, machine.bank_bytes, active, are_shared=are_shared)
        shape = (len(others), layout.groups, layout.subgroups)
        return cycles.reshape(shape).sum(axis=2), (cycles - least).reshape(shape).sum(axis=2)

    found = _alike(met, of_one, lambda others: np.stack(of_many(others), axis=2))
    return found[..., 0], found[..., 1]


def atomic_passes(
    met: Sequence[Met], size: int, update: Update, is_local: bool, machine: Machine, layout: Layout
) -> NDArray[np.float64]:
    """Returns how many passes atomics take, by banks of local memory or sectors of global memory: (patterns, groups).

    A sector is as large as a transaction.
    """
    addresses = _addresses(met, layout).reshape(-1, layout.subgroup_size)
    active = addresses > _NOBODY >> 1
    if is_local:
        passes = bank_passes(
            addresses, size, machine.banks, machine.bank_bytes, active, update, float(layout.subgroups)
        )
    else:
        passes = sector_passes(addresses, machine.transaction_bytes, active)
    found: NDArray[Any] = passes.reshape(len(met), layout.groups, layout.subgroups).sum(axis=2)
    return found
