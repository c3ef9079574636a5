"""Finds stores to where the same work-items have just loaded from, and loads from where they have stored before.

A sector that is stored to in part, and was not loaded before, may have to leave the second-level cache before it is
full: its rest is then read from memory as it is written. One that was loaded before is whole. What was stored before
is in that cache as well, or comes from memory once more, as what is loaded again.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from perfmodel.counting.atomics import SECTOR
from perfmodel.ptx.code import Code
from perfmodel.ptx.counting.counted_access import CountedAccess
from perfmodel.ptx.dataflow import LOADS, STORES

MOST = 16
"""So many executions of a store are looked at."""


def stores_in_place(code: Code, accesses: Sequence[CountedAccess]) -> frozenset[CountedAccess]:
    """Returns the stores to global memory that go to sectors which a load of the same iteration went to."""
    loads: dict[Hashable, list[int]] = {}
    stores: list[tuple[CountedAccess, Hashable, int]] = []
    for each in accesses:
        if each.space != "global":
            continue
        for mask, addresses in each.addresses.executions_at(1):
            loop = next(iter(code.flow.around(each.block)[-1:]), None)
            first = int(addresses[0])
            alike = each.name, loop, mask.index.tobytes(), (addresses - first).tobytes()
            if each.instruction.opcode in LOADS:
                loads.setdefault(alike, []).append(first)
            elif each.instruction.opcode in STORES:
                stores.append((each, alike, first))
    return frozenset(
        store for store, alike, first in stores if any(abs(first - load) < SECTOR for load in loads.get(alike, ()))
    )


def loads_of_stored(accesses: Sequence[CountedAccess]) -> frozenset[CountedAccess]:
    """Returns the loads from global memory that go to where a store before them in the text has gone, each work-item
    to its own places."""
    stored: dict[Hashable, int] = {}
    loads: list[tuple[CountedAccess, Hashable]] = []
    for each in accesses:
        if each.space != "global" or each.addresses.is_of_image:
            continue
        is_load = each.instruction.opcode in LOADS
        if not is_load and each.instruction.opcode not in STORES:
            continue
        for mask, addresses in each.addresses.executions_at(1 if is_load else MOST):
            key = each.name, mask.index.tobytes(), addresses.tobytes()
            if is_load:
                loads.append((each, key))
            else:
                stored[key] = min(each.instruction.line, stored.get(key, each.instruction.line))
    return frozenset(load for load, key in loads if key in stored and stored[key] < load.instruction.line)
