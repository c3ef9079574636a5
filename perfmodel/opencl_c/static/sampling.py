"""Accesses whose addresses jump about are computed for the work-items of some groups, in numpy, as C computes them.

For launches of known size, and for addresses that follow from ids and arguments alone: hashes, products of ids,
unsigned numbers that wrap around. Variables that are assigned more than once are known where an address is a polynomial
of the grid's coordinates and of counters of loops.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.distinct import distinct
from perfmodel.counting.domains import Domains
from perfmodel.counting.symbolic import Bounds, Polynomial, is_coordinate
from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import walks
from perfmodel.opencl_c.builtins import binary, unary
from perfmodel.opencl_c.types import BOOL, Pointer, Scalar
from perfmodel.opencl_c.visitor import Dispatch

GROUPS, MOST_ITEMS, SEED = 8, 256, 20150824
POINTS = 16384
"""So many work-items of the whole launch are looked at to see how much of an array an access reaches."""
REACH_BLOCK = 32
"""The blocks that are counted for that have so many bytes."""
BEFORE, AFTER = 2**19, 2**17
"""So many accesses before, a sector each, decide whether a last-level cache of tens of megabytes has a block, which so
many accesses after them ask for."""
UNLIKE = 0.382
"""They begin at this part of the launch, as halves and quarters are where squares mirror themselves."""
TOGETHER = 1024
"""About so many groups run at a time on a device."""
EVERY = 16
"""One of so many blocks is looked at for that."""
GOLDEN = 2654435761
"""Knuth's multiplicative hash chooses them."""
AT_ONCE = 2**15
"""Addresses of so many work-items are computed at a time, which stay in a processor's cache."""
WORTH_LOOKING = 2**22
"""Less reach than this many bytes is kept by caches as a whole."""
ALIGNED = 256
"""Arrays start at a multiple of so many bytes."""

Lanes = NDArray[Any]


@dataclass(frozen=True)
class SampledAddresses:
    """Holds sampled addresses of one access.

    Attributes:
        groups: for some work-groups, where their first work-items are, in bytes from a multiple of `ALIGNED`.
        reach: about how many bytes it touches over the launch, in blocks of `REACH_BLOCK`; None if that is not known.
        missed: the part of its accesses to blocks that none of the `BEFORE` accesses by groups just before has gone to;
            None if that is not known.
    """

    groups: tuple[tuple[int, ...], ...]
    reach: int | None
    missed: float | None

    def scaled(self, times: Fraction) -> SampledAddresses:
        """Returns the addresses of pixels that take so many times the bytes that they were thought to."""
        if times == 1:
            return self
        groups = tuple(tuple(int(address * times) for address in group) for group in self.groups)
        return SampledAddresses(groups, None if self.reach is None else int(self.reach * times), self.missed)


def addresses_of_group(address: Polynomial, domains: Domains) -> tuple[int, ...] | None:
    """Returns bytes from a group's first work-item to each of the next, in the first iterations of all loops; None
    where sizes decide on them."""
    axes = domains.along("local", domains.axes)
    moving = Polynomial({m: c for m, c in address.terms.items() if Polynomial({m: 1}).names() & axes.keys()})
    others = {name: 0 for name in moving.names() if is_coordinate(name)}
    extents = [size if isinstance(size, int) else 1 for size in domains.local_sizes]
    found = []
    for item in range(min(math.prod(extents), MOST_ITEMS)):
        values, rest = dict(others), item
        for axis, extent in enumerate(extents):
            values |= {name: rest % extent for name, own in axes.items() if own == axis}
            rest //= extent
        offset = moving.at(values)
        if offset is None:
            return None
        found.append(offset)
    return tuple(offset - found[0] for offset in found)


