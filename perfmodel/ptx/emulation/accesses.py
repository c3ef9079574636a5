"""Loads, stores and atomics of emulated lanes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.errors import EmulationError
from perfmodel.basics.in_turn import ALONE
from perfmodel.ptx.dataflow import address_of
from perfmodel.ptx.emulation.atomics import changed
from perfmodel.ptx.emulation.lanes import Mask
from perfmodel.ptx.emulation.memory import Memory
from perfmodel.ptx.emulation.recording import Addresses, Tally
from perfmodel.ptx.emulation.registers import Registers, number
from perfmodel.ptx.emulation.work_counters import Turns
from perfmodel.ptx.syntax import Address, Immediate, Instruction, Operand, Register, Sink, Symbol, items_of
from perfmodel.ptx.types import TYPES, Type

Step = Callable[[Mask], None]
_OPERATIONS = frozenset(("add", "min", "max", "inc", "dec", "and", "or", "xor", "exch", "cas"))


class Accesses:
    """Makes steps of the instructions that access memory.

    Args:
        spaces: of the kernel's variables, by name.
        symbols: where these lie.
        parameters: of the launch: their bytes, by name.
        is_read: whether anything reads a register.
        is_alone: whether lanes make a comparison and exchange as if no other came to their place.
        turns: says of an addition how often each thread makes it, as blocks that are not emulated make theirs
            meanwhile; None where every one counts once.

    Attributes:
        addresses: where the accesses of each instruction went, by array.
        filtered: reads of images that mix the pixels around a place.
        noted: is told of each of them, if there is somebody who wants to know; `noted_execution` of executions that are
            counted for them.
    """

    def __init__(
        self,
        registers: Registers,
        memory: Memory,
        spaces: dict[str, str],
        symbols: dict[str, int],
        parameters: dict[str, bytes],
        is_read: Callable[[str], bool],
        is_alone: Callable[[Instruction], bool],
        turns: Callable[[Instruction], Turns | None],
    ) -> None:
        self.registers, self.memory = registers, memory
        self.spaces, self.symbols, self.parameters = spaces, symbols, parameters
        self.is_read, self.is_alone, self.turns = is_read, is_alone, turns
        self.addresses: dict[Instruction, dict[str, Addresses]] = {}
        self.filtered: set[Instruction] = set()
        self.noted: Callable[[Addresses, Mask, NDArray[np.int64] | None], None] | None = None
        self.noted_execution: Callable[[Tally, Mask], None] | None = None

    def step(self, instruction: Instruction) -> Step:
        if not instruction.types:
            raise EmulationError(f"line {instruction.line} of the PTX accesses memory as no type: {instruction.name}")
        if instruction.opcode in ("ld", "ldu"):
            return self._constant(instruction) or self._load(instruction)
        if instruction.opcode == "st":
            return self._store(instruction)
        return self._atomic(instruction)

    def noting(self, instruction: Instruction) -> Step:
        """Returns a step that notes where a load, store or atomic goes, and moves nothing."""
        if self._constant(instruction) is not None:
            return lambda mask: None
        read, space = self.address(instruction)
        place = {"st": 1, "red": 1, "atom": 2}.get(instruction.opcode, 0)
        n_bytes = instruction.types[-1].bytes * len(items_of(instruction.operands[place]))

        def note(mask: Mask) -> None:
            if not mask.count:
                return
            addresses = read()
            if addresses.ndim or space != "shared" or int(addresses) % n_bytes:
                self.parts(instruction, space, mask, addresses, n_bytes)
                return
            place = int(addresses.view(np.int64))
            self.memory.check_window(space, place, place, n_bytes, instruction.line)
            record = self._record(instruction, space, "", n_bytes)
            row = record.add_one(mask, place & 0xFFFFFFFF)
            if self.noted is not None:
                self.noted(record, mask, row)

        return note

    def _constant(self, instruction: Instruction) -> Step | None:
        """Returns a load of a parameter of the launch, whose place the text says."""
        address = address_of(instruction)
        if address is None or not isinstance(address.base, Symbol) or address.base.name not in self.parameters:
            return None
        contents, type_ = self.parameters[address.base.name], instruction.types[-1]
        items = items_of(instruction.operands[0])
        start = address.offset + address.base.offset
        values = []
        for place in range(len(items)):
            part = contents[start + place * type_.bytes : start + (place + 1) * type_.bytes]
            if len(part) != type_.bytes or start < 0:
                raise EmulationError(f"line {instruction.line} of the PTX reads beyond its parameter")
            values.append(np.frombuffer(part, type_.raw)[0].view(type_.numpy) if type_.lanes == 1 else _packed(part))
        writes = [self.registers.writer(item, _bits(type_), instruction) for item in items]
        if type_.lanes == 1:
            writes = [self.registers.writer(item, type_, instruction) for item in items]

        def load(mask: Mask) -> None:
            for write, value in zip(writes, values, strict=True):
                write(value, mask)

        return load

    def address(self, instruction: Instruction) -> tuple[Callable[[], Any], str]:
        """Returns what gives the addresses of an access, and its space (empty for generic addresses)."""
        address = address_of(instruction)
        if address is None:
            raise EmulationError(f"line {instruction.line} of the PTX accesses memory without an address")
        space = _space_of(instruction)
        offset = np.int64(address.offset).view(np.uint64)
        if isinstance(address.base, Symbol):
            name = address.base.name
            if name not in self.symbols:
                raise EmulationError(f"line {instruction.line} of the PTX accesses {name!r}, which is not declared")
            if self.spaces.get(name) == "stack":
                space = "stack"
            constant = np.uint64(self.symbols[name] + address.base.offset) + offset
            return (lambda: constant), space
        if address.base is None:
            return (lambda: offset), space
        is_narrow = self.registers.types[address.base.name].bits < 64  # as addresses in a window may be
        plain = self.registers.reader(address.base, TYPES["u32" if is_narrow else "u64"], instruction)
        if is_narrow:
            return (lambda: plain().astype(np.uint64) + offset), space
        if address.offset == 0:
            return plain, space
        return (lambda: plain() + offset), space

    def address_in(self, instruction: Instruction, address: Address) -> Callable[[], Any]:
        """Returns what gives the address of one of an instruction's several accesses."""
        plain = replace(instruction, operands=(address,))
        return self.address(plain)[0]

    def words_at(self, instruction: Instruction, address: Address) -> Callable[[Mask], Any]:
        """Returns what gives words of 8 bytes in shared memory, and for each lane of a mask which of them it names."""
        read = self.address_in(instruction, address)
        total = self.registers.lanes.total

        def words(mask: Mask) -> Any:
            places = np.broadcast_to(read(), (total,))[mask.index].astype(np.uint64)
            found = self.memory.located("shared", places, mask.index, 8, instruction.line)
            _, _, bytes_, offsets, _ = found[0]
            return bytes_.view(np.int64), offsets // 8

        return words

    def note_global(
        self, instruction: Instruction, mask: Mask, addresses: NDArray[np.int64], n_bytes: int, row_bytes: int = 0
    ) -> None:
        """Notes an access to an array in global memory that something else makes, or to an image with such rows."""
        own = self.memory.allocation(int(addresses[0]))
        if own is not None and own.name:
            record = self._record(instruction, "global", own.name, n_bytes)
            record.row_bytes = row_bytes
            row = record.add(mask, addresses - own.base)
            if self.noted is not None:
                self.noted(record, mask, row)

    def _record(self, instruction: Instruction, space: str, name: str, n_bytes: int) -> Addresses:
        of_instruction = self.addresses.setdefault(instruction, {})
        key = f"{space} {name}"
        if key not in of_instruction:
            of_instruction[key] = Addresses(space, name, n_bytes, self.memory.lanes)
        return of_instruction[key]

    def parts(
        self, instruction: Instruction, space: str, mask: Mask, addresses: Any, n_bytes: int
    ) -> list[tuple[NDArray[np.uint8], NDArray[np.int64], Any]]:
        """Returns the bytes and offsets of an access, and which lanes they are of; and records it."""
        index = mask.index
        if addresses.ndim:
            addresses = addresses if len(index) == len(addresses) else addresses[index]
        else:
            addresses = np.full(len(index), addresses)
        found = []
        for where, own, bytes_, offsets, which in self.memory.located(
            space, addresses, index, n_bytes, instruction.line
        ):
            found.append((bytes_, offsets, which))
            if where == "stack" or (own is not None and own.name == ""):
                continue
            record = self._record(instruction, where, own.name if own else "", n_bytes)
            if own is not None:
                relative = offsets
            else:
                relative = (addresses if which is None else addresses[which]).view(np.int64) & np.int64(0xFFFFFFFF)
            lanes = mask
            if which is not None:
                part = np.zeros_like(mask.active)
                part[index[which]] = True
                lanes = Mask(mask.lanes, part)
            row = record.add(lanes, relative)
            if self.noted is not None:
                self.noted(record, lanes, row)
        return found

    def _load(self, instruction: Instruction) -> Step:
        type_, registers = instruction.types[-1], self.registers
        items = items_of(instruction.operands[0])
        read, space = self.address(instruction)
        plain = _bits(type_) if type_.lanes == 2 else type_
        writes = [registers.writer(item, plain, instruction) for item in items]
        n_bytes, dtype = type_.bytes * len(items), plain.numpy
        total = registers.lanes.total

        def load(mask: Mask) -> None:
            if not mask.count:
                return
            addresses = read()
            parts = self.parts(instruction, space, mask, addresses, n_bytes)
            for place, write in enumerate(writes):
                values: Any
                if len(parts) == 1 and parts[0][2] is None:
                    bytes_, offsets, _ = parts[0]
                    found = bytes_.view(dtype)[offsets // plain.bytes + place]
                    if addresses.ndim == 0 and space in ("global", "const", "param"):
                        values = found[0]
                    elif len(found) == total:
                        values = found
                    else:
                        values = np.zeros(total, dtype)
                        values[mask.index] = found
                else:
                    values = np.zeros(total, dtype)
                    for bytes_, offsets, which in parts:
                        values[mask.index[which]] = bytes_.view(dtype)[offsets // plain.bytes + place]
                write(values, mask)

        return load

    def _store(self, instruction: Instruction) -> Step:
        type_ = instruction.types[-1]
        items = items_of(instruction.operands[1])
        read, space = self.address(instruction)
        plain = _bits(type_) if type_.lanes == 2 else type_
        values = [self._value(item, plain, instruction) for item in items]
        n_bytes, dtype = plain.bytes * len(items), plain.numpy

        def store(mask: Mask) -> None:
            if not mask.count:
                return
            index = mask.index
            parts = self.parts(instruction, space, mask, read(), n_bytes)
            for place, value in enumerate(values):
                given = value()
                own = given[index] if np.ndim(given) else given
                for bytes_, offsets, which in parts:
                    mine = own[which] if np.ndim(own) and which is not None else own
                    bytes_.view(dtype)[offsets // plain.bytes + place] = mine

        return store

    def _value(self, operand: Operand, type_: Type, instruction: Instruction) -> Callable[[], Any]:
        if isinstance(operand, Immediate):
            constant = number(operand, type_)
            return lambda: constant
        return self.registers.reader(operand, type_, instruction)

    def _atomic(self, instruction: Instruction) -> Step:
        """Returns an atomic, which may be one of several elements: of vectors, and of packed halves."""
        type_, registers = instruction.types[-1], self.registers
        operation = next((m for m in instruction.modifiers if m in _OPERATIONS), None)
        if operation is None:
            raise EmulationError(
                f"line {instruction.line} of the PTX has an atomic that is not known: {instruction.name}"
            )
        read, space = self.address(instruction)
        is_atom = instruction.opcode == "atom"
        to = items_of(instruction.operands[0]) if is_atom else (Sink(),)
        given = [items_of(each) for each in instruction.operands[2 if is_atom else 1 :]]
        values = [[self._value(each, type_, instruction) for each in items] for items in given]
        if operation == "cas" and self.is_alone(instruction):
            operation = ALONE
        is_wanted = any(isinstance(each, Register) and self.is_read(each.name) for each in to)
        writes = [registers.writer(each, type_, instruction) for each in to] if is_wanted else []
        count, total = len(given[0]), registers.lanes.total
        turns = self.turns(instruction)

        def run(mask: Mask) -> None:
            if not mask.count:
                return
            index = mask.index
            parts = self.parts(instruction, space, mask, read(), count * type_.bytes)
            for place in range(count):
                operands = [_by_lane(items[place](), type_, index) for items in values]
                if turns:
                    operands = [[each * turns.next(index.size, each.dtype) for each in operands[0]]]
                found = np.zeros((total, type_.lanes), type_.numpy)
                for lane in range(type_.lanes):
                    at = (place * type_.lanes + lane) * (type_.bytes // type_.lanes)
                    for bytes_, offsets, which in parts:
                        own = [each[lane][which] if which is not None else each[lane] for each in operands]
                        b, c = own[0], own[1] if len(own) > 1 else own[0]
                        old = changed(bytes_, offsets + at, type_, operation, b, c, is_wanted)
                        if old is not None:
                            found[index if which is None else index[which], lane] = old
                if writes:
                    writes[place](found if type_.lanes == 2 else found[:, 0], mask)

        return run


def _by_lane(value: Any, type_: Type, index: NDArray[np.intp]) -> list[NDArray[Any]]:
    """Returns a value of some threads, for each of the elements that are packed in it."""
    if type_.lanes == 2:
        rows = np.broadcast_to(value, (max(len(value), int(index[-1]) + 1), 2))[index]
        return [rows[:, 0], rows[:, 1]]
    return [np.broadcast_to(value[index] if np.ndim(value) else value, index.shape)]


def _bits(type_: Type) -> Type:
    return TYPES[f"b{type_.bits}"]


def _packed(part: bytes) -> Any:
    return np.frombuffer(part, np.uint32)[0]


def _space_of(instruction: Instruction) -> str:
    for space in ("global", "shared", "local", "const", "param"):
        if instruction.has(space, f"{space}::cta", f"{space}::entry", f"{space}::func"):
            return space
    return ""
