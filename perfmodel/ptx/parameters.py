"""The code of a kernel says of its parameters which are pointers, to what, and which arrays it writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from perfmodel.basics.graphs import reached
from perfmodel.ptx.code import Code
from perfmodel.ptx.dataflow import (
    ACCESSING,
    LOADS,
    STORES,
    ParameterPlace,
    address_of,
    parameters_behind,
    registers_in,
)
from perfmodel.ptx.syntax import Address, Instruction, Register, Symbol, Variable, items_of
from perfmodel.ptx.types import Type


@dataclass(frozen=True)
class HeldPointer:
    """A pointer within a struct that is passed by value, which the code follows.

    Attributes:
        offset: where it lies, in bytes.
        dtype, is_output: as of a `Parameter`.
    """

    offset: int
    dtype: str
    is_output: bool


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel, as its code uses it.

    Attributes:
        n_bytes: of its value.
        type: of a number; None for bytes in a struct.
        is_pointer: whether an access's address follows from it.
        dtype: numpy's name of what is mostly accessed through it; empty for no pointer.
        is_output: whether it is written through it.
        held: the pointers within a struct, by their places.
        loaded: the bytes of a struct that the code loads; None where it may load any.
    """

    name: str
    n_bytes: int
    type: Type | None
    is_pointer: bool
    dtype: str
    is_output: bool
    held: tuple[HeldPointer, ...] = ()
    loaded: frozenset[int] | None = None


def parameters_of(code: Code) -> tuple[Parameter, ...]:
    """Returns a kernel's parameters in their order."""
    reached: dict[str, dict[int, list[Instruction]]] = {each.name: {} for each in code.kernel.parameters}
    for block in code.flow.blocks:
        for instruction in block.instructions:
            if instruction.opcode in ACCESSING and not instruction.has("param", "shared", "local", "const"):
                for name, offset in roots(code, instruction):
                    reached[name].setdefault(offset, []).append(instruction)
    loaded = _loaded(code)
    return tuple(
        _parameter(code, variable, reached[variable.name], loaded[variable.name]) for variable in code.kernel.parameters
    )


def roots(code: Code, access: Instruction) -> set[ParameterPlace]:
    """Returns the parameters of pointers' width whose values an access's address is a sum of: at most one is its array;
    of structs, the parts that are surely pointers."""
    plain = {v.name for v in code.kernel.parameters if v.n_bytes == 8 and not v.is_array}
    names = plain | {v.name for v in code.kernel.parameters if v.is_array}
    registers = _summed(code, access)
    loads = (parameters_behind(each) for each in _definitions(code, registers))
    found = {place for each in loads for register, place in each.items() if register in registers and place[0] in names}
    return found & code.converted or {place for place in found if place[0] in plain}


def has_loaded_pointer(code: Code, access: Instruction) -> bool:
    """Returns whether an access's address may be one that lies in memory, or anywhere in a struct."""
    return any(
        each.opcode in LOADS and each.types[-1].bits == 64 and not _is_of_known_place(each)
        for each in _summands(code, access)
    )


def _is_of_known_place(load: Instruction) -> bool:
    address = address_of(load)
    return load.has("param") and address is not None and isinstance(address.base, Symbol)


def shared_variables(code: Code, access: Instruction) -> set[str]:
    """Returns the variables in shared memory from which an access's address is counted."""
    address = address_of(access)
    operands = [operand for each in _summands(code, access, 32) for operand in each.operands]
    return {each.name for each in [*operands, address and address.base] if isinstance(each, Symbol)}


def _summands(code: Code, access: Instruction, bits: int = 64) -> set[Instruction]:
    """Returns the instructions that write what an access's address, of so many bits or more, is a sum of."""
    return set(_definitions(code, _summed(code, access, bits)))


def _definitions(code: Code, registers: Iterable[str]) -> Iterator[Instruction]:
    return (each for name in registers for each in code.dataflow.definitions.get(name, ()))


def _summed(code: Code, access: Instruction, bits: int = 64) -> set[str]:
    """Returns the registers that an access's address, of so many bits or more, is a sum of."""
    address = address_of(access)
    if address is None or not isinstance(address.base, Register):
        return set()

    def added_to(name: str) -> Iterator[str]:
        for instruction in code.dataflow.definitions.get(name, ()):
            is_wide = instruction.has("wide") or any(type_.bits >= bits for type_ in instruction.types)
            if instruction.opcode in _ADDING and is_wide:
                yield from (each for operand in instruction.operands[1:] for each in registers_in(operand))

    return reached([address.base.name], added_to)


_ADDING = frozenset(("add", "sub", "mov", "cvta", "selp", "mad", "or"))


def _loaded(code: Code) -> dict[str, frozenset[int] | None]:
    """Returns the bytes of each parameter that are loaded; None where its address is taken."""
    bytes_: dict[str, set[int]] = {each.name: set() for each in code.kernel.parameters}
    taken: set[str] = set()
    for block in code.flow.blocks:
        for instruction in block.instructions:
            for operand in instruction.operands:
                base = operand.base if isinstance(operand, Address) else operand
                if not isinstance(base, Symbol) or base.name not in bytes_:
                    continue
                if instruction.opcode != "ld" or not instruction.has("param") or not instruction.types:
                    taken.add(base.name)
                else:
                    n_bytes = instruction.types[-1].bytes * len(items_of(instruction.operands[0]))
                    start = base.offset + (operand.offset if isinstance(operand, Address) else 0)
                    bytes_[base.name] |= set(range(start, start + n_bytes))
    return {name: None if name in taken else frozenset(own) for name, own in bytes_.items()}


def _parameter(
    code: Code, variable: Variable, followed: Mapping[int, list[Instruction]], loaded: frozenset[int] | None
) -> Parameter:
    """Returns a parameter, by the accesses to where its pointers point, at these places in it."""
    accesses = [] if variable.is_array else [each for own in followed.values() for each in own]
    dtype, is_output = _pointed_to(code, accesses)
    held = [HeldPointer(offset, *_pointed_to(code, own)) for offset, own in sorted(followed.items())]
    return Parameter(
        name=variable.name,
        n_bytes=variable.n_bytes,
        type=None if variable.is_array else variable.type,
        is_pointer=bool(accesses),
        dtype=dtype,
        is_output=is_output,
        held=tuple(held) if variable.is_array else (),
        loaded=loaded if variable.is_array else None,
    )


def _pointed_to(code: Code, accesses: list[Instruction]) -> tuple[str, bool]:
    """Returns numpy's name of what accesses mostly move, and whether some of them write."""
    dtypes = Counter(code.dataflow.dtype_of(access) for access in accesses)
    dtype = dtypes.most_common(1)[0][0] if dtypes else ""
    return dtype, any(access.opcode in (*STORES, "atom", "red") for access in accesses)
