"""Numbers in memory that a loop goes on updating are kept in registers while it runs, as compilers have it.

Scalar promotion, a part of loop-invariant code motion: ``sums[lid] += x[k]`` loads before the loop and stores behind
it. The place must be the same in all iterations, every iteration must store there, and nothing else in the loop may be
at that place: no other access to the array, and none of which nobody knows where it goes. Arrays in local memory that
a kernel declares, and arguments that are ``restrict``, are told apart from all others.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import fields, replace
from typing import Any

from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import origins, walks
from perfmodel.opencl_c.visitor import child_fields, children, rebuilt

KEPT = "_kept"
"""Registers begin so that hold a number of memory while a loop runs."""
_DEEPEST = 12
"""Registers that an address follows from within an iteration are gone through up to here."""


def apart_from_others(kernel: low.LoweredKernel) -> frozenset[str]:
    """Returns the arrays and objects whose places are reached by their own name alone."""
    declared = {each.name for each in kernel.objects if each.space == "local" and each.parameter is None}
    return frozenset(declared | {each.name for each in kernel.parameters if each.is_restrict})


def may_meet(one: low.Access, other: low.Access, apart: Collection[str]) -> bool:
    """Returns whether two accesses may be at the same place, as far as the arrays tell that they are in."""
    if one.space != other.space:
        return False
    are_known = one.variable is not None and other.variable is not None
    return not are_known or one.variable == other.variable or not {one.variable, other.variable} & set(apart)


def promoted(kernel: low.LoweredKernel) -> low.LoweredKernel:
    """Returns the kernel with what its loops go on updating in registers."""
    return _Promotion(kernel).kernel()


class _Promotion:
    def __init__(self, kernel: low.LoweredKernel) -> None:
        self.source = kernel
        self.apart = apart_from_others(kernel)
        self.given = origins.setting(kernel.body)
        self.registers: list[low.Register] = []
        self.blocks = kernel.blocks

    def kernel(self) -> low.LoweredKernel:
        body = tuple(each for statement in self.source.body for each in self.changed(statement))
        if not self.registers:
            return self.source
        return replace(self.source, body=body, registers=(*self.source.registers, *self.registers), blocks=self.blocks)

    def changed(self, statement: Any) -> list[Any]:
        """Returns what takes the place of a statement; inner loops are gone through before those around them."""
        if isinstance(statement, low.Straight):
            return [statement]
        inner = rebuilt(statement, lambda child: self.changed(child) if _has_statements(child) else child)
        if not isinstance(inner, low.Loop):
            return [inner]
        before: list[low.Simple] = []
        behind: list[low.Simple] = []
        for array in sorted(self.apart):
            kept = self.kept(inner, array)
            if kept is not None:
                inner, load, store = kept
                before.append(load)
                behind.append(store)
        return [*self.block(before, inner.place), inner, *self.block(behind, inner.place)]

    def block(self, statements: list[low.Simple], place: Any) -> list[low.Straight]:
        if not statements:
            return []
        self.blocks += 1
        return [low.Straight(self.blocks - 1, tuple(statements), place)]

    def kept(self, loop: low.Loop, array: str) -> tuple[low.Loop, low.Assign, low.Store] | None:
        """Returns a loop that keeps the number of an array in a register, with what loads it before and stores it
        behind; None where it cannot."""
        parts = (*loop.test, *loop.body, *loop.step)
        simple = list(walks.simple_statements(parts))
        nodes = [node for each in simple for node in walks.accesses_of(each)]
        own = [node for node in nodes if node.access.variable == array]
        loads = [node for node in own if type(node) is low.Load]
        stores = [node for node in own if type(node) is low.Store]
        if not loads or not stores or len(own) > len(loads) + len(stores):
            return None
        space, type_ = own[0].access.space, own[0].access.type
        if walks.labels_left(parts) - {loop.label} or any(isinstance(each, low.Barrier) for each in simple):
            return None
        if any(each.access.variable is None and each.access.space in (space, "generic") for each in nodes):
            return None
        pointer = self.only_place(own, parts)
        always = {id(each) for block in walks.always(parts) for each in block.statements}
        if pointer is None or not any(id(each) in always for each in stores):
            return None
        register = low.Register(f"{KEPT}{len(self.registers)}", type_)
        self.registers.append(register)
        value = low.Read(type_, register)

        def in_register(node: Any) -> Any:
            changed = rebuilt(node, in_register)
            if isinstance(node, low.Load | low.Store) and node.access.variable == array:
                return value if isinstance(node, low.Load) else low.Assign(register, changed.value)
            return changed

        load = low.Assign(register, low.Load(type_, pointer, loads[0].access))
        return rebuilt(loop, in_register), load, low.Store(pointer, value, stores[-1].access)

    def only_place(
        self, accesses: Sequence[low.Load | low.Store | low.Atomic], parts: tuple[low.Statement, ...]
    ) -> low.Expression | None:
        """Returns the address of accesses in a loop, as it is before the loop; None where they are at several, or
        iterations may move it."""
        pointers = [self.resolved(each.pointer) for each in accesses]
        moved = walks.registers_set(parts)
        for node in (node for pointer in pointers for node in walks.walk(pointer)):
            if isinstance(node, low.Load) or (isinstance(node, low.Read) and node.register in moved):
                return None
        is_one = len({each.access.type for each in accesses}) == len(set(map(_structure, pointers))) == 1
        return pointers[0] if is_one else None

    def resolved(self, value: Any, depth: int = 0) -> Any:
        """Returns an expression without registers that are given a value once."""
        if isinstance(value, low.Read) and depth < _DEEPEST:
            given = self.given.get(value.register, [])
            if len(given) == 1 and isinstance(given[0], low.Assign) and given[0].components is None:
                return self.resolved(given[0].value, depth + 1)
            return value
        return rebuilt(value, lambda part: self.resolved(part, depth))


def _structure(node: Any) -> Hashable:
    """Returns what is equal for expressions that are alike."""
    own = [getattr(node, each.name) for each in fields(node) if each.name not in child_fields(type(node))]
    return type(node), *own, *map(_structure, children(node))


def _has_statements(node: Any) -> bool:
    return isinstance(node, low.Straight | low.If | low.Loop | low.Scope | low.Leave)
