"""Counts what an emulated launch touches of each array."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from perfmodel.counting.counts import LINE_BYTES, PAGE_BYTES, Blocks, Footprint
from perfmodel.ptx.counting.access_addresses import touched_by
from perfmodel.ptx.counting.accesses import AccessCounter
from perfmodel.ptx.counting.blocks_alike import bytes_of_blocks, fullest
from perfmodel.ptx.counting.counted_access import CountedAccess
from perfmodel.ptx.counting.executions import constant
from perfmodel.ptx.counting.regions import BLOCK, PAIR, over_grid

TOUCHED = (1, 32, 64, LINE_BYTES, 2 * LINE_BYTES, PAGE_BYTES)
"""Blocks of so many bytes are counted where strides don't say what is touched."""


MOST_ELSEWHERE = 0.2
"""It is not known what is touched where more of the executions stood for others, which went elsewhere."""


class FootprintCounter:
    """Computes what the accesses of a launch touch, by array and direction."""

    def __init__(self, accesses: AccessCounter) -> None:
        self.accesses, self.launch, self.emulation = accesses, accesses.launch, accesses.emulation

    def counts(self) -> Iterator[Footprint]:
        by_array: dict[str, list[CountedAccess]] = {}
        for access in self.accesses.found:
            if access.space == "global" and access.name in self.launch.arrays:
                by_array.setdefault(access.name, []).append(access)
        for name, accesses in by_array.items():
            found: dict[int, Footprint] = {}  # by the number of accesses, as of one direction those of any are the same
            for direction in ("load", "store", "atomic", "any"):
                own = [each for each in accesses if direction in ("any", each.direction)]
                if own:
                    is_known = direction == "any" and len(own) in found
                    one = found[len(own)] if is_known else self._footprint(name, direction, own)
                    found[len(own)] = replace(one, direction=direction)
                    yield found[len(own)]

    def _footprint(self, name: str, direction: str, accesses: list[CountedAccess]) -> Footprint:
        dtype, size = self.launch.arrays[name]
        item = np.dtype(dtype).itemsize
        steps = {each.addresses.group_strides for each in accesses}
        known = all(self.launch.is_known(each.instruction) for each in accesses)
        is_regular = None not in steps and all(
            each.addresses.noted.is_regular and (known or not each.addresses.is_laid_out) for each in accesses
        )
        found = Footprint(
            space="global",
            variable=name,
            dtype=dtype,
            direction=direction,
            elements=None,
            filled=None,
            by_group=None,
            size=constant(size),
        )
        noted = [each.addresses.noted for each in accesses]
        if sum(each.beyond for each in noted if each.is_thinned) > MOST_ELSEWHERE * sum(e.executions for e in noted):
            return found
        if not is_regular:
            if not known or all(self.accesses.reaches.jumps(each) for each in accesses):
                return found
            return replace(found, touched=self._touched(accesses))
        busiest = fullest(self.launch, accesses)
        n_bytes = blocks = lines = pairs = 0.0
        for step in steps:
            own = [each for each in accesses if each.addresses.group_strides == step]
            one = touched_by([each.addresses for each in own], busiest)
            extent = over_grid(one, step or (0, 0, 0), self.emulation.lanes.grid)
            # Blocks may touch less than the fullest, as in triangles: all together not more than each for itself.
            times = bytes_of_blocks(self.launch, own) / max(one.bytes, 1)
            n_bytes += min(extent.bytes, one.bytes * times)
            blocks += min(extent.blocks, one.blocks(BLOCK) * times)
            lines += min(extent.lines, one.blocks(LINE_BYTES) * times)
            pairs += min(extent.pairs, one.blocks(PAIR) * times)
        elements = min(n_bytes / item, size)
        touched = (blocks * BLOCK, lines * LINE_BYTES, pairs * PAIR)
        filled, lined, paired = (max(min(each / item, size), elements) for each in touched)
        return replace(
            found,
            elements=constant(elements),
            filled=constant(filled),
            lined=constant(lined),
            paired=constant(paired),
            by_group=constant(bytes_of_blocks(self.launch, accesses) / item),
        )

    def _touched(self, accesses: list[CountedAccess]) -> Blocks:
        total = dict.fromkeys(TOUCHED, 0.0)
        _, size = self._extent(accesses)
        early = [each.addresses.first_half() for each in accesses] if any(map(_is_thinned, accesses)) else []
        for block, weight in enumerate(self.launch.weights):
            own = touched_by([each.addresses for each in accesses], block)
            more = self._standing_for(accesses, block) if early else 1.0
            half = touched_by(early, block) if more > 1 + MOST_ELSEWHERE else None
            for width in TOUCHED:
                number = own.blocks(width)
                if half is not None and number:
                    number = min(number * more ** _growth(half.blocks(width), number), max(size // width, number))
                total[width] += float(weight) * number
        return tuple((width, number / float(self.launch.weights.sum())) for width, number in total.items())

    def _extent(self, accesses: list[CountedAccess]) -> tuple[str, int]:
        """Returns the type of the array that accesses go to, and its bytes."""
        dtype, size = self.launch.arrays[accesses[0].name]
        return dtype, size * np.dtype(dtype).itemsize

    def _standing_for(self, accesses: list[CountedAccess], block: int) -> float:
        """Returns how many executions there are in a block for each of those whose addresses are known."""
        made = sum(float(self.emulation.tally(a.instruction, a.block).by_block()[0][block]) for a in accesses)
        return made / max(sum(each.addresses.known_in(block) for each in accesses), 1)


def _is_thinned(access: CountedAccess) -> bool:
    return access.addresses.noted.is_thinned


def _growth(half: float, whole: float) -> float:
    """Returns the power of executions with which what they touch grows: 1 where they always go on to other places, 0
    where they come again to the same."""
    return min(max(math.log2(whole / half), 0.0), 1.0) if half else 1.0
