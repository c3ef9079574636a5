"""A PTX text consists of these, as plain data: variables, functions, instructions and their operands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from perfmodel.ptx.types import Type


@dataclass(frozen=True)
class Register:
    """A register of a function, by its name."""

    name: str


@dataclass(frozen=True)
class Immediate:
    """A number in the text.

    Attributes:
        value: a whole number, or a float.
        bits: of a float given by its bits (``0f3F800000``): how many; 0 for other numbers.
    """

    value: int | float
    bits: int = 0


@dataclass(frozen=True)
class Symbol:
    """The address of a variable, so many bytes into it; or a function's or label's name."""

    name: str
    offset: int = 0


@dataclass(frozen=True)
class Special:
    """A special register, such as ``%tid.x``."""

    name: str


@dataclass(frozen=True)
class Address:
    """A place in memory: a register or variable, and so many bytes beyond; or a tensor map with coordinates in it."""

    base: Register | Symbol | None
    offset: int = 0
    coordinates: tuple[Operand, ...] = ()


@dataclass(frozen=True)
class Vector:
    """Several operands in braces."""

    items: tuple[Operand, ...]


@dataclass(frozen=True)
class Negated:
    """A predicate that is taken the other way round."""

    operand: Register


@dataclass(frozen=True)
class Both:
    """Two results of one instruction, as ``%r1|%p1``."""

    first: Operand
    second: Operand


@dataclass(frozen=True)
class Sink:
    """A result that nobody wants: ``_``."""


Operand: TypeAlias = Register | Immediate | Symbol | Special | Address | Vector | Negated | Both | Sink


def items_of(operand: Operand) -> tuple[Operand, ...]:
    """Returns the operands within braces, or the operand itself."""
    return operand.items if isinstance(operand, Vector) else (operand,)


@dataclass(frozen=True)
class Guard:
    """An instruction is executed where its guard, a predicate or its opposite, holds."""

    register: Register
    is_negated: bool


@dataclass(frozen=True)
class Source:
    """A place in the source that the text was compiled from, as ``.loc`` says it.

    Attributes:
        calls: the places of the calls through which it was inlined.
    """

    file: int
    line: int
    column: int
    calls: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True, eq=False)
class Instruction:
    """One instruction.

    Attributes:
        opcode: its first word, such as ``ld``.
        modifiers: the words behind it that are no types, in their order.
        types: the types behind it.
        line: in the PTX text.
        source: where it comes from, if the text says so.
    """

    opcode: str
    modifiers: tuple[str, ...] = ()
    types: tuple[Type, ...] = ()
    operands: tuple[Operand, ...] = ()
    line: int = 0
    guard: Guard | None = None
    source: Source | None = None

    @property
    def name(self) -> str:
        return ".".join((self.opcode, *self.modifiers, *(type_.name for type_ in self.types)))

    def has(self, *modifiers: str) -> bool:
        return any(modifier in self.modifiers for modifier in modifiers)


@dataclass(frozen=True)
class Label:
    """A place in a function's body that branches go to."""

    name: str


@dataclass(frozen=True)
class Variable:
    """A variable in one of the spaces of memory.

    Attributes:
        space: ``global``, ``const``, ``shared``, ``local`` or ``param``.
        n_bytes: its size; 0 for an array that the launch gives its size.
        contents: what it holds at first; None for zeros.
        addresses: other variables whose addresses it holds at first, by the place in bytes.
    """

    name: str
    space: str
    type: Type
    n_bytes: int
    align: int
    contents: bytes | None = None
    addresses: Mapping[int, Symbol] = field(default_factory=dict)
    is_array: bool = False


@dataclass(frozen=True, eq=False)
class Function:
    """A kernel (entry) or a function that kernels call.

    Attributes:
        results, parameters: variables in the space of parameters.
        registers: their types, by name.
        variables: those declared inside.
    """

    name: str
    is_entry: bool
    results: tuple[Variable, ...]
    parameters: tuple[Variable, ...]
    registers: Mapping[str, Type] = field(default_factory=dict)
    variables: tuple[Variable, ...] = ()
    body: tuple[Instruction | Label, ...] = ()
    targets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Module:
    """All that one PTX text defines.

    Attributes:
        is_of_tiles: whether places in the source do whole tiles, as Triton's: it stems from Python, and its compiler
            chose the threads of a block. The instructions of one place are parts of a tile then, no iterations.
    """

    version: str
    target: str
    variables: Mapping[str, Variable]
    functions: Mapping[str, Function]
    is_of_tiles: bool = False

    @property
    def entries(self) -> tuple[str, ...]:
        return tuple(name for name, function in self.functions.items() if function.is_entry)
