"""Pairs the instructions of two versions of a function, as an alignment of sequences with the highest score.

S. B. Needleman and C. D. Wunsch, A general method applicable to the search for similarities in the amino acid sequence
of two proteins, J. Mol. Biol. 48 (1970), without a price for what has no pair, and near the diagonal alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Item: TypeAlias = tuple[Hashable, Hashable]
"""An item of a sequence is told by what it is by and large, and by what it is in full."""
RARE, SAME, LIKE = 6, 3, 1
"""The scores of a pair that is the same and rare, of one that is the same, and of one that does the same elsewhere."""
FEW = 4
"""An item is rare that is there no more often than this."""
BAND = 2048
"""A pair lies no farther from where it would be if all that is new were spread evenly."""
_LEFT, _UP, _PAIR = 0, 1, 2


def paired(one: Sequence[Item], other: Sequence[Item]) -> list[int | None]:
    """Returns the place in the other sequence of what each item of the one is paired with; None for nothing.

    Items are paired that are the same by and large; those that are the same in full, the rather. What is left of both
    sequences is aligned once more, as parts that have moved, by items that are the same in full.
    """
    found = aligned(one, other)
    taken = set(found)
    left = [place for place, pair in enumerate(found) if pair is None]
    free = [place for place in range(len(other)) if place not in taken]
    moved = aligned([(one[place][1],) * 2 for place in left], [(other[place][1],) * 2 for place in free])
    for place, pair in zip(left, moved, strict=True):
        found[place] = None if pair is None else free[pair]
    return found


def aligned(one: Sequence[Item], other: Sequence[Item]) -> list[int | None]:
    """Returns the pairs of the alignment that has the highest score; arguments and result as of `paired`,
    but for parts that have moved."""
    if not one or not other:
        return [None] * len(one)
    rough, exact = (_numbered(one, other, each) for each in (0, 1))
    often = Counter(each for _, each in one)
    values = np.array([RARE if often[each] <= FEW else SAME for _, each in one], dtype=np.int32)
    n, m = len(one), len(other)
    band = BAND + abs(n - m)
    starts = [max(0, row * m // n - band) for row in range(n)]
    ends = [min(m, row * m // n + band) for row in range(n)]
    ways: list[NDArray[np.int8]] = []
    best = np.zeros(m + 1, dtype=np.int32)  # of the items so far with so many of the other sequence
    for row in range(n):
        low, high = starts[row], ends[row]
        score = np.where(rough[1][low:high] == rough[0][row], LIKE, 0)
        score = np.where(exact[1][low:high] == exact[0][row], values[row], score)
        both, above = best[low:high] + score, best[low + 1 : high + 1]
        found = np.maximum(both, above)
        way = np.where((both >= above) & (score > 0), _PAIR, _UP).astype(np.int8)
        through = np.maximum.accumulate(np.concatenate((best[low : low + 1], found)))[1:]
        ways.append(np.where(through > found, _LEFT, way).astype(np.int8))
        best[low + 1 : high + 1] = through
        best[high + 1 :] = np.maximum(best[high + 1 :], through[-1] if high > low else 0)
    return _followed(ways, starts, n, m)


def _numbered(one: Sequence[Item], other: Sequence[Item], part: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Returns a number for each item of both sequences, the same for those whose part is equal."""
    numbers: dict[Hashable, int] = {}
    first, second = (
        np.array([numbers.setdefault(each[part], len(numbers)) for each in items], dtype=np.int32)
        for items in (one, other)
    )
    return first, second


def _followed(ways: Sequence[NDArray[np.int8]], starts: Sequence[int], n: int, m: int) -> list[int | None]:
    """Returns the pairs of the best alignment, from its end back to its beginning."""
    found: list[int | None] = [None] * n
    row, column = n - 1, m - 1
    while row >= 0 and column >= 0:
        place = column - starts[row]
        if place < 0:
            row -= 1
        elif place >= len(ways[row]) or ways[row][place] == _LEFT:
            column -= 1
        elif ways[row][place] == _UP:
            row -= 1
        else:
            found[row] = column
            row, column = row - 1, column - 1
    return found
