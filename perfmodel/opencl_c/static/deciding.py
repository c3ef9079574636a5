"""Arguments that are no sizes may decide where control goes: those are found here."""

from __future__ import annotations

from collections.abc import Iterable

from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c.types import Vector, is_float


def deciding(kernel: low.LoweredKernel) -> tuple[str, ...]:
    """Returns the arguments of floating-point type that conditions of branches and loops are computed from."""
    if not any(is_float(parameter.type) for parameter in kernel.parameters):
        return ()
    branches = (each for each in low.statements(kernel.body) if isinstance(each, low.If | low.Loop))
    found, _ = arguments_behind(kernel, {branch.condition for branch in branches})
    return found


def arguments_behind(kernel: low.LoweredKernel, registers: Iterable[low.Register]) -> tuple[tuple[str, ...], bool]:
    """Returns the arguments of floating-point type that registers follow from, and whether memory has a part in it.

    Of a vector by value, these are its components, as a launch names them.
    """
    seen, has_loads = registers_behind(kernel, registers)
    names = {register.name for register in seen if register.parameter is not None and is_float(register.type)}
    found = [parameter for parameter in kernel.parameters if parameter.name in names]
    return tuple(name for parameter in found for name in _numbers(parameter)), has_loads


def _numbers(parameter: low.Parameter) -> list[str]:
    if not isinstance(parameter.type, Vector):
        return [parameter.name]
    return [f"{parameter.name}_{component}" for component in range(parameter.type.width)]


def registers_behind(
    kernel: low.LoweredKernel, registers: Iterable[low.Register]
) -> tuple[frozenset[low.Register], bool]:
    """Returns the registers that some follow from, themselves included, and whether memory has a part in it."""
    assigned: dict[low.Register, list[low.Expression]] = {}
    from_memory: set[low.Register] = set()
    for statement in low.simple_statements(kernel.body):
        if isinstance(statement, low.Assign):
            assigned.setdefault(statement.register, []).append(statement.value)
        elif isinstance(statement, low.Atomic) and statement.result is not None:
            from_memory.add(statement.result)
    seen, waiting, has_loads = set(registers), list(registers), False
    while waiting:
        register = waiting.pop()
        has_loads |= register in from_memory
        for value in assigned.get(register, ()):
            has_loads |= any(isinstance(part, low.Load) for part in low.walk(value))
            new = set(low.registers_read(value)) - seen
            seen |= new
            waiting += new
    return frozenset(seen), has_loads
