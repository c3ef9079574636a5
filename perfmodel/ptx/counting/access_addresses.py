"""Tells from the addresses of one access its strides, its transactions, and the bytes that blocks touch."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.distinct import distinct, distinct_in_rows
from perfmodel.counting.atomics import Update, bank_passes, sector_passes
from perfmodel.counting.banks import WORD_BYTES, bank_cycles
from perfmodel.ptx.counting.loop_steps import LoopSteps
from perfmodel.ptx.counting.regions import Region, hull, joined, region, repeated, union
from perfmodel.ptx.counting.subgroup_addresses import by_subgroups, in_tiles, others_met
from perfmodel.ptx.emulation.lanes import Mask
from perfmodel.ptx.emulation.recording import NOWHERE, Addresses

Array = NDArray[np.int64]
MOST_LOOKED_AT = 64
"""So many executions at scattered addresses are looked at for transactions and bank conflicts."""
MOST_STARTS = 1 << 21
MOST_OF_SERIES = 64
"""So many executions of those that follow each other and were not run are looked at for strides."""
MOST_OF_ALL_SERIES = 1 << 15
ONE_BY_ONE = 4
"""The addresses of more blocks than so many are found for all blocks together."""
UNIT = 128
"""Patterns of addresses from a multiple of so many bytes serve for smaller blocks, too."""
SEEN = 512
"""Sub-groups whose addresses have different patterns nearly all, of so many, are not told apart any further."""
MOSTLY = 0.5
"""Blocks that may be in different iterations go by the strides that more than this part of executions have."""


class AccessAddresses:
    """Holds the addresses of one access of one array."""

    def __init__(self, noted: Addresses) -> None:
        self.noted, self.lanes = noted, noted.lanes

    @cached_property
    def bases(self) -> Array:
        """The addresses that the thread at the origin of each block would access, execution by execution."""
        rows = [row[None] for _, row in self.noted.rows]
        most = min(MOST_OF_SERIES, max(MOST_OF_ALL_SERIES // max(len(self.noted.series), 1), 1))
        some: dict[int, Array] = {}
        for _, row, step, count in self.noted.series:
            if count not in some:
                some[count] = distinct(np.linspace(1, count, most).astype(np.int64))[:, None]
            rows.append(row + some[count] * step)
        return np.concatenate(rows) if rows else np.zeros((0, self.lanes.count), np.int64)

    @property
    def local_strides(self) -> tuple[int | None, ...]:
        """Bytes from a thread to its neighbour along each axis; None where that is not constant."""
        if not self.noted.is_regular or self.is_laid_out or self._is_across_tiles:
            return (None, None, None)
        return tuple(stride or 0 for stride in self.noted.strides)

    @property
    def is_of_image(self) -> bool:
        """True for pixels of an image, which lie in tiles."""
        return self.noted.row_bytes > 0

    @property
    def _is_across_tiles(self) -> bool:
        """True where neighbours read pixels of an image that do not lie along a row."""
        step = next((step for step in self.noted.strides if step), 0)
        return self.is_of_image and step not in (0, self.noted.n_bytes)

    @property
    def is_laid_out(self) -> bool:
        """True where threads lie to each other in another way than by strides, which is the same in all blocks."""
        return self.noted.layout is not None

    @cached_property
    def group_strides(self) -> tuple[int, ...] | None:
        """Bytes from a block to its neighbour along each axis of the grid; None where that is not constant."""
        if not self.noted.is_regular or not len(self.bases):
            return None
        known = self.bases != NOWHERE
        whole = int(np.argmax(known.sum(axis=1)))
        taking = np.flatnonzero(known[whole])
        if len(taking) < 2:
            return (0, 0, 0) if self.lanes.grid == (1, 1, 1) else None
        ids = self.lanes.blocks[:, taking].T.astype(np.float64)
        offsets = self.bases[whole, taking]
        away = ids - ids[0]
        found, *_ = np.linalg.lstsq(away, (offsets - offsets[0]).astype(np.float64), rcond=None)
        steps = np.rint(found).astype(np.int64)
        moved = self.bases - (self.lanes.blocks.T @ steps)[None, :]
        first = np.take_along_axis(moved, np.argmax(known, axis=1)[:, None], axis=1)
        is_steady = np.all((moved == first) | ~known, axis=1)
        if not (np.mean(is_steady) > MOSTLY if self.noted.is_thinned else np.all(is_steady)):
            return None
        return tuple(int(step) for step in steps)

    @cached_property
    def steps(self) -> LoopSteps:
        """The strides by which the access moves on from execution to execution."""
        return LoopSteps(self.noted, self.bases[: len(self.noted.rows)])

    def executions_at(self, limit: int) -> list[tuple[Mask, Array]]:
        """Returns some executions with the addresses of their lanes."""
        scattered, rows = self._some(limit)
        return [*scattered, *((mask, self._of_lanes(mask, row)) for mask, row in rows)]

    def _some(self, limit: int) -> tuple[list[tuple[Mask, Array]], list[tuple[Mask, Array]]]:
        """Returns some executions at addresses that are not regular, and some at those that are; see `Addresses`."""
        scattered, rows = self.noted.scattered, self.noted.rows
        if len(scattered) > limit:
            scattered = [scattered[place] for place in np.linspace(0, len(scattered) - 1, limit).astype(int)]
        if len(scattered) >= limit:
            return scattered, []
        return scattered, rows[:: max(1, len(rows) // limit)][:limit]

    def _of_lanes(self, mask: Mask, row: Array) -> Array:
        """Returns the addresses of the lanes that take part, by where the thread at the origin of each block would
        access."""
        if mask.columns is not None:
            return np.asarray(row[:, None] + self.noted.along[mask.columns]).ravel()
        return np.asarray(row[self.lanes.block_of[mask.index]] + self.noted.along[mask.within])

    def blocks_of_subgroups(self, width: int, size: int) -> float:
        """Returns how many blocks of so many bytes a sub-group touches in one execution, on average."""
        if (width, size) not in self._known_blocks:
            unit = UNIT if UNIT % size == 0 else size
            found = self._mean(width, unit, lambda table, active: distinct_in_rows(table // size, active))
            self._known_blocks[width, size] = found
        return self._known_blocks[width, size]

    def phases(self, width: int, size: int) -> float | None:
        """Returns at how many places relative to blocks of so many bytes a sub-group's lanes are in one execution, on
        average; if they go elsewhere instead of moving on by a loop's stride, at as many as there are. None where no
        stride is known."""
        stride = self.steps.stride
        if not stride:
            return None
        found = self._mean(width, UNIT, lambda table, active: distinct_in_rows(table % size, active))
        steady = self.steps.steadiness(width)
        return steady * found + (1 - steady) * size / min(abs(stride), size)

    @cached_property
    def _known_blocks(self) -> dict[tuple[int, int], float]:
        return {}

    def blocks_of_private_arrays(self, width: int, size: int) -> float:
        """Returns the same of lanes' own arrays, whose words of one place lie side by side for a sub-group."""
        neighbours = max(size // WORD_BYTES, 1)
        beside, apart = np.arange(width) // neighbours, -(-width // neighbours)

        def asked(table: Array, active: NDArray[np.bool_]) -> Array:
            return distinct_in_rows(table // WORD_BYTES * apart + beside, active)

        return max(self.noted.n_bytes // WORD_BYTES, 1) * self._mean(width, WORD_BYTES, asked, in_place=True)

    def bank_cycles(self, width: int, banks: int, *, are_shared: bool, are_copied: bool) -> float:
        """Returns the cycles that local memory takes for a sub-group in one execution, on average; of images, whose
        pixels meet in no bank, those that their bytes take; see `perfmodel.counting.banks`."""
        n_bytes = self.noted.n_bytes
        if self.is_of_image:
            return max(width * n_bytes / (WORD_BYTES * banks), 1.0)

        def asked(table: Array, active: NDArray[np.bool_]) -> NDArray[Any]:
            return bank_cycles(table, n_bytes, banks, active=active, are_shared=are_shared, are_copied=are_copied)[0]

        return self._mean(width, WORD_BYTES, asked, in_place=n_bytes > WORD_BYTES)

    def bank_passes(self, width: int, banks: int, update: Update) -> float:
        """Returns the passes of atomics in local memory likewise."""
        subgroups = math.ceil(self.lanes.per_block / width)
        others = others_met(self.lanes, self.looked_at, width) if update.is_loop else math.inf

        def asked(table: Array, active: NDArray[np.bool_]) -> NDArray[Any]:
            return bank_passes(
                table,
                self.noted.n_bytes,
                banks,
                active=active,
                update=update,
                subgroups=subgroups,
                is_shared=self.local_strides == (0, 0, 0),
                others=others,
            )

        return self._mean(width, WORD_BYTES, asked)

    def sector_passes(self, width: int, size: int, *, are_tried_again: bool = False) -> float:
        """Returns the passes of atomics in global memory likewise."""

        def asked(table: Array, active: NDArray[np.bool_]) -> NDArray[Any]:
            return sector_passes(table, size, active, are_tried_again=are_tried_again)

        return self._mean(width, size, asked)

    def _mean(
        self,
        width: int,
        unit: int,
        asked: Callable[[Array, NDArray[np.bool_]], NDArray[Any]],
        *,
        in_place: bool = False,
    ) -> float:
        """Returns the mean of what is asked of the addresses of sub-groups, of which a mask tells who takes part.

        Args:
            unit: addresses that are all moved by a multiple of so many bytes have the same answer.
            in_place: whether it matters which lanes take part.
        """
        tables, counts = self._patterns(width, unit, in_place)
        if not len(tables):
            return 0.0
        active = tables != NOWHERE
        answers = asked(np.where(active, tables, 0), active)
        return float((answers * counts).sum() / counts.sum())

    def _patterns(self, width: int, unit: int, in_place: bool) -> tuple[Array, Array]:
        """Returns the patterns of a sub-group's addresses, from a multiple of `unit`, in rows that end in `NOWHERE`, or
        have it where a lane does not take part, and how often there is each; different ones where that makes them
        fewer."""
        key = width, unit, in_place
        if key not in self._known_patterns:
            patterns: Counter[bytes] = Counter()
            others: list[tuple[Array, int]] = []
            for mask, addresses, times in self._different(unit):
                if self.is_of_image:
                    addresses = in_tiles(addresses, self.noted.row_bytes)
                table = by_subgroups(self.lanes, mask, addresses, width, unit, in_place=in_place)
                if len(table) and (table == table[0]).all():
                    patterns[table[0].tobytes()] += times * len(table)
                elif len(patterns) > max(SEEN, MOSTLY * patterns.total()):
                    others.append((table, times))
                else:
                    found = Counter(table.view(np.dtype((np.void, table.itemsize * width)))[:, 0].tolist())
                    patterns.update({pattern: times * count for pattern, count in found.items()})
            tables = [np.frombuffer(b"".join(patterns), np.int64).reshape(-1, width), *(table for table, _ in others)]
            counts = [np.fromiter(patterns.values(), np.int64), *(np.full(len(table), n) for table, n in others)]
            self._known_patterns[key] = np.concatenate(tables), np.concatenate(counts)
        return self._known_patterns[key]

    def _different(self, unit: int) -> Iterator[tuple[Mask, Array, int]]:
        """Yields what `looked_at` holds, executions that are the same but for multiples of `unit` once, and how many
        these are."""
        scattered, rows = self._some(MOST_LOOKED_AT)
        for mask, addresses in scattered:
            yield mask, addresses, 1
        alike: dict[tuple[int, bytes], list[tuple[Mask, Array]]] = {}
        for place, (mask, row) in enumerate(rows):
            # Tiles of images are no multiples.
            same = place.to_bytes(8) if self.is_of_image else (row % unit).tobytes()
            alike.setdefault((id(mask), same), []).append((mask, row))
        for several in alike.values():
            mask, row = several[0]
            yield mask, self._of_lanes(mask, row), len(several)

    @cached_property
    def looked_at(self) -> list[tuple[Mask, Array]]:
        """The executions that are looked at for transactions and bank conflicts, with the addresses of their lanes."""
        return self.executions_at(MOST_LOOKED_AT)

    @cached_property
    def _known_patterns(self) -> dict[tuple[int, int, bool], tuple[Array, Array]]:
        return {}

    def residue(self, size: int) -> int | None:
        """Returns the remainder of all addresses when divided by so many bytes; None where it differs."""
        executions = self.looked_at
        found = distinct(np.concatenate([addresses % size for _, addresses in executions])) if executions else [0, 0]
        return int(found[0]) if len(found) == 1 else None

    def region_of(self, block: int) -> Region:
        """Returns the bytes that one emulated block touches."""
        return touched_by([self], block)

    def ends_in(self, block: int) -> tuple[int, int] | None:
        """Returns between which addresses all bytes are that one emulated block touches; None if it touches none."""
        found = [(one, 0) for one in self.regular_parts(block)]
        found += [(one, step * count) for one, step, count in self.series_of(block)]
        ends = [
            edge + away
            for one, away in found
            for edge, away in ((one.starts[0], min(away, 0)), (one.ends[-1], max(away, 0)))
        ]
        starts = self.scattered_starts(block)
        if len(starts):
            ends += [starts.min(), starts.max() + self.noted.n_bytes]
        return (int(min(ends)), int(max(ends))) if ends else None

    def first_half(self) -> AccessAddresses:
        """Returns the addresses of the first half of the executions that were run."""
        noted = self.noted
        rows, scattered = (some[: (len(some) + 1) // 2] for some in (noted.rows, noted.scattered))
        return AccessAddresses(replace(noted, rows=rows, scattered=scattered))

    def known_in(self, block: int) -> int:
        """Returns how many lanes of one emulated block went to the addresses that are known."""
        return int(self._known[block])

    @cached_property
    def _known(self) -> Array:
        """The number of lanes, by emulated block, that went to the addresses that are known."""
        run = [(mask, 1) for mask, _ in [*self.noted.rows, *self.noted.scattered]]
        found = np.zeros(self.lanes.count, np.int64)
        for mask, times in [*run, *((mask, count) for mask, _, _, count in self.noted.series)]:
            found += times * mask.by_block
        return found

    def scattered_starts(self, block: int) -> Array:
        """Returns the addresses of one emulated block's executions that are not regular, and of those whose set of
        lanes occurs once."""
        if len(self._asked) >= ONE_BY_ONE:
            return self._scattered_by_block[block]
        self._asked.add(block)
        found = list(self._scattered_in(block))
        return np.concatenate(found) if found else np.zeros(0, np.int64)

    @cached_property
    def _asked(self) -> set[int]:
        return set()

    @cached_property
    def _scattered_by_block(self) -> list[Array]:
        """The addresses, by emulated block, of executions that are not regular, and of those whose set of lanes
        occurs once."""
        block_of = self.lanes.block_of
        found = [(mask.index, addresses) for mask, addresses in self.noted.scattered]
        single = [(mask, rows[0]) for mask, rows in self._rows_by_mask if len(rows) == 1]
        found += [(mask.index, row[block_of[mask.index]] + self.noted.along[mask.within]) for mask, row in single]
        if not found:
            return [np.zeros(0, np.int64)] * self.lanes.count
        addresses = np.concatenate([own for _, own in found])
        blocks = np.concatenate([block_of[index] for index, _ in found])
        ends = np.cumsum(np.bincount(blocks, minlength=self.lanes.count))
        blocks = blocks.astype(np.min_scalar_type(self.lanes.count))  # few bits are sorted many times as fast
        ordered = addresses[np.argsort(blocks, kind="stable")]
        return [ordered[first:end] for first, end in pairwise([0, *ends.tolist()])]

    def _scattered_in(self, block: int) -> Iterator[Array]:
        """Yields the same of one emulated block, without those of all others."""
        per_block = self.lanes.per_block
        lanes = slice(block * per_block, (block + 1) * per_block)
        for mask, addresses in self.noted.scattered:
            first, end = np.searchsorted(mask.index, (lanes.start, lanes.stop))
            yield addresses[first:end]
        for mask, rows in self._rows_by_mask:
            if len(rows) == 1 and rows[0][block] != NOWHERE:
                yield rows[0][block] + self.noted.along[mask.active[lanes]]

    @cached_property
    def _rows_by_mask(self) -> list[tuple[Mask, Array]]:
        """The executions at regular addresses, those of the same lanes together."""
        found: dict[int, tuple[Mask, list[Array]]] = {}
        for mask, row in self.noted.rows:
            found.setdefault(id(mask), (mask, []))[1].append(row)
        return [(mask, np.stack(rows)) for mask, rows in found.values()]

    def series_of(self, block: int) -> list[tuple[Region, int, int]]:
        """Returns the bytes that a block touches in executions that were not run: those of the one before, by how much
        they move from one to the next, and how many there are."""
        if block not in self._known_series:
            self._known_series[block] = list(self._found_series(block))
        return self._known_series[block]

    @cached_property
    def _known_series(self) -> dict[int, list[tuple[Region, int, int]]]:
        return {}

    def _found_series(self, block: int) -> Iterator[tuple[Region, int, int]]:
        lanes = slice(block * self.lanes.per_block, (block + 1) * self.lanes.per_block)
        starts: dict[tuple[bytes, int, int], list[int]] = {}
        patterns: dict[int, bytes] = {}
        rows, steps = self._series
        own = zip(self.noted.series, rows[:, block].tolist(), steps[:, block].tolist(), strict=True)
        for (mask, _, _, count), row, step in own:
            if row != NOWHERE:
                if id(mask) not in patterns:
                    patterns[id(mask)] = mask.active[lanes].tobytes()
                starts.setdefault((patterns[id(mask)], step, count), []).append(row)
        for (pattern, step, count), origins in starts.items():
            yield _shifted(self._pattern(pattern), np.asarray(origins, np.int64)), step, count

    @cached_property
    def _series(self) -> tuple[Array, Array]:
        """The rows at which executions that were not run begin, and by how much they move; each by blocks."""
        none = np.zeros((0, self.lanes.count), np.int64)
        rows = [row for _, row, _, _ in self.noted.series]
        steps = [step for _, _, step, _ in self.noted.series]
        return (np.stack(rows), np.stack(steps)) if rows else (none, none)

    def regular_parts(self, block: int) -> list[Region]:
        """Returns the bytes that one emulated block touches by executions of the same lanes as others."""
        if block not in self._regular_parts:
            self._regular_parts[block] = list(self._regular_regions(block))
        return self._regular_parts[block]

    @cached_property
    def _regular_parts(self) -> dict[int, list[Region]]:
        return {}

    def _regular_regions(self, block: int) -> Iterator[Region]:
        lanes = slice(block * self.lanes.per_block, (block + 1) * self.lanes.per_block)
        starts: dict[bytes, list[Array]] = {}
        for mask, rows in self._rows_of_several:
            own = rows[block]
            if own[0] != NOWHERE:  # as in all of them
                starts.setdefault(mask.active[lanes].tobytes(), []).append(own)
        offsets = {pattern: self.noted.along[np.frombuffer(pattern, bool)] for pattern in starts}
        places = {pattern: distinct(np.concatenate(origins)) for pattern, origins in starts.items()}
        if sum(len(offsets[pattern]) * len(places[pattern]) for pattern in starts) > MOST_STARTS:
            for pattern, origins in places.items():
                yield _shifted(self._pattern(pattern), origins)
        elif starts:
            every = [(places[pattern][:, None] + offsets[pattern]).ravel() for pattern in starts]
            yield region(np.concatenate(every), self.noted.n_bytes)

    @cached_property
    def _rows_of_several(self) -> list[tuple[Mask, Array]]:
        """The executions by the same lanes as others, those of a block together."""
        return [(mask, np.ascontiguousarray(rows.T)) for mask, rows in self._rows_by_mask if len(rows) > 1]

    def _pattern(self, pattern: bytes) -> Region:
        """Returns the bytes that some lanes of a block touch, relative to the address of its thread at the origin."""
        if pattern not in self._known_regions:
            self._known_regions[pattern] = region(self.noted.along[np.frombuffer(pattern, bool)], self.noted.n_bytes)
        return self._known_regions[pattern]

    @cached_property
    def _known_regions(self) -> dict[bytes, Region]:
        return {}

    def first_addresses(self, groups: int, items: int, aligned: int) -> tuple[tuple[int, ...], ...]:
        """Returns the addresses of the first threads of some blocks, in their first execution, from a multiple of
        `aligned`."""
        found = []
        executions = self.executions_at(1)
        if executions:
            mask, addresses = executions[0]
            of_block = self.lanes.block_of[mask.index]
            for block in distinct(of_block)[:groups].tolist():
                own = addresses[of_block == block][:items]
                found.append(tuple((own - own.min() // aligned * aligned).tolist()))
        return tuple(found)


def touched_by(accesses: Sequence[AccessAddresses], block: int) -> Region:
    """Returns the bytes that one emulated block touches by several accesses together."""
    parts = [part for each in accesses for part in each.regular_parts(block)]
    starts: dict[int, list[Array]] = {}
    series: dict[tuple[int, int], list[Region]] = {}
    for each in accesses:
        starts.setdefault(each.noted.n_bytes, []).append(each.scattered_starts(block))
        for one, step, count in each.series_of(block):
            series.setdefault((step, count), []).append(one)
    parts += [region(np.concatenate(found), n_bytes) for n_bytes, found in starts.items()]
    for (step, count), several in series.items():
        one = several[0] if len(several) == 1 else union(several)
        parts += [one, repeated(one, step, count + 1) or hull(one, step, count + 1)]
    return union(parts)


def _shifted(found: Region, by: Array) -> Region:
    """Returns the union of copies of a region, each shifted by so many bytes."""
    by = distinct(by)
    if len(by) * len(found.starts) > MOST_STARTS:
        by = by[:: -(-len(by) * len(found.starts) // MOST_STARTS)]
    starts, ends = ((by[:, None] + edges[None, :]).ravel() for edges in (found.starts, found.ends))
    return joined(starts, ends)
