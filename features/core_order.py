"""Finds the order in which a processor's core goes through a launch, and what each access touches on the way.

A core takes the work-items of a work-group one vector of lanes after the other, along the first axis, each through all
loops up to the next barrier; then the next rows of the group, then once more around loops with barriers in them, then
the next work-group. What it touches within the first so many of these steps says which cache keeps it until it is
touched again.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np

from perfmodel.counting.counts import PAGE_BYTES, SUBGROUP_SIZE, AccessCount, Blocks, KernelCounts
from perfmodel.counting.quasipolynomial import QuasiPolynomial
from perfmodel.features.lanes import is_along_a_row, is_out_of_sight
from perfmodel.features.memory_access import Floats
from perfmodel.features.transactions import between_sizes

LINE = 64
"""Bytes of a cache's line."""
PAGE = 4096
"""Lines whose addresses differ by multiples of this share the few places of one set in each core's own caches."""

FOLLOWED = 32
"""A core remembers no more places at which lines are fetched one after the other, to fetch ahead at each (Intel's
Optimization Reference Manual, on the streamer of the second-level cache)."""

TABLE = "constant"
"""The tag of accesses to tables that a program itself declares: small, and kept by all work-items' accesses."""

Numbers = Mapping[QuasiPolynomial, Floats]
"""The values of counts at some sizes."""


@dataclass(frozen=True)
class Step:
    """Describes one step of the order, which is repeated, each time a stride further.

    Attributes:
        name: what the step is called; the same for all accesses that take it together.
        extent: how often it is repeated.
        stride: bytes from one repetition to the next; None where the access has no stride.
        is_guessed: True where only the product of its extent and those of other steps is known.
    """

    name: tuple[Any, ...]
    extent: Floats
    stride: Floats | None
    is_guessed: bool = False


