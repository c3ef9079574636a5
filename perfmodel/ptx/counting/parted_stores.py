"""Finds stores to one record that loads part: each waits for what was loaded after the store before it.

Where a pointer that is stored to may point to what is loaded, a compiler cannot load ahead of the store. So the fields
of a record leave one by one, some hundred cycles apart. A first-level cache joins those that follow each other at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from perfmodel.ptx.code import Code
from perfmodel.ptx.counting.access_addresses import AccessAddresses
from perfmodel.ptx.counting.counted_access import CountedAccess
from perfmodel.ptx.counting.records import distance
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
            if not _are_of_one_record(one.addresses, other.addresses):
                continue
            first, second = one.instruction, other.instruction
            behind = code.dataflow.behind(tuple(registers_in(second.operands[1])))
            if any(_stays(each) and places.get(each, -1) > places[first] for each in behind):
                found |= {first, second}
    return frozenset(found)


def _stays(instruction: Instruction) -> bool:
    """Returns whether an instruction loads what a store may have changed, so that it cannot go before one."""
    return instruction.opcode in LOADS and not instruction.has("nc", "param", "shared", "const")


def _are_of_one_record(one: AccessAddresses, other: AccessAddresses) -> bool:
    """Returns whether two accesses go to different fields of what lies together, for all work-items."""
    runs = [run for each in (one, other) for run in each.executions_at(1)]
    away = distance(*runs) if len(runs) == 2 else None
    return away is not None and 0 < abs(away) < NEAR
