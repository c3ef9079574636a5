"""The registers of an emulated kernel: arrays of bits by lane, read and written as instructions' types say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from perfmodel.basics.errors import EmulationError
from perfmodel.ptx.dataflow import CARRY
from perfmodel.ptx.emulation.lanes import Lanes, Mask
from perfmodel.ptx.emulation.narrow_floats import decoded, encoded
from perfmodel.ptx.syntax import Immediate, Instruction, Negated, Operand, Register, Sink, Special, Symbol
from perfmodel.ptx.types import TYPES, Type

Read = Callable[[], Any]
Write = Callable[[Any, Mask], None]


class Registers:
    """The registers of all lanes. A value is an array by lane, or one number where all lanes have the same.

    Attributes:
        values: the bits that each register holds, by its number.
        protected: registers whose values lanes that wait elsewhere still need.
    """

    def __init__(
        self, types: Mapping[str, Type], lanes: Lanes, special: Callable[[str], Any], symbols: Mapping[str, int]
    ) -> None:
        self.types = {**types, CARRY: TYPES["u32"]}
        self.numbers = {name: number for number, name in enumerate(self.types)}
        self.values: list[Any] = [type_.raw.type(0) for type_ in self.types.values()]
        self.lanes, self._special, self._symbols = lanes, special, symbols
        self.protected: frozenset[int] = frozenset()

    def reader(self, operand: Operand, type_: Type, instruction: Instruction) -> Read:
        """Returns a function that gives an operand in a type."""
        match operand:
            case Register():
                return self._of_register(operand.name, type_)
            case Negated():
                plain = self._of_register(operand.operand.name, type_)
                return lambda: np.logical_not(plain())
            case Immediate():
                constant = number(operand, type_)
                return lambda: constant
            case Special():
                value = in_type(self._special(operand.name), type_)
                return lambda: value
            case Symbol() if operand.name in self._symbols:
                constant = np.uint64(self._symbols[operand.name] + operand.offset).astype(type_.raw)
                return lambda: constant
        raise EmulationError(f"line {instruction.line} of the PTX has an operand that {instruction.name!r} can't have")

    def _of_register(self, name: str, type_: Type) -> Read:
        values, place, declared = self.values, self.numbers[name], self.types[name]
        _check_width(name, declared, type_)
        if type_.kind == "p":
            return lambda: values[place]
        if type_.is_coded:
            return lambda: _unpacked(values[place], type_)
        numpy, raw = type_.numpy, type_.raw
        if declared.bits != type_.bits:
            if numpy == raw:
                return lambda: values[place].astype(raw)
            return lambda: values[place].astype(raw).view(numpy)
        if numpy == raw:
            return lambda: values[place]
        return lambda: values[place].view(numpy)

    def reader_of_carry(self) -> Read:
        return self._of_register(CARRY, TYPES["u32"])

    def writer(self, operand: Operand, type_: Type, instruction: Instruction) -> Write:
        """Returns a function that gives a register new values of a type where a mask says so."""
        if isinstance(operand, Sink):
            return lambda value, mask: None
        if not isinstance(operand, Register):
            raise EmulationError(f"line {instruction.line} of the PTX gives its result to no register")
        return self.write_to(operand.name, type_, instruction.guard is not None)

    def write_to(self, name: str, type_: Type, is_guarded: bool = False) -> Write:
        values, place, declared = self.values, self.numbers[name], self.types[name]
        _check_width(name, declared, type_)
        raw, numpy = declared.raw, type_.numpy
        is_narrow = declared.kind != "p" and declared.bits != type_.bits
        is_coded, is_predicate = type_.is_coded, declared.kind == "p"
        is_plain = not (is_coded or is_predicate or is_narrow)

        def bits(value: Any) -> Any:
            if is_predicate or (is_plain and value.dtype == raw == numpy):
                return value
            if is_coded:
                return _packed(value, type_, raw)
            if value.dtype != numpy:
                value = value.astype(numpy)
            if is_narrow:  # a wider register holds the number, extended by its sign
                if type_.is_float:
                    value = value.view(type_.raw)
                return value.astype(np.dtype(f"i{raw.itemsize}")).view(raw) if type_.kind == "s" else value.astype(raw)
            return value if value.dtype == raw else value.view(raw)

        def write(value: Any, mask: Mask) -> None:
            new = bits(value)
            if is_guarded or place in self.protected:
                old = values[place]
                if mask.count == self.lanes.total:
                    values[place] = new
                else:
                    values[place] = np.where(mask.active, new, old)
            else:
                values[place] = new

        return write


def _unpacked(value: Any, type_: Type) -> Any:
    """Returns the numbers in bits, of a packed type along a last axis."""
    own = np.atleast_1d(value).astype(type_.raw)
    parts = own[:, None].view(f"u{type_.raw.itemsize // 2}") if type_.lanes == 2 else own
    if type_.form:
        found: Any = decoded(parts, type_.form)
    else:
        found = parts.view(type_.numpy)
    return found if np.ndim(value) or type_.lanes == 2 else found[0]


def _packed(value: Any, type_: Type, raw: np.dtype[Any]) -> Any:
    """Returns the bits of numbers, which lie along a last axis if the type is packed."""
    parts = encoded(value, type_.form) if type_.form else np.ascontiguousarray(value, type_.numpy).view(np.uint16)
    if type_.lanes == 2:
        parts = np.ascontiguousarray(parts).view(type_.raw)[..., 0]
        parts = parts[0] if parts.shape == (1,) else parts
    return parts.astype(raw) if np.ndim(parts) else raw.type(parts)


def _check_width(name: str, declared: Type, type_: Type) -> None:
    """Refuses a register that is narrower than what it is used as, and predicates as numbers."""
    if (declared.kind == "p") != (type_.kind == "p") or declared.bits < type_.bits:
        raise EmulationError(f"register {name!r} of the PTX is a {declared.name}, and used as a {type_.name}")


def number(immediate: Immediate, type_: Type) -> Any:
    """Returns a number of the text in a type."""
    if type_.kind == "p":
        return np.bool_(immediate.value)
    if type_.is_float and type_.lanes == 1 and (immediate.bits or isinstance(immediate.value, float)):
        return type_.numpy.type(immediate.value)
    value: int
    if isinstance(immediate.value, float):
        wide = np.float32(immediate.value) if immediate.bits == 32 else np.float64(immediate.value)
        value = int(wide.view(np.dtype(f"u{wide.itemsize}")))
    else:
        value = int(immediate.value)
    found = np.asarray(value & (2**type_.bits - 1), np.uint64).astype(type_.raw)[()]
    if type_.is_coded:
        return _unpacked(found, type_)
    return found.view(type_.numpy)


def in_type(value: Any, type_: Type) -> Any:
    """Returns a special register's value in a type."""
    return value.astype(type_.raw).view(type_.numpy) if value.dtype != type_.numpy else value
