"""Arguments that are no sizes may decide where control goes: those are found here."""

from __future__ import annotations

from collections.abc import Iterable

from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import walks
from perfmodel.opencl_c.origins import Origins
from perfmodel.opencl_c.types import Vector, is_float


def deciding(kernel: low.LoweredKernel) -> tuple[str, ...]:
    """Returns the arguments of floating-point type that conditions of branches and loops are computed from."""
    if not any(is_float(parameter.type) for parameter in kernel.parameters):
        return ()
    branches = walks.branches(kernel.body)
    found, _ = arguments_behind(kernel, {branch.condition for branch in branches})
    return found


def arguments_behind(kernel: low.LoweredKernel, registers: Iterable[low.Register]) -> tuple[tuple[str, ...], bool]:
    """Returns the arguments of floating-point type that registers follow from, and whether memory has a part in it.

    Of a vector by value, these are its components, as a launch names them.
    """
    behind = list(Origins(kernel.body).behind(registers))
    read = {each.register for each in behind if isinstance(each, low.Read)}
    has_loads = any(isinstance(each, low.Load | low.Atomic) for each in behind)
    names = {register.name for register in read if register.parameter is not None and is_float(register.type)}
    found = [parameter for parameter in kernel.parameters if parameter.name in names]
    return tuple(name for parameter in found for name in _numbers(parameter)), has_loads


def _numbers(parameter: low.Parameter) -> list[str]:
    if not isinstance(parameter.type, Vector):
        return [parameter.name]
    return [f"{parameter.name}_{component}" for component in range(parameter.type.width)]