class AddressSampler:
    """Samples the addresses of accesses of one launch.

    Args:
        assigned: the values that each register is assigned anywhere in the kernel.
        arguments: scalars by name.
    """

    def __init__(
        self,
        assigned: Mapping[low.Register, Sequence[low.Expression]],
        group_counts: Sequence[int],
        local_size: Sequence[int],
        arguments: Mapping[str, int],
    ) -> None:
        self.assigned, self.arguments = assigned, arguments
        self.group_counts, self.local_size = tuple(group_counts), tuple(local_size)

    def addresses(self, pointer: low.Expression) -> SampledAddresses | None:
        """Returns the addresses of an access at this address; None where it depends on more than ids and arguments."""
        return self._sampled(lambda sample: sample.value(pointer))

    def addresses_in_loops(
        self, address: Polynomial, axes: Mapping[str, tuple[str, int]], bounds: Bounds
    ) -> SampledAddresses | None:
        """Returns the addresses of an access in the first iterations of the loops around it; what it reaches is that of
        random ones, unless they have no last.

        Args:
            axes: the axis of the grid that each coordinate is along, and its kind.
            bounds: of counters of loops.
        """
        counters = {name: bounds.get(name, (0, None))[1] for name in address.names() - axes.keys()}

        def evaluated(sample: _Evaluator) -> Lanes | None:
            ids = {"group": sample.groups, "local": sample.items}
            values: dict[str, Any] = {name: ids[kind][axis] for name, (kind, axis) in axes.items()}
            random, rest = np.random.default_rng(SEED + 2), sample.iterations
            for counter, most in sorted(counters.items()):
                if not is_coordinate(counter):
                    return None
                extent = 1 if most is None else int(most) + 1
                if sample is self._some_items:
                    values[counter] = random.integers(0, extent, POINTS)
                else:
                    values[counter], rest = rest % extent, rest // extent
            found = address.at(values)
            return None if found is None else np.asarray(found)

        extents = [int(most) + 1 for most in counters.values() if most is not None]
        found = self._sampled(evaluated, math.prod(extents))
        if found is None or len(extents) == len(counters):
            return found
        return replace(found, reach=None, missed=None)

    def _sampled(self, address: Callable[[_Evaluator], Lanes | None], iterations: int = 1) -> SampledAddresses | None:
        """Returns the addresses of what a function says of samples of work-items, each so many times."""
        addresses = address(self._some_groups)
        if addresses is None:
            return None
        rows = np.broadcast_to(addresses, (GROUPS * self._items,)).reshape(GROUPS, self._items)
        groups = tuple(tuple((row - row.min() // ALIGNED * ALIGNED).tolist()) for row in rows)
        reach = _distinct(self._blocks(address, self._some_items)) * REACH_BLOCK
        missed = self._missed(address, iterations) if reach >= WORTH_LOOKING else 0.0
        return SampledAddresses(groups, reach, missed)

    def _missed(self, address: Callable[[_Evaluator], Lanes | None], iterations: int) -> float:
        """Returns the part of some accesses in a row whose blocks none of the `BEFORE` accesses just before has
        touched."""
        first = round(math.prod(self.group_counts) * iterations * UNLIKE)
        before, after = BEFORE // self._items, AFTER // self._items
        kept = distinct(self._chosen_blocks(address, iterations, first, first + before))
        asked = self._chosen_blocks(address, iterations, first + before, first + before + after)
        return (len(distinct(np.concatenate([kept, asked]))) - len(kept)) / max(len(asked), 1)

    def _chosen_blocks(
        self, address: Callable[[_Evaluator], Lanes | None], iterations: int, start: int, end: int
    ) -> Lanes:
        """Returns the blocks of groups' executions in their order, as far as they are among those that are looked at.

        Some groups run together, and go through their loops side by side. The launch's end comes before its beginning,
        as it mostly is run several times.
        """
        total = math.prod(self.group_counts)
        together, step = min(TOGETHER, total), max(AT_ONCE // self._items, 1)
        found = []
        for begin in range(start, end, step):
            of_wave, group = np.divmod(np.arange(begin, min(begin + step, end)), together)
            wave, iteration = np.divmod(of_wave, iterations)
            sample = self._first_items((wave * together + group) % total, iteration)
            blocks = self._blocks(address, sample)
            found.append(blocks[(blocks * GOLDEN & (2**32 - 1)) < 2**32 // EVERY])
        return np.concatenate(found)

    @staticmethod
    def _blocks(address: Callable[[_Evaluator], Lanes | None], sample: _Evaluator) -> Lanes:
        """Returns the block of each work-item of a sample, for an address that is known."""
        addresses = address(sample)
        assert addresses is not None
        return np.broadcast_to(addresses, (sample.groups.shape[1],)) // REACH_BLOCK

    @cached_property
    def _items(self) -> int:
        """Returns how many work-items of a group are looked at."""
        return min(math.prod(self.local_size), MOST_ITEMS)

    @cached_property
    def _some_groups(self) -> _Evaluator:
        """Holds the first work-items of random groups."""
        chosen = np.random.default_rng(SEED).integers(0, math.prod(self.group_counts), GROUPS)
        return self._first_items(chosen)

    @cached_property
    def _some_items(self) -> _Evaluator:
        """Holds random work-items of the launch."""
        random = np.random.default_rng(SEED + 1)
        groups = random.integers(0, math.prod(self.group_counts), POINTS)
        items = random.integers(0, math.prod(self.local_size), POINTS)
        return _Evaluator(self, _unravelled(groups, self.group_counts), _unravelled(items, self.local_size))

    def _first_items(self, chosen: Lanes, iterations: Lanes | None = None) -> _Evaluator:
        """Holds the first work-items of groups, each in an iteration of all loops; in the first unless said."""
        groups = np.repeat(_unravelled(chosen, self.group_counts), self._items, axis=1)
        items = np.tile(_unravelled(np.arange(self._items), self.local_size), len(chosen))
        return _Evaluator(self, groups, items, 0 if iterations is None else np.repeat(iterations, self._items))


class _Evaluator:
    """Evaluates expressions at some work-items; it remembers variables.

    Args:
        groups, items: ids of groups, and of work-items in them, a row for each axis.
        iterations: the number of an iteration, of all loops around an access as one.
    """

    def __init__(self, sampler: AddressSampler, groups: Lanes, items: Lanes, iterations: Lanes | int = 0) -> None:
        self.sampler, self.groups, self.items, self.iterations = sampler, groups, items, iterations
        self.known: dict[low.Register, Lanes | None] = {}

    def value(self, expression: low.Expression) -> Lanes | None:
        with np.errstate(all="ignore"):
            return self._value(expression)

    _value = Dispatch[[], "Lanes | None"](low.Expression)

    @_value.on(low.Node)
    def _computed(self, expression: low.Expression) -> Lanes | None:
        """Returns what an operator of whole numbers makes of values that are known."""
        if not isinstance(expression, low.Convert | low.Unary | low.Binary | low.Reinterpret | low.Offset):
            return None
        values = []
        for part in walks.parts(expression):
            if (value := self._value(part)) is None:
                return None
            values.append(value)
        type_ = expression.type
        match expression:
            case low.Offset():
                return np.asarray(values[0] + values[1].astype(np.int64) * expression.scale)
            case low.Reinterpret():
                return (
                    values[0] if isinstance(type_, Pointer) and isinstance(expression.operand.type, Pointer) else None
                )
            case low.Binary() if isinstance(type_, Scalar) and not type_.is_float and type_ != BOOL:
                if expression.operator in "/%" and np.any(values[1] == 0):
                    return None
                return np.asarray(binary(expression.operator, type_)(*values))
            case low.Convert() if type_ != BOOL:
                return _as(values[0], type_)
            case low.Unary() if expression.operator in "-~":
                return np.asarray(unary(expression.operator, type_)(*values))
        return None

    @_value.on(low.Constant)
    def _constant(self, expression: low.Constant) -> Lanes:
        return _as(np.asarray(expression.value), expression.type)

    @_value.on(low.Address)
    def _address(self, expression: low.Address) -> Lanes:
        return np.zeros((), np.int64)

    @_value.on(low.Read)
    def _read(self, expression: low.Read) -> Lanes | None:
        return self._register(expression.register)

    def _register(self, register: low.Register) -> Lanes | None:
        if register not in self.known:
            self.known[register] = None  # what depends on itself is not known
            values = self.sampler.assigned.get(register, ())
            if register.parameter is not None:
                if isinstance(register.type, Pointer):
                    self.known[register] = None if values else np.zeros((), np.int64)
                elif not values and register.name in self.sampler.arguments:
                    self.known[register] = _as(np.asarray(self.sampler.arguments[register.name]), register.type)
            elif len(values) == 1:
                self.known[register] = self._value(values[0])
        return self.known[register]

    @_value.on(low.WorkItem)
    def _work_item(self, expression: low.WorkItem) -> Lanes | None:
        axis = 0 if expression.axis is None else self._value(expression.axis)
        if axis is None or np.ndim(axis) != 0:
            return None
        counts, sizes = self.sampler.group_counts, self.sampler.local_size
        at = int(axis)
        if at >= len(sizes):
            return None
        values = {
            "get_global_id": self.groups[at] * sizes[at] + self.items[at],
            "get_local_id": self.items[at],
            "get_group_id": self.groups[at],
            "get_global_size": np.asarray(counts[at] * sizes[at]),
            "get_local_size": np.asarray(sizes[at]),
            "get_num_groups": np.asarray(counts[at]),
        }
        found = values.get(expression.function)
        return None if found is None else _as(found, expression.type)


def _as(value: Lanes, type_: object) -> Lanes:
    """Returns values in a type, wrapped around as C's unsigned numbers are."""
    return np.asarray(value).astype(type_.numpy) if isinstance(type_, Scalar) else np.asarray(value)


def _unravelled(numbers: Lanes, extents: Sequence[int]) -> Lanes:
    """Returns coordinates, the first axis fastest."""
    found = []
    for extent in extents:
        found.append(numbers % extent)
        numbers = numbers // extent
    return np.stack(found).astype(np.int64)


def _distinct(blocks: Lanes) -> int:
    """Returns about how many blocks there are, from those that a sample hits, each as likely as the others."""
    seen = len(distinct(blocks))
    if seen <= 1 or seen > 0.98 * len(blocks):  # too few are hit twice to say: at least so many
        return seen if seen <= 1 else len(blocks) ** 2 // max(2 * (len(blocks) - seen), 1)
    low_, high = float(seen), float(len(blocks)) ** 2
    for _ in range(60):
        middle = math.sqrt(low_ * high)
        expected = middle * -math.expm1(-len(blocks) / middle)
        low_, high = (middle, high) if expected < seen else (low_, middle)
    return round(low_)
