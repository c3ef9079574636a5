"""Says which numbers of its vectors a kernel asks for."""

from __future__ import annotations

from collections import defaultdict

from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import walks
from perfmodel.opencl_c.types import width_of


def numbers_read(kernel: low.LoweredKernel) -> dict[low.Register, frozenset[int]]:
    """Returns the places of the numbers that are read anywhere of each register that is read."""
    found: defaultdict[low.Register, set[int]] = defaultdict(set)

    def add(expression: low.Expression) -> None:
        match expression:
            case low.Pick(vector=low.Read(register=register), components=components):
                found[register].update(components)
            case low.Read(register=register):
                found[register].update(range(width_of(register.type)))
            case _:
                for part in walks.parts(expression):
                    add(part)

    for statement in walks.simple_statements(kernel.body):
        for expression in walks.expressions_of(statement):
            add(expression)
    return {register: frozenset(places) for register, places in found.items()}
