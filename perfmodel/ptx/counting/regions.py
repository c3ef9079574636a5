"""Sets of bytes as disjoint intervals: what accesses touch, and how many aligned blocks that is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.distinct import DENSE, distinct
from perfmodel.counting.counts import LINE_BYTES

MOST_INTERVALS = 1 << 20


@dataclass(frozen=True, eq=False)
class Region:
    """A set of bytes: intervals in order, each from a start up to, but without, its end."""

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]

    @property
    def bytes(self) -> int:
        return int((self.ends - self.starts).sum())

    @property
    def span(self) -> int:
        return int(self.ends[-1] - self.starts[0]) if len(self.starts) else 0

    def is_around(self, other: Region) -> bool:
        """Returns whether another region lies between this one's ends."""
        return bool(self.starts[0] <= other.starts[0] and other.ends[-1] <= self.ends[-1])

    def blocks(self, size: int) -> int:
        """Returns how many aligned blocks of so many bytes have a byte of it."""
        if not len(self.starts):
            return 0
        first, last = self.starts // size, (self.ends - 1) // size
        shared = int(np.count_nonzero(first[1:] == last[:-1]))
        return int((last - first + 1).sum()) - shared


def shape_of(found: Region) -> bytes:
    """Returns what regions have in common of which one is the other moved."""
    return (np.stack((found.starts, found.ends)) - found.starts[:1]).tobytes()


def region(starts: NDArray[np.int64], n_bytes: int) -> Region:
    """Returns what accesses of so many bytes at these places touch."""
    ordered = distinct(starts)
    return _of_ordered(ordered, ordered + n_bytes) if len(ordered) else NOTHING


def union(regions: Iterable[Region]) -> Region:
    known = [each for each in regions if len(each.starts)]
    whole = max((each for each in known if len(each.starts) == 1), key=lambda each: each.bytes, default=None)
    if whole is not None:
        known = [whole, *(each for each in known if not whole.is_around(each))]
    if len(known) == 1:
        return known[0]
    starts, ends = ([each.starts for each in known], [each.ends for each in known])
    return joined(np.concatenate(starts), np.concatenate(ends)) if known else NOTHING


def joined(starts: NDArray[np.int64], ends: NDArray[np.int64]) -> Region:
    """Returns what some intervals hold together.

    With starts and ends each in their own order, no byte lies between the k-th end and the start behind it where that
    is larger, as k intervals begin up to there, and as many have ended. Where there are about as many as bytes, it is
    sooner to see of each byte how many have begun and not ended.
    """
    first = int(starts.min())
    span = int(ends.max()) - first
    if span > DENSE * len(starts):
        return _of_ordered(np.sort(starts), np.sort(ends))
    begun, ended = (np.bincount(edges - first, minlength=span + 1) for edges in (starts, ends))
    is_inside = np.cumsum(begun - ended) > 0
    edges = first + np.flatnonzero(np.diff(is_inside, prepend=False))
    return Region(edges[::2], edges[1::2])


def _of_ordered(starts: NDArray[np.int64], ends: NDArray[np.int64]) -> Region:
    is_first = np.ones(len(starts) + 1, bool)
    np.greater(starts[1:], ends[:-1], out=is_first[1:-1])
    return Region(starts[is_first[:-1]], ends[is_first[1:]])


NOTHING = Region(np.zeros(0, np.int64), np.zeros(0, np.int64))


def repeated(found: Region, step: int, count: int) -> Region | None:
    """Returns the union of a region and its copies, each a step further; None if that has too many intervals."""
    if count <= 1 or step == 0:
        return found
    if len(found.starts) == 1:
        return _row(int(found.starts[0]), int(found.ends[0]), step, count)
    done, whole = 1, found
    while done < count:
        more = min(done, count - done)
        if 2 * len(whole.starts) > MOST_INTERVALS:
            return None
        whole = union((whole, Region(whole.starts + more * step, whole.ends + more * step)))
        done += more
    return whole


def _row(start: int, end: int, step: int, count: int) -> Region | None:
    """Returns the union of an interval and its copies likewise."""
    last = (count - 1) * step
    if abs(step) <= end - start:
        return Region(np.array([start + min(last, 0)]), np.array([end + max(last, 0)]))
    if count > MOST_INTERVALS:
        return None
    away = min(last, 0) + abs(step) * np.arange(count)
    return Region(start + away, end + away)


def hull(found: Region, step: int, count: int) -> Region:
    """Returns about what a region and its copies are, where they are too many: all between them, or as many as can be
    held."""
    if 2 * found.bytes >= abs(step):
        last = (count - 1) * step
        least, most = int(found.starts[0]) + min(last, 0), int(found.ends[-1]) + max(last, 0)
        return Region(np.array([least]), np.array([most]))
    return repeated(found, step, max(MOST_INTERVALS // (2 * len(found.starts)), 1)) or found


@dataclass(frozen=True)
class Extent:
    """An extent is how much a launch touches: bytes, aligned blocks of 64 bytes, lines of caches, of 128, and pairs of
    lines."""

    bytes: float
    blocks: float
    lines: float
    pairs: float


BLOCK, PAIR = 64, 2 * LINE_BYTES


def over_grid(found: Region, steps: Sequence[int], counts: Sequence[int]) -> Extent:
    """Returns what the blocks of a grid touch together, of which one touches a region, and its neighbour along each
    axis the same a step further."""
    whole, times = _over_grid(found, steps, counts)
    numbers = (whole.bytes, *(whole.blocks(size) for size in (BLOCK, LINE_BYTES, PAIR)))
    return Extent(*(float(found) * times for found in numbers))


def bytes_over_grid(found: Region, steps: Sequence[int], counts: Sequence[int]) -> float:
    """Returns how many bytes they touch together."""
    whole, times = _over_grid(found, steps, counts)
    return float(whole.bytes) * times


def _over_grid(found: Region, steps: Sequence[int], counts: Sequence[int]) -> tuple[Region, int]:
    """Returns what blocks touch together as a region, and how many others, apart from it, are alike, with itself."""
    axes = sorted((abs(step), step, count) for step, count in zip(steps, counts, strict=True) if step and count > 1)
    whole: Region = found
    times = 1
    for size, step, count in axes:
        if times == 1 and size < whole.span:
            more = repeated(whole, step, count)
            if more is not None:
                whole = more
                continue
        times *= count
    return whole, times
