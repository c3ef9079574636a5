"""The code of a kernel says of its parameters which are pointers, to what, and which arrays it writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from perfmodel.basics.graphs import reached
from perfmodel.ptx.code import Code
from perfmodel.ptx.dataflow import ACCESSING, LOADS, STORES, address_of, parameter_behind, registers_in
from perfmodel.ptx.syntax import Instruction, Register, Symbol, Variable
from perfmodel.ptx.types import Type


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel, as its code uses it.

    Attributes:
        n_bytes: of its value.
        type: of a number; None for bytes in a struct.
        is_pointer: whether an access's address follows from it.
        dtype: numpy's name of what is mostly accessed through it; empty for no pointer.
        is_output: whether it is written through it.
    """

    name: str
    n_bytes: int
    type: Type | None
    is_pointer: bool
    dtype: str
    is_output: bool


def parameters_of(code: Code) -> tuple[Parameter, ...]:
    """Returns a kernel's parameters in their order."""
    reached: dict[str, list[Instruction]] = {}
    for block in code.flow.blocks:
        for instruction in block.instructions:
            if instruction.opcode in ACCESSING and not instruction.has("param", "shared", "local", "const"):
                for name in roots(code, instruction):
                    reached.setdefault(name, []).append(instruction)
    return tuple(_parameter(code, variable, reached.get(variable.name, [])) for variable in code.kernel.parameters)


def roots(code: Code, access: Instruction) -> set[str]:
    """Returns the parameters of pointers' width whose values an access's address is a sum of: at most one is its
    array."""
    found = {name for each in _summands(code, access) for name in parameter_behind(each)}
    names = found & {v.name for v in code.kernel.parameters if v.n_bytes == 8 and not v.is_array}
    return names & code.converted or names


def has_loaded_pointer(code: Code, access: Instruction) -> bool:
    """Returns whether an access's address may be one that lies in memory."""
    return any(
        each.opcode in LOADS and not each.has("param") and each.types[-1].bits == 64 for each in _summands(code, access)
    )


def shared_variables(code: Code, access: Instruction) -> set[str]:
    """Returns the variables in shared memory from which an access's address is counted."""
    address = address_of(access)
    operands = [operand for each in _summands(code, access, 32) for operand in each.operands]
    return {each.name for each in [*operands, address and address.base] if isinstance(each, Symbol)}


def _summands(code: Code, access: Instruction, bits: int = 64) -> set[Instruction]:
    """Returns the instructions that write what an access's address, of so many bits or more, is a sum of."""
    address = address_of(access)
    if address is None or not isinstance(address.base, Register):
        return set()
    found: set[Instruction] = set()

    def added_to(name: str) -> Iterator[str]:
        for instruction in code.dataflow.definitions.get(name, ()):
            found.add(instruction)
            is_wide = instruction.has("wide") or any(type_.bits >= bits for type_ in instruction.types)
            if instruction.opcode in _ADDING and is_wide:
                yield from (each for operand in instruction.operands[1:] for each in registers_in(operand))

    reached([address.base.name], added_to)
    return found


_ADDING = frozenset(("add", "sub", "mov", "cvta", "selp", "mad", "or"))


def _parameter(code: Code, variable: Variable, accesses: list[Instruction]) -> Parameter:
    dtypes = Counter(code.dataflow.dtype_of(access) for access in accesses)
    dtype = dtypes.most_common(1)[0][0] if dtypes else ""
    is_output = any(access.opcode in (*STORES, "atom", "red") for access in accesses)
    type_ = None if variable.is_array else variable.type
    return Parameter(
        name=variable.name,
        n_bytes=variable.n_bytes,
        type=type_,
        is_pointer=bool(accesses),
        dtype=dtype,
        is_output=is_output,
    )