@dataclass(frozen=True)
class Stream:
    """Holds the accesses to one array that have the same strides, and differ at most by an offset.

    Attributes:
        accesses: those of the program; the first stands for all.
        steps: from the innermost to the outermost.
        executed: executions by work-items, at most.
        whole: bytes of the array; infinite where that is not known.
        apart: how many of the accesses touch places of their own over the launch, the others' being neighbours of
            these; None where that is not known.
        distinct: bytes that all of them together touch over the launch; None where that is not known.
        of_group: blocks by size that a work-group touches, as emulated groups showed where data decide on addresses.
    """

    accesses: tuple[AccessCount, ...]
    steps: tuple[Step, ...]
    executed: Floats
    whole: Floats
    apart: Floats | None
    distinct: Floats | None
    of_group: Blocks | None = None

    def together(self, blocks: list[tuple[Floats, Floats]], block: int) -> list[Floats]:
        """Returns the bytes that all accesses together touch within each step, from the blocks that one of them
        touches.

        The rows above and below the middle of a window are the middle rows of later work-items: the more steps, the
        fewer places each access touches by itself.
        """
        accesses, found = len(self.accesses), []
        for number, _ in blocks:
            if self.apart is None:
                times: Floats = np.asarray(accesses**0.5)
            else:
                steps = np.maximum(number / blocks[0][0], 1.0)
                times = self.apart * (1 + (np.sqrt(accesses / self.apart) - 1) / steps)
            found.append(np.minimum(number * times, np.maximum(self.whole / block, number)) * block)
        return found

    def places(self, touched: Floats) -> Floats:
        """Returns how many times as many blocks all accesses touch over the launch as one of them does; one where that
        is not known, or where they lie in the same blocks, as fields of a record do.

        Args:
            touched: the bytes of the blocks that one access touches over the launch.
        """
        if self.apart is None or self.distinct is None:
            return np.asarray(1.0)
        return np.clip(self.distinct / np.maximum(touched, 1.0), 1.0, self.apart)

    @property
    def item(self) -> int:
        return self.accesses[0].bits // 8

    @property
    def is_stored(self) -> bool:
        return any(access.direction != "load" for access in self.accesses)

    def touched(self, lanes: int, block: int) -> list[tuple[Floats, Floats]]:
        """Returns, for each step with all steps inside it, how many blocks are touched, and how many blocks side by
        side would need as large a cache: more, where those touched fall into few of its sets."""
        found: list[tuple[Floats, Floats]] = []
        within: Floats = np.asarray(1.0)
        unknown: Floats = np.asarray(1.0)
        strides: list[Step] = []
        sampled = self._sampled(lanes, block)
        before: Floats = np.asarray(1.0)
        for step in self.steps:
            within = within * step.extent
            if step.stride is None:
                unknown = unknown * step.extent
            else:
                strides.append(step)
            blocks, lines = distinct(strides, self.item, block)
            blocks = blocks * unknown
            if sampled is not None and (step.name[0] in ("lanes", "axis", "groups") or self.of_group):
                at_once, of_group = sampled
                known = at_once * np.maximum(within / lanes, 1.0)
                if step.name[0] == "groups":
                    known = before * step.extent
                elif step.name[0] != "lanes":
                    known = np.minimum(known, of_group)
                blocks = np.minimum(blocks, np.maximum(known, 1.0))
            reach = self.accesses[0].reach
            blocks = np.minimum(blocks, np.maximum((self.whole if reach is None else reach) / block, 1.0))
            before = blocks
            is_spread = unknown > 1 if sampled is None else np.asarray(True)
            room = np.where(is_spread | (block >= PAGE), blocks, blocks * (PAGE / LINE) / lines)
            found.append((blocks, room))
        return found

    def spread(self) -> Floats:
        """Returns how much of what is touched again without a stride was touched at any time before, from 0 to 1.

        That is all where nobody looked, or where a work-group goes to a page for each of its lines, or to all pages;
        little where it stays in a part of the array.
        """
        first = self.accesses[0]
        if self.of_group is None:
            return np.asarray(float(first.addresses is None and first.touched is None))
        lines, pages = self._of_group(LINE), self._of_group(PAGE_BYTES)
        share: Floats = np.minimum(pages / np.maximum(np.minimum(lines, self.whole / PAGE_BYTES), 1e-9), 1.0)
        return share

    def _sampled(self, lanes: int, block: int) -> tuple[float, float] | None:
        """Returns the blocks that a vector touches at once and those of a work-group, where addresses are known."""
        first = self.accesses[0]
        if self.of_group is not None and first.touched is not None:
            at_once = between_sizes(first.touched, block) * lanes / SUBGROUP_SIZE
            return max(at_once, 1.0), max(self._of_group(block), 1.0)
        return _sampled(first, lanes, block)

    def _of_group(self, block: int) -> float:
        """Returns the blocks that a work-group touches. Of sizes that were seen of sub-groups alone, there are as many
        to a smaller one as of these, rather than as many as lie between that and a page."""
        seen = dict(self.of_group or ())
        at_once = self.accesses[0].touched or ()
        for (smaller, few), (size, number) in itertools.pairwise(sorted(at_once)):
            if smaller in seen and size not in seen:
                seen[size] = seen[smaller] * number / few
        return between_sizes(tuple(sorted(seen.items())), block)

    def is_apart(self) -> Floats:
        """Returns 1 where vectors load from places that a compiler does not see, or under a mask, so that nothing is
        loaded ahead; 0 where they load at a stride that it sees, or from one place."""
        first, stride = self.accesses[0], self.steps[0].stride
        if first.executions.issued is not None:
            return np.asarray(1.0)
        if stride is None:
            return np.asarray(float(not is_along_a_row(first)))
        return np.where(stride == 0, 0.0, float(is_out_of_sight(first)))

    def side_by_side(self, streams: int) -> Floats:
        """Returns how many lines it goes through one after the other, before it jumps elsewhere.

        Jumps among a few places are none, where each goes on beside where it was left: a core fetches ahead at each.

        Args:
            streams: how many go on beside each other.
        """
        span: Floats = np.asarray(float(self.item))
        places: Floats = np.asarray(float(streams))
        going: Any = np.asarray(True)
        for step in self.steps:
            moves = step.extent > 1
            if step.stride is None:
                going = going & ~moves
                continue
            stays, near = step.stride == 0, np.abs(step.stride) <= span + LINE
            going = going & (places < FOLLOWED)
            span = np.where(going & moves & near, span + (step.extent - 1) * np.abs(step.stride), span)
            places = np.where(moves & ~stays & ~near, places * step.extent, places)
        return np.maximum(span / LINE, 1.0)


