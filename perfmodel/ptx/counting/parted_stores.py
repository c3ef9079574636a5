"""Finds stores to one record that loads part: each waits for what was loaded after the store before it.

Where a pointer that is stored to may point to what is loaded, a compiler cannot load ahead of the store. So the fields
of a record leave one by one, some hundred cycles apart. A first-level cache joins those that follow each other at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from perfmodel.ptx.code import Code
from perfmodel.ptx.counting.access_addresses import AccessAddresses
from perfmodel.ptx.counting.counted_access import CountedAccess
from perfmodel.ptx.dataflow import LOADS, STORES, registers_in
from perfmodel.ptx.syntax import Instruction

NEAR = 128
"""Fields of a record are at most so many bytes apart."""


def parted_stores(code: Code, accesses: Sequence[CountedAccess]) -> frozenset[Instruction]:
    """Returns the stores to global memory whose neighbours in a record are parted from them by a load."""
    stores: dict[tuple[int, str], list[CountedAccess]] = {}
    for each in accesses:
        if each.space == "global" and each.instruction.opcode in STORES:
            stores.setdefault((each.block, each.name), []).append(each)
    found: set[Instruction] = set()
    for (number, _), own in stores.items():
        if len(own) < 2:
            continue
        places = {each: place for place, each in enumerate(code.flow.blocks[number].instructions)}
        own.sort(key=lambda each: places[each.instruction])
        for one, other in pairwise(own):
            first, second = one.instruction, other.instruction
            behind = code.dataflow.behind(tuple(registers_in(second.operands[1])))
            waits = any(
                each.opcode in LOADS
                and not each.has("nc", "param", "shared", "const")
                and places.get(each, -1) > places[first]
                for each in behind
            )
            if waits and _are_of_one_record(one.addresses, other.addresses):
                found |= {first, second}
    return frozenset(found)


def _are_of_one_record(one: AccessAddresses, other: AccessAddresses) -> bool:
    """Returns whether two accesses go to different fields of what lies together, for all work-items."""
    executions = [each.executions_at(1) for each in (one, other)]
    if not all(executions):
        return False
    (mask, own), (others, theirs) = (each[0] for each in executions)
    if not np.array_equal(mask.index, others.index):
        return False
    away = theirs - own
    return bool(0 < abs(int(away[0])) < NEAR and np.ptp(away) == 0)
