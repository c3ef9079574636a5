"""Structs of which nobody takes more than their numbers become registers, as compilers have it.

Scalar replacement of aggregates: a struct in private memory whose every access is to one of its numbers, at an offset
that is known, needs no memory. So the fields of a struct passed by value are as good as scalar arguments.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import walks
from perfmodel.opencl_c.lowering.builder import Emission
from perfmodel.opencl_c.types import Pointer, Record, Vector, numbers_within
from perfmodel.opencl_c.visitor import children, rebuilt


@dataclass(frozen=True)
class _Place:
    """A place in a memory object is so many bytes from its start."""

    object: low.MemoryObject
    offset: int


@dataclass(frozen=True)
class _Slot:
    """A slot is a register that takes an object's number, or one component of a vector of it."""

    register: low.Register
    component: int | None = None


def replace_structs(body: tuple[low.Statement, ...], out: Emission) -> tuple[low.Statement, ...]:
    """Returns the statements with registers in place of structs; these leave the objects and accesses of `out`."""
    if not any(isinstance(each.type, Record) and each.space == "private" for each in out.objects):
        return body
    return _Replacement(body, out).body


class _Replacement:
    def __init__(self, body: tuple[low.Statement, ...], out: Emission) -> None:
        simple = list(walks.simple_statements(body))
        self.pointers = _constant_pointers(simple)
        self.slots = self._slots(simple, out)
        self.gone: set[low.Access] = set()
        self.body = body
        if self.slots:
            self.body = tuple(rebuilt(statement, self._changed) for statement in body)
            self._forget(out)

    def _slots(self, simple: list[low.Simple], out: Emission) -> dict[low.MemoryObject, dict[tuple[int, Any], _Slot]]:
        """Returns, for each object that is replaced, a slot for each place and type that is accessed."""
        candidates = {each for each in out.objects if isinstance(each.type, Record) and each.space == "private"}
        wanted: dict[low.MemoryObject, set[tuple[int, Any]]] = {each: set() for each in candidates}
        for node in (part for statement in simple for part in self._exposed(statement)):
            match node:
                case low.Load() | low.Store() if (place := self.place(node.pointer)) is not None:
                    if place.object in wanted:
                        wanted[place.object].add((place.offset, node.access.type))
                case low.Address():
                    candidates.discard(node.object)
                case low.Read() if node.register in self.pointers:
                    candidates.discard(self.pointers[node.register].object)
        found = {}
        for object_ in out.objects:
            slots = _slots_of(object_, wanted[object_]) if object_ in candidates else None
            if slots is not None:
                found[object_] = slots
                out.registers += dict.fromkeys(slot.register for slot in slots.values())
        return found

    def _exposed(self, node: Any) -> Iterator[Any]:
        """Iterates over a node and all within it, but for pointers to known places that are only accessed, or kept in
        a variable that is one of `pointers`."""
        yield node
        if isinstance(node, low.Assign) and node.register in self.pointers:
            return
        for child in children(node):
            is_place = (
                isinstance(node, low.Load | low.Store) and child is node.pointer and self.place(child) is not None
            )
            if not is_place:
                yield from self._exposed(child)

    def place(self, pointer: low.Expression) -> _Place | None:
        return _place(pointer, self.pointers)

    def _changed(self, node: Any) -> Any:
        """Returns a node with registers in place of what is replaced within it; None for a statement that is not
        needed."""
        match node:
            case low.Assign() if self._is_gone(node):
                return None
            case low.Load() | low.Store():
                slot = self._slot(node)
                if slot is not None:
                    self.gone.add(node.access)
                    return self._loaded(node, slot) if isinstance(node, low.Load) else self._stored(node, slot)
        return rebuilt(node, self._changed)

    def _is_gone(self, node: low.Assign) -> bool:
        place = self.pointers.get(node.register)
        return place is not None and place.object in self.slots

    def _slot(self, node: low.Load | low.Store) -> _Slot | None:
        place = self.place(node.pointer)
        slots = None if place is None else self.slots.get(place.object)
        return None if place is None or slots is None else slots[place.offset, node.access.type]

    def _loaded(self, node: low.Load, slot: _Slot) -> low.Expression:
        read = low.Read(slot.register.type, slot.register)
        return read if slot.component is None else low.Pick(node.type, read, (slot.component,))

    def _stored(self, node: low.Store, slot: _Slot) -> low.Assign:
        components = None if slot.component is None else (slot.component,)
        return low.Assign(slot.register, self._changed(node.value), components)

    def _forget(self, out: Emission) -> None:
        """Takes what is replaced out of the kernel's objects and accesses."""
        out.objects[:] = [each for each in out.objects if each not in self.slots]
        out.accesses[:] = [access for access in out.accesses if access not in self.gone]
        for number, access in enumerate(out.accesses):
            access.number = number


def _constant_pointers(simple: list[low.Simple]) -> dict[low.Register, _Place]:
    """Returns the pointer variables that are set once, to a place that is known."""
    times = Counter(register for each in simple if (register := walks.register_set(each)) is not None)
    found: dict[low.Register, _Place] = {}
    for statement in simple:
        if not isinstance(statement, low.Assign) or statement.register.parameter is not None:
            continue
        if isinstance(statement.register.type, Pointer) and times[statement.register] == 1:
            place = _place(statement.value, found)
            if place is not None:
                found[statement.register] = place
    return found


def _place(pointer: low.Expression, known: dict[low.Register, _Place]) -> _Place | None:
    match pointer:
        case low.Address():
            return _Place(pointer.object, 0)
        case low.Read():
            return known.get(pointer.register)
        case low.Offset(index=low.Constant() as index):
            start = _place(pointer.pointer, known)
            return None if start is None else _Place(start.object, start.offset + int(index.value) * pointer.scale)
        case low.Reinterpret() if isinstance(pointer.operand.type, Pointer):
            return _place(pointer.operand, known)
    return None


def _slots_of(object_: low.MemoryObject, wanted: set[tuple[int, Any]]) -> dict[tuple[int, Any], _Slot] | None:
    """Returns a slot for each place and type that is accessed; None if one of them is not a number by itself."""
    numbers = {(offset, type_): name for name, offset, type_ in numbers_within(object_.type, object_.name)}
    registers = {}
    for (offset, type_), name in numbers.items():
        start = None if object_.parameter is None else offset
        registers[offset, type_] = low.Register(name, type_, object_.parameter, start)
    found = {}
    for offset, type_ in wanted:
        whole = registers.get((offset, type_))
        slot = None if whole is None else _Slot(whole)
        for (start, vector), register in registers.items():
            if slot is None and isinstance(vector, Vector) and vector.element == type_:
                component, rest = divmod(offset - start, vector.element.size)
                if not rest and 0 <= component < vector.width:
                    slot = _Slot(register, component)
        if slot is None:
            return None
        found[offset, type_] = slot
    used = {slot.register for slot in found.values()}
    spans = sorted((start, start + type_.size) for (start, type_), register in registers.items() if register in used)
    overlap = any(end > start for (_, end), (start, _) in pairwise(spans))  # a member of a union stored as another
    return None if overlap else found