def distinct(steps: Sequence[Step], item: int, block: int) -> tuple[Floats, Floats]:
    """Returns the blocks that accesses at these strides touch, and how many places of a page their lines lie at.

    Jumps that go on where others ended make one comb with them, so that what both touch counts once; those of a guessed
    extent do not, as that says nothing of where they end.
    """
    span: Floats = np.asarray(float(item))
    count: Floats = np.asarray(1.0)
    places: Floats = np.asarray(1.0)
    teeth: Floats = np.asarray(1.0)  # of the comb that the last jumps are, how far apart, and the places of one so wide
    apart: Floats = np.asarray(np.nan)
    of_comb: Floats = np.asarray(1.0)
    if steps:
        known = [np.abs(step.stride) for step in steps if step.stride is not None]
        guessed = [np.asarray(step.is_guessed, np.float64) for step in steps]
        each = np.stack(np.broadcast_arrays(*(step.extent for step in steps), *known, *guessed))
        each = each.reshape(3, len(steps), *each.shape[1:])
        order = np.argsort(each[1], axis=0, kind="stable")
        for extent, stride, is_guessed in zip(*(np.take_along_axis(values, order, 0) for values in each), strict=True):
            moves = (extent > 1) & (stride > 0)
            joins = moves & (stride <= np.maximum(span, block))
            jumps = moves & ~joins
            span = np.where(joins, span + (extent - 1) * stride, span)
            further = stride / apart
            lengthens = jumps & (is_guessed == 0) & (further <= teeth) & (further == np.rint(further))
            longer = teeth + (extent - 1) * further
            count = np.where(lengthens, count / teeth * longer, np.where(jumps, count * extent, count))
            begins = jumps & ~lengthens
            period = PAGE / np.gcd(np.maximum(np.rint(stride), 1).astype(np.int64), PAGE)
            of_comb = np.where(begins, period, of_comb)
            before = np.where(lengthens, np.minimum(teeth, of_comb), 1.0)
            teeth = np.where(lengthens, longer, np.where(begins, extent, teeth))
            places = np.where(jumps, places / before * np.minimum(teeth, of_comb), places)
            apart = np.where(begins, stride, apart)
    blocks = count * np.maximum(span / block, 1.0)
    return blocks, np.minimum(np.maximum(span / LINE, 1.0) * places, PAGE / LINE)


def _sampled(access: AccessCount, lanes: int, block: int) -> tuple[float, float] | None:
    """Returns the blocks that a vector and a group touch at once, where the first groups' addresses are known."""
    if access.addresses is None:
        return None
    at_once, of_group = [], []
    for group in access.addresses:
        blocks = np.asarray(group) // block
        vectors = [blocks[first : first + lanes] for first in range(0, len(blocks), lanes)]
        at_once.append(np.mean([len(np.unique(vector)) for vector in vectors]))
        of_group.append(len(np.unique(blocks)))
    return float(np.mean(at_once)), float(np.mean(of_group))


def counts_needed(counts: KernelCounts) -> list[QuasiPolynomial]:
    """Returns the counts whose values `streams` asks for."""
    found = [counts.work_items, counts.barriers.workitem, *counts.local_size, *_grid(counts)]
    for access in counts.accesses:
        strides = (access.local_strides, access.group_strides, access.loop_strides)
        found += [stride for each in strides for stride in each.values() if stride is not None]
        found.append(access.executions.workitem)
    found += [chain.iterations.workitem for chain in counts.chains]
    found += [access.footprint for access in counts.accesses if access.footprint is not None]
    for footprint in counts.footprints:
        found += [count for count in (footprint.size, footprint.elements) if count is not None]
    return list(dict.fromkeys(found))


