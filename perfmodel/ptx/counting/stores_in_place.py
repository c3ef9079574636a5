"""Finds stores to where the same work-items have just loaded from: the rest of their sectors is in the caches already.

A sector that is stored to in part, and was not loaded before, may have to leave the second-level cache before it is
full: its rest is then read from memory as it is written. One that was loaded before is whole.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from perfmodel.counting.atomics import SECTOR
from perfmodel.ptx.code import Code
from perfmodel.ptx.counting.counted_access import CountedAccess
from perfmodel.ptx.dataflow import LOADS, STORES


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
