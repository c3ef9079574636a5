"""Values live in registers and in memory; here they are found, loaded and stored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from perfmodel.basics.errors import SourceError
from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c.lowering.builder import Emission, Storage
from perfmodel.opencl_c.lowering.points_to import space_of
from perfmodel.opencl_c.types import LONG, Array, Pointer, Record, Type, element_of


@dataclass(frozen=True)
class InRegister:
    register: low.Register
    components: tuple[int, ...] | None = None


@dataclass(frozen=True)
class InMemory:
    """This lvalue is in memory, as a whole or some components of a vector there."""

    pointer: low.Expression
    type: Type
    alignment: int
    components: tuple[int, ...] | None = None


Lvalue: TypeAlias = InRegister | InMemory


def whole(storage: Storage) -> Lvalue:
    if isinstance(storage, low.Register):
        return InRegister(storage)
    pointer = low.Address(Pointer(storage.type, storage.space), storage)
    return InMemory(pointer, storage.type, storage.type.alignment)


def moved(target: InMemory, offset: int, type_: Type) -> InMemory:
    pointer = target.pointer
    if offset:
        space = pointer.type.space if isinstance(pointer.type, Pointer) else "private"
        pointer = low.Offset(Pointer(type_, space), pointer, low.Constant(LONG, offset), 1)
    return InMemory(pointer, type_, min(type_.alignment, target.alignment))


def element_places(target: InMemory) -> Iterator[InMemory]:
    """Iterates over the components of a vector in memory that are meant, each by itself."""
    assert target.components is not None
    element = element_of(target.type)
    assert isinstance(target.pointer.type, Pointer)
    pointer_type = Pointer(element, target.pointer.type.space)
    for component in target.components:
        at = low.Constant(LONG, component)
        yield InMemory(low.Offset(pointer_type, target.pointer, at, element.size), element, element.size)


class LvalueEmitter:
    """Emits loads from and stores to registers and memory of one kernel."""

    def __init__(self, out: Emission) -> None:
        self.out = out

    def fixed(self, target: Lvalue) -> Lvalue:
        """Returns an lvalue that is read and written: its address is computed once."""
        if isinstance(target, InRegister) or isinstance(target.pointer, low.Read | low.Address):
            return target
        pointer = self.out.held(target.pointer, "_address")
        return InMemory(pointer, target.type, target.alignment, target.components)

    def access(
        self, direction: str, place: InMemory, text: str, is_kept: bool = False, is_filtered: bool = False
    ) -> low.Access:
        space = space_of(place.pointer)
        if space == "generic":
            raise SourceError(
                f"{text} is accessed by a pointer of no address space; declare it global, local or private",
                *self.out.place,
            )
        found = low.Access(
            number=len(self.out.accesses),
            direction=direction,
            space=space,
            type=place.type,
            variable=None,
            alignment=place.alignment,
            text=text,
            place=self.out.place,
            is_kept=is_kept,
            is_filtered=is_filtered,
        )
        self.out.accesses.append(found)
        return found

    def load(self, target: Lvalue, type_: Type, text: str) -> low.Expression:
        if isinstance(target, InRegister):
            read = low.Read(target.register.type, target.register)
            return read if target.components is None else low.Pick(type_, read, target.components)
        if isinstance(target.type, Array | Record):
            raise SourceError(f"{text} is a {target.type}, which is no number; name its elements", *self.out.place)
        if target.components is None:
            return low.Load(target.type, target.pointer, self.access("load", target, text))
        # Compilers load a vector as a whole, whatever of it is asked for.
        vector = low.Load(target.type, target.pointer, self.access("load", target, text))
        return low.Pick(type_, vector, target.components)

    def store_value(self, target: Lvalue, value: low.Expression, text: str) -> None:
        if isinstance(target, InRegister):
            self.settle(target.register, value)
            self.out.emit(low.Assign(target.register, value, target.components))
        elif target.components is None:
            self.out.emit(low.Store(target.pointer, value, self.access("store", target, text)))
        else:
            # Compilers load the whole vector and store it again with what has changed.
            fixed = self.fixed(target)
            assert isinstance(fixed, InMemory)
            access = self.access("load", fixed, text, is_kept=True)
            vector = self.out.held(low.Load(fixed.type, fixed.pointer, access), "_vector")
            self.out.emit(low.Assign(vector.register, value, target.components))
            self.out.emit(low.Store(fixed.pointer, vector, self.access("store", fixed, text)))

    def settle(self, register: low.Register, value: low.Expression) -> None:
        """Gives a pointer declared without address space that of what it first points to."""
        if not isinstance(register.type, Pointer) or isinstance(value, low.Constant):
            return
        space = space_of(value)
        if register.type.space == "generic" and space != "generic":
            register.type = Pointer(register.type.target, space)
        elif space != register.type.space:
            raise SourceError(
                f"{register.name} points to {register.type.space} and to {space} memory; use a pointer for each",
                *self.out.place,
            )

    def written(self, target: Lvalue, new: low.Expression, text: str) -> low.Expression:
        """Stores a value and returns it."""
        if isinstance(target, InRegister):
            self.store_value(target, new, text)
            return self.load(target, new.type, text)
        value = self.out.held(new, "_value")
        self.store_value(target, value, text)
        return value