class Walk:
    """A core's way through a launch at some sizes: its streams, and what these touch within each step.

    Attributes:
        streams: of accesses to global memory, each in the order in which a core goes through it.
        lanes: work-items of a vector.
    """

    def __init__(self, counts: KernelCounts, numbers: Numbers, lanes: int, axis: int) -> None:
        self.streams, self.lanes = streams(counts, numbers, lanes, axis), lanes
        self._touched: dict[int, list[list[tuple[Floats, Floats]]]] = {}
        self._sets: dict[int, dict[tuple[Any, ...], Floats]] = {}

    def touched(self, block: int) -> list[list[tuple[Floats, Floats]]]:
        """Returns what `Stream.touched` says of each stream."""
        if block not in self._touched:
            self._touched[block] = [stream.touched(self.lanes, block) for stream in self.streams]
        return self._touched[block]

    def working_sets(self, block: int) -> dict[tuple[Any, ...], Floats]:
        """Returns the bytes that all streams together touch within each step, at least those of the one whose lines
        share the fewest sets."""
        if block not in self._sets:
            together: dict[tuple[Any, ...], Floats] = {}
            crowded: dict[tuple[Any, ...], Floats] = {}
            nothing = np.asarray(0.0)
            for stream, blocks in zip(self.streams, self.touched(block), strict=True):
                together_here = stream.together(blocks, block)
                for step, (_, room), touched in zip(stream.steps, blocks, together_here, strict=True):
                    together[step.name] = together.get(step.name, nothing) + touched
                    crowded[step.name] = np.maximum(crowded.get(step.name, nothing), room * block)
            if block < PAGE:
                together = {name: np.maximum(each, crowded[name]) for name, each in together.items()}
            self._sets[block] = together
        return self._sets[block]


class Walks:
    """Keeps the last walk, as several features ask of the same one after the other."""

    def __init__(self) -> None:
        self.last: tuple[KernelCounts, tuple[Any, ...], Walk] | None = None

    def of(self, counts: KernelCounts, needed: Sequence[QuasiPolynomial], values: Sequence[Any], lanes: int) -> Walk:
        """Returns the walk for the values of the counts that are needed: in vectors of so many work-items along the
        first axis, or in those that machine code has."""
        lanes, axis = (lanes, 0) if counts.core is None else (counts.core.lanes, counts.core.axis)
        last = self.last
        if last and last[0] is counts and last[2].lanes == lanes and all(map(_same, last[1], values)):
            return last[2]
        numbers = dict(zip(needed, (np.asarray(value, np.float64) for value in values), strict=True))
        walk = Walk(counts, numbers, lanes, axis)
        self.last = (counts, tuple(values), walk)
        return walk


def _same(one: Any, other: Any) -> bool:
    return one is other or (np.ndim(one) == 0 and np.ndim(other) == 0 and bool(one == other))


def streams(counts: KernelCounts, numbers: Numbers, lanes: int, axis: int) -> list[Stream]:
    """Returns the streams of accesses to global memory, each in the order in which a core goes through it, in vectors
    of so many work-items along an axis of work-groups."""
    items = numbers[counts.work_items]
    iterations: dict[tuple[str, ...], Floats] = {(): np.asarray(1.0)}
    for loops, copies, executed in (
        *((tuple(access.loop_strides), access.copies, access.executions.workitem) for access in counts.accesses),
        *((chain.loops, (), chain.iterations.workitem) for chain in counts.chains),
    ):
        for written_out in range(len(copies) + 1):
            around = loops[: len(loops) - written_out]
            times = numbers[executed] / items / math.prod(copies[len(copies) - written_out :])
            if around:
                iterations[around] = np.maximum(iterations.get(around, np.asarray(0.0)), times)
    met = numbers[counts.barriers.workitem] / items
    with_barriers = {
        nest for nest in _loops_with_barriers(counts) if np.any(2 * met >= iterations.get(nest, np.asarray(1.0)))
    }
    found: dict[tuple[Any, ...], list[AccessCount]] = {}
    for access in counts.accesses:
        if access.space == "global" and TABLE not in access.tags:
            strides = (access.local_strides, access.group_strides, access.loop_strides)
            key = (access.variable, access.bits, *(tuple(each.items()) for each in strides))
            found.setdefault(key, []).append(access)
    made = []
    for alike in found.values():
        executed = np.max(np.broadcast_arrays(*(numbers[each.executions.workitem] for each in alike)), axis=0)
        steps = _steps(
            counts, alike[0], numbers, _extents(tuple(alike[0].loop_strides), iterations), with_barriers, lanes, axis
        )
        whole = _whole(counts, alike[0].variable, numbers)
        footprint = counts.footprint_of(alike[0].variable, alike[0].direction)
        of_group = None if footprint is None or alike[0].touched is None else footprint.touched
        apart, distinct = _together(counts, alike, numbers)
        made.append(
            Stream(
                accesses=tuple(alike),
                steps=tuple(steps),
                executed=executed,
                whole=whole,
                apart=apart,
                distinct=distinct,
                of_group=of_group,
            )
        )
    return made


