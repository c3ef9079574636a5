"""Says along which axis of a work-group a driver made vectors of work-items, by what a kernel's code does first.

Intel's compiler takes the axis along which most accesses lie side by side. The kernel's code gets two pointers: to its
arguments, behind which the sizes of a work-group stand, and to the numbers of the work-group along each axis. It
multiplies each number by the size along that axis, and rounds the size down to whole vectors where these are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeAlias

from perfmodel.x86.instructions import Instruction

ARGUMENTS, GROUPS = "rdi", "rsi"
"""The registers that hold the two pointers at first."""
BYTES = 8
_ADDRESS = re.compile(r"\[(?P<base>\w+)(?: \+ (?P<offset>\w+))?\]")

Known: TypeAlias = tuple[str, int]
"""A number that was loaded: from behind which pointer, and how many bytes behind it; -1 for the pointer itself."""


def vector_axis(code: Iterable[Instruction], lanes: int) -> int:
    """Returns the axis of a kernel's vectors; 0 where its code does not tell.

    Args:
        lanes: work-items of a vector.
    """
    held: dict[str, Known] = {ARGUMENTS: (ARGUMENTS, -1), GROUPS: (GROUPS, -1)}
    axes: dict[Known, int] = {}
    rounded: list[Known] = []
    for each in code:
        taken = [value for name in each.reads if (value := held.get(name)) and name not in each.addressed]
        if each.loads and (loaded := _loaded(each.loads, held)):
            taken.append(loaded)
        if each.name == "imul":
            axes |= {
                size: at // BYTES for size in taken for base, at in taken if (size[0], base) == (ARGUMENTS, GROUPS)
            }
        if each.name == "and" and each.constant in (-lanes, 2**64 - lanes):
            rounded += taken
        is_copy = each.name == "mov" and len(taken) == 1
        for place in (each.stores, *each.writes):
            if place and is_copy:
                held[place] = taken[0]
            else:
                held.pop(place, None)
    return next((axes[size] for size in rounded if size in axes), 0)


def _loaded(address: str, held: dict[str, Known]) -> Known | None:
    """Returns the number at an address, if something is known of it."""
    found = _ADDRESS.fullmatch(address)
    base = held.get(found["base"]) if found else None
    if found and base and base[1] < 0:
        return base[0], int(found["offset"] or "0", 0)
    return held.get(address)
