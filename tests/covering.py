"""Chooses, of many kernels, few in which all pairs of choices still come together."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

from perfmodel.kernels.kernel import Kernel


def pairwise(kernels: Iterable[Kernel]) -> list[Kernel]:
    """Returns kernels in which every two values of two tags meet that meet in any of those given, in their order.

    A mistake that takes one or two choices to show is still met; `make table` verifies every combination.
    """
    given = list(kernels)
    pairs = [set(combinations(sorted(kernel.tags.items()), 2)) for kernel in given]
    missing = set().union(*pairs)
    chosen: set[int] = set()
    while missing:
        best = max(range(len(given)), key=lambda number: len(pairs[number] & missing))
        chosen.add(best)
        missing -= pairs[best]
    return [given[number] for number in sorted(chosen)]