def _together(
    counts: KernelCounts, alike: Sequence[AccessCount], numbers: Numbers
) -> tuple[Floats | None, Floats | None]:
    """Returns how many of these accesses touch places of their own, what all touch together by what one touches, and
    the bytes that all touch together; None where that is not known."""
    footprint = counts.footprint_of(alike[0].variable, "any")
    if footprint is None or footprint.elements is None or alike[0].footprint is None:
        return None, None
    touched = numbers[footprint.elements]
    apart = np.clip(touched / np.maximum(numbers[alike[0].footprint], 1.0), 1.0, len(alike))
    return apart, touched * np.dtype(footprint.dtype).itemsize


def _whole(counts: KernelCounts, variable: str, numbers: Numbers) -> Floats:
    for footprint in counts.footprints:
        if footprint.variable == variable and footprint.size is not None:
            return numbers[footprint.size] * np.dtype(footprint.dtype).itemsize
    return np.asarray(np.inf)


def _grid(counts: KernelCounts) -> tuple[QuasiPolynomial, ...]:
    return counts.grid or (counts.work_groups,)


def _steps(
    counts: KernelCounts,
    access: AccessCount,
    numbers: Numbers,
    extents: Sequence[tuple[Floats, bool]],
    with_barriers: Set[tuple[str, ...]],
    lanes: int,
    axis: int,
) -> list[Step]:
    item = access.bits // 8

    def stride(strides: Mapping[Any, QuasiPolynomial | None], axis: Any, times: Floats | int = 1) -> Floats | None:
        if axis not in strides:
            return np.asarray(0.0)
        found = strides[axis]
        return None if found is None else numbers[found] * item * times

    loops = tuple(access.loop_strides)

    def through(kind: str, place: int) -> Step:
        extent, is_guessed = extents[place]
        return Step((kind, loops[:place]), extent, stride(access.loop_strides, loops[place]), is_guessed)

    outer = max((n for n in range(len(loops) + 1) if loops[:n] in with_barriers), default=0)
    local = [numbers[size] for size in counts.local_size]
    width = np.minimum(local[axis], lanes) if local else np.asarray(1.0)
    steps = [Step(("lanes",), width, stride(access.local_strides, axis))]
    steps += [through("loop", place) for place in reversed(range(outer, len(loops)))]
    for other in sorted(range(len(local)), key=lambda other: other != axis):
        rows, by = (
            (np.maximum(local[axis] / width, 1.0), stride(access.local_strides, axis, width))
            if other == axis
            else (local[other], stride(access.local_strides, other))
        )
        steps.append(Step(("axis", other, loops[:outer]), rows, by))
    steps += [through("around", place) for place in reversed(range(outer))]
    for other, groups in enumerate(_grid(counts)):
        steps.append(Step(("groups", other), numbers[groups], stride(access.group_strides, other)))
    return steps


def _extents(loops: tuple[str, ...], iterations: Mapping[tuple[str, ...], Floats]) -> list[tuple[Floats, bool]]:
    """Returns the iterations of each of these loops, and whether they are a guess: loops of which only the product of
    iterations is known are taken to have equally many."""
    known = [place for place in range(len(loops) + 1) if loops[:place] in iterations]
    extents: list[tuple[Floats, bool]] = []
    for first, last in itertools.pairwise(known):
        together = np.maximum(iterations[loops[:last]] / np.maximum(iterations[loops[:first]], 1e-9), 1.0)
        extents += [(together ** (1 / (last - first)), last - first > 1)] * (last - first)
    return extents


def _loops_with_barriers(counts: KernelCounts) -> frozenset[tuple[str, ...]]:
    """Returns the nests of loops in which a group's work-items may wait for each other: those that stores to local
    memory have in common with loads of the same array."""
    if not counts.barriers.workitem.pieces:
        return frozenset()
    local = [access for access in counts.accesses if access.space == "local"]
    found = set()
    for stored in local:
        for loaded in local:
            if (stored.direction, loaded.direction) == ("store", "load") and stored.variable == loaded.variable:
                pairs = zip(stored.loop_strides, loaded.loop_strides, strict=False)
                common = 0
                for one, other in pairs:
                    if one != other:
                        break
                    common += 1
                found.add(tuple(stored.loop_strides)[:common])
    return frozenset(found)
