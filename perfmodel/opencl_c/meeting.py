"""Atomics do different things to their places, which a compiler may see to be one for all work-items of a group; some
are made again until no other work-item comes between."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

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
    gave it, be it by the conditions under which the address got its value.
    """
    atomics = [each for each in walks.simple_statements(kernel.body) if isinstance(each, low.Atomic)]
    if not atomics:
        return {}
    origins, conditions = Origins(kernel.body), _conditions(kernel.body)
    read = {part.register for each in kernel.body for part in walk(each) if isinstance(part, low.Read)}
    return {
        atomic.access.number: Update(
            operation=OPERATIONS.get(atomic.operation, atomic.operation),
            dtype=atomic.access.dtype,
            is_of_all=not _differs(origins, conditions, atomic),
            is_read=atomic.result in read,
        )
        for atomic in atomics
    }


def retried(kernel: low.LoweredKernel) -> Mapping[int, bool]:
    """Returns the numbers of comparisons and exchanges in global memory that are made until they succeed, at the same
    place, as what they find ends the loop around; and whether they compare with what was loaded before, so that another
    work-item that comes between has them made again."""
    whole = Origins(kernel.body)
    return {
        atomic.access.number: any(
            each is atomic or (isinstance(each, low.Load) and each.access.space not in ("private", "constant"))
            for each in whole.behind(atomic.operands[:1], through_memory=True)
        )
        for atomic, _ in _ending(kernel, "cmpxchg")
    }


def given_back(kernel: low.LoweredKernel) -> set[int]:
    """Returns the numbers of exchanges in global memory that give back a sum to a place that another one has left at
    zero, until they find nothing there: what others left in the meantime is added likewise."""
    return {
        atomic.access.number
        for atomic, inside in _ending(kernel, "xchg")
        if any(isinstance(each, low.Atomic) and _empties(each) for each in inside.behind(atomic.operands[:1]))
    }


def _ending(kernel: low.LoweredKernel, operation: str) -> Iterator[tuple[low.Atomic, Origins]]:
    """Iterates over the atomics of one kind, in memory that work-groups share, that end the loop around by what they
    find at one place, with what values follow from in that loop."""
    if not any(_atomics(kernel.body, operation)):
        return
    for loop in walks.loops(kernel.body):
        body = (*loop.test, *loop.body, *loop.step)
        within = {each.access.number for inner in walks.loops(body) for each in _atomics((inner,), operation)}
        own = [each for each in _atomics(body, operation) if each.access.number not in within]
        if not own:
            continue
        leaving = (each for each in walks.branches(body) if isinstance(each, low.If) and walks.labels_left((each,)))
        inside, carried = Origins((loop,)), walks.carried_registers(body)
        behind = list(inside.behind([loop.condition, *(each.condition for each in leaving)]))
        for atomic in own:
            is_of_one_place = carried.isdisjoint(inside.registers_behind([atomic.pointer]))
            if is_of_one_place and any(each is atomic for each in behind):
                yield atomic, inside


def _atomics(body: Sequence[low.Statement], operation: str) -> Iterator[low.Atomic]:
    """Iterates over the atomics of one kind in memory that work-groups share."""
    for each in walks.simple_statements(body):
        if isinstance(each, low.Atomic) and each.operation == operation and each.access.space != "local":
            yield each


def _empties(atomic: low.Atomic) -> bool:
    """Returns whether an exchange leaves zero where it was."""
    given = atomic.operands[0] if atomic.operands else None
    return atomic.operation == "xchg" and isinstance(given, low.Constant) and given.value == 0


_Side = tuple[int, bool]
"""A branch by its number, and which way of it."""


def _conditions(
    body: Iterable[low.Statement], around: Mapping[_Side, low.Register] = MappingProxyType({})
) -> dict[int, Mapping[_Side, low.Register]]:
    """Returns the conditions around each statement, by the statement's identity."""
    found: dict[int, Mapping[_Side, low.Register]] = {}
    for statement in body:
        match statement:
            case low.Straight():
                found.update((id(each), around) for each in statement.statements)
            case low.If():
                for side, inner in ((True, statement.then), (False, statement.otherwise)):
                    found.update(_conditions(inner, {**around, (statement.number, side): statement.condition}))
            case low.Loop():
                inside = {**around, (statement.number, True): statement.condition}
                found.update(_conditions(walks.in_turn(statement), inside))
            case low.Scope():
                found.update(_conditions(statement.body, around))
    return found


def _differs(origins: Origins, conditions: Mapping[int, Mapping[_Side, low.Register]], atomic: low.Atomic) -> bool:
    """Returns whether work-items that come to an atomic may have different places there.

    Where registers and memory got a value under conditions that do not hold around the atomic as well, who had another
    value went another way.
    """
    own = conditions[id(atomic)].keys()
    waiting: set[low.Expression | low.Register] = {atomic.pointer}
    seen: set[low.Expression | low.Register] = set()
    while waiting:
        seen |= waiting
        found: set[low.Expression | low.Register] = set()
        for part in origins.behind(waiting, through_memory=True):
            if isinstance(part, low.Atomic | low.Collective):
                return True
            if isinstance(part, low.WorkItem) and part.function in OF_ITEMS | OF_SUBGROUPS:
                return True
            around = conditions.get(id(part), {})
            found.update(condition for side, condition in around.items() if side not in own)
        waiting = found - seen
    return False
