"""Atomics do different things to their places, which a compiler may see to be one for all work-items of a group; some
are made again until no other work-item comes between."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from perfmodel.counting.atomics import Update
from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import walks
from perfmodel.opencl_c.origins import Origins
from perfmodel.opencl_c.visitor import walk

OF_ITEMS = frozenset(("get_global_id", "get_global_linear_id", "get_local_id", "get_local_linear_id"))
OF_SUBGROUPS = frozenset(("get_sub_group_id", "get_sub_group_local_id"))
OPERATIONS = {"inc": "add", "dec": "add", "sub": "add", "xchg": "exchange", "cmpxchg": "compare"}
"""The words of `perfmodel.counting.atomics` for those of OpenCL, where they differ."""


def updates(kernel: low.LoweredKernel) -> dict[int, Update]:
    """Returns what atomics do, by the numbers of their accesses.

    A work-item has a place of its own if its address follows from its ids, or from what atomics and other work-items
    gave it.
    """
    atomics = [each for each in walks.simple_statements(kernel.body) if isinstance(each, low.Atomic)]
    if not atomics:
        return {}
    origins = Origins(kernel.body)
    read = {part.register for each in kernel.body for part in walk(each) if isinstance(part, low.Read)}
    return {
        atomic.access.number: Update(
            operation=OPERATIONS.get(atomic.operation, atomic.operation),
            dtype=atomic.access.dtype,
            is_of_all=not _differs(origins, atomic.pointer),
            is_read=atomic.result in read,
        )
        for atomic in atomics
    }


def retried(kernel: low.LoweredKernel) -> Mapping[int, bool]:
    """Returns the numbers of comparisons and exchanges in global memory that are made until they succeed, as what they
    find ends the loop around, and whether they compare with what was loaded before: another work-item that comes
    between has such an update made again, and no work-item go elsewhere."""
    found: dict[int, bool] = {}
    if not any(_comparisons(kernel.body)):
        return found
    whole = Origins(kernel.body)
    for loop in walks.loops(kernel.body):
        body = (*loop.test, *loop.body, *loop.step)
        within = {each.access.number for inner in walks.loops(body) for each in _comparisons((inner,))}
        own = [each for each in _comparisons(body) if each.access.number not in within]
        if not own:
            continue
        leaving = (each for each in walks.branches(body) if isinstance(each, low.If) and walks.labels_left((each,)))
        behind = list(Origins((loop,)).behind([loop.condition, *(each.condition for each in leaving)]))
        for atomic in own:
            if any(each is atomic for each in behind):
                compared = whole.behind(atomic.operands[:1], through_memory=True)
                found[atomic.access.number] = any(
                    each is atomic or (isinstance(each, low.Load) and each.access.space not in ("private", "constant"))
                    for each in compared
                )
    return found


def _comparisons(body: Sequence[low.Statement]) -> Iterator[low.Atomic]:
    """Iterates over the comparisons and exchanges in memory that work-groups share."""
    for each in walks.simple_statements(body):
        if isinstance(each, low.Atomic) and each.operation == "cmpxchg" and each.access.space != "local":
            yield each


def _differs(origins: Origins, pointer: low.Expression) -> bool:
    for each in origins.behind([pointer], through_memory=True):
        for part in walk(each):
            if isinstance(part, low.Atomic | low.Collective):
                return True
            if isinstance(part, low.WorkItem) and part.function in OF_ITEMS | OF_SUBGROUPS:
                return True
    return False
