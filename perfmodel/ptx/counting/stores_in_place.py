"""Finds stores to where the same work-items have just loaded from: the rest of their sectors is in the caches already.

A sector that is stored to in part, and was not loaded before, may have to leave the second-level cache before it is
full: its rest is then read from memory as it is written. One that was loaded before is whole.
"""

from __future__ import annotations

from collections.abc import Sequence

from perfmodel.counting.atomics import SECTOR
from perfmodel.ptx.code import Code
from perfmodel.ptx.counting.access_addresses import AccessAddresses
from perfmodel.ptx.counting.counted_access import CountedAccess
from perfmodel.ptx.counting.records import distance
from perfmodel.ptx.dataflow import LOADS, STORES


def stores_in_place(code: Code, accesses: Sequence[CountedAccess]) -> frozenset[CountedAccess]:
    """Returns the stores to global memory that go to sectors which a load of the same iteration went to."""
    loads: dict[tuple[str, object], list[AccessAddresses]] = {}
    stores: list[tuple[tuple[str, object], CountedAccess]] = []
    for each in accesses:
        if each.space == "global":
            place = each.name, next(iter(code.flow.around(each.block)[-1:]), None)
            if each.instruction.opcode in LOADS:
                loads.setdefault(place, []).append(each.addresses)
            elif each.instruction.opcode in STORES:
                stores.append((place, each))
    return frozenset(
        store for place, store in stores if any(_are_beside(each, store.addresses) for each in loads.get(place, ()))
    )


def _are_beside(one: AccessAddresses, other: AccessAddresses) -> bool:
    """Returns whether two accesses go to one sector, about, for all work-items."""
    runs = [run for each in (one, other) for run in each.executions_at(1)]
    away = distance(*runs) if len(runs) == 2 else None
    return away is not None and abs(away) < SECTOR
