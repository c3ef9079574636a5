"""Finds out something of many kernels, program by program, in several processes where there are many programs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TypeVar

from perfmodel.basics.progress import showing
from perfmodel.basics.side_by_side import side_by_side
from perfmodel.kernels.kernel import Kernel

Found = TypeVar("Found")

FEWEST_APART = 32
"""Kernels of fewer programs than these are done in this process, which then knows their counts."""
_SAID: dict[str | tuple[str, type[Warning], int], int] = {}
"""Warnings that were given here, so that one of many kernels alike is not repeated for each."""


def of_programs(
    function: Callable[[Kernel], Found], kernels: Sequence[Kernel], doing: str, progress: bool | None = False
) -> list[Found]:
    """Returns what a function gives for each kernel, in their order; it warns here of what it warned of there.

    Kernels of one program are done in one process, one after the other, as they share its counts.

    Args:
        function: gives what can be pickled, and uses no device.
        doing: what is shown of it.
        progress: as for `perfmodel.measure`.
    """
    places: dict[int, list[int]] = {}
    for place, kernel in enumerate(kernels):
        places.setdefault(id(kernel.program), []).append(place)
    if len(places) < FEWEST_APART:
        return [function(kernel) for kernel in kernels]

    def done(of_program: list[int]) -> tuple[list[Found], list[tuple[str, type[Warning], str, int]]]:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = [function(kernels[place]) for place in of_program]
        return found, [(str(each.message), each.category, each.filename, each.lineno) for each in said]

    with showing(doing, progress) as told:
        results = side_by_side(done, list(places.values()), told=told)
    by_place: dict[int, Found] = {}
    for of_program, (found, said) in zip(places.values(), results, strict=True):
        by_place.update(zip(of_program, found, strict=True))
        for warning in said:
            warnings.warn_explicit(*warning, registry=_SAID)
    return [by_place[place] for place in range(len(kernels))]
