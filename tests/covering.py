"""Chooses, of many kernels, few in which choices still come together."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

from perfmodel.kernels.kernel import Kernel


def pairwise(kernels: Iterable[Kernel]) -> list[Kernel]:
    """Returns kernels in which every two values of two tags meet that meet in any of those given, in their order.

    A mistake that takes one or two choices to show is still met; `make table` verifies every combination.
    """
    return _covering(kernels, together=2)


def each_value(kernels: Iterable[Kernel]) -> list[Kernel]:
    """Returns kernels that have, together, every value of every tag that any of those given has, in their order."""
    return _covering(kernels, together=1)


def _covering(kernels: Iterable[Kernel], together: int) -> list[Kernel]:
    given = list(kernels)
    choices = [set(combinations(sorted(kernel.tags.items()), together)) for kernel in given]
    missing = set().union(*choices)
    chosen: set[int] = set()
    while missing:
        best = max(range(len(given)), key=lambda number: len(choices[number] & missing))
        chosen.add(best)
        missing -= choices[best]
    return [given[number] for number in sorted(chosen)]
