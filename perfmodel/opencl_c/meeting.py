"""Atomics at one place for all work-items of a group: a compiler adds up first what a sub-group has for it."""

from __future__ import annotations

from perfmodel.counting.atomics import ADDED_UP_TYPES
from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import walks
from perfmodel.opencl_c.origins import Origins
from perfmodel.opencl_c.visitor import walk

OF_ITEMS = frozenset(("get_global_id", "get_global_linear_id", "get_local_id", "get_local_linear_id"))
OF_SUBGROUPS = frozenset(("get_sub_group_id", "get_sub_group_local_id"))
ADDED_UP = frozenset(("add", "sub", "inc", "dec", "min", "max", "and", "or", "xor"))
"""One work-item can do these for all of a sub-group."""


def added_up_first(kernel: low.LoweredKernel) -> frozenset[int]:
    """Returns the numbers of atomics' accesses that are one for a sub-group, as no work-item has an address of its own.

    An address is its own if it follows from its ids, or from what atomics and other work-items gave it.
    """
    atomics = [each for each in walks.simple_statements(kernel.body) if isinstance(each, low.Atomic)]
    if not atomics:
        return frozenset()
    origins = Origins(kernel.body)
    return frozenset(
        atomic.access.number
        for atomic in atomics
        if atomic.operation in ADDED_UP
        and atomic.access.dtype in ADDED_UP_TYPES
        and not _differs(origins, atomic.pointer)
    )


def _differs(origins: Origins, pointer: low.Expression) -> bool:
    for each in origins.behind([pointer], through_memory=True):
        for part in walk(each):
            if isinstance(part, low.Atomic | low.Collective):
                return True
            if isinstance(part, low.WorkItem) and part.function in OF_ITEMS | OF_SUBGROUPS:
                return True
    return False
