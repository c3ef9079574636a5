"""Vectors that need not lie at multiples of their size are loaded and stored number by number.

``vload4(i, a)`` asks for the alignment of one number alone (OpenCL C 1.2, section 6.12.7), and a GPU's wide accesses
for that of the whole vector: NVIDIA's compiler makes four loads of it, in PTX of release 580.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c.types import INT, Pointer, Vector
from perfmodel.opencl_c.visitor import rebuilt

HELD = "_unaligned"
"""Registers begin so that hold a vector which is stored number by number."""


def by_numbers(kernel: low.LoweredKernel) -> low.LoweredKernel:
    """Returns the kernel with accesses to vectors that may be unaligned as accesses to their numbers."""
    return _Parting(kernel).kernel()


class _Parting:
    """Goes through a kernel; an access keeps its number for the first of the numbers that it becomes accesses to."""

    def __init__(self, kernel: low.LoweredKernel) -> None:
        self.source = kernel
        self.accesses = list(kernel.accesses)
        self.registers = list(kernel.registers)

    def kernel(self) -> low.LoweredKernel:
        if not any(map(_is_unaligned, self.source.accesses)):
            return self.source
        changes: dict[str, Any] = {"body": tuple(map(self.parted, self.source.body))}
        return replace(self.source, **changes, accesses=tuple(self.accesses), registers=tuple(self.registers))

    def parted(self, node: Any) -> Any:
        """Returns what takes the place of a statement or expression: of a store, several statements."""
        node = rebuilt(node, self.parted)
        if type(node) is low.Load and _is_unaligned(node.access):
            places = self.places(node.pointer, node.access)
            return low.Join(node.type, tuple(low.Load(access.type, pointer, access) for pointer, access in places))
        if type(node) is low.Store and _is_unaligned(node.access):
            held = low.Register(HELD, node.access.type)
            self.registers.append(held)
            value = low.Read(held.type, held)
            stores = [
                low.Store(pointer, low.Pick(access.type, value, (place,)), access)
                for place, (pointer, access) in enumerate(self.places(node.pointer, node.access))
            ]
            return [low.Assign(held, node.value), *stores]
        return node

    def places(self, pointer: low.Expression, access: low.Access) -> list[tuple[low.Expression, low.Access]]:
        """Returns where each number of a vector is, with an access of its own."""
        assert isinstance(access.type, Vector)
        element = access.type.element
        found: list[tuple[low.Expression, low.Access]] = []
        for place in range(access.type.width):
            number = len(self.accesses) if place else access.number
            one = replace(access, number=number, type=element)
            if place:
                self.accesses.append(one)
            else:
                self.accesses[number] = one
            index = low.Constant(INT, place)
            found.append((low.Offset(Pointer(element, access.space), pointer, index, element.size), one))
        return found


def _is_unaligned(access: low.Access) -> bool:
    return isinstance(access.type, Vector) and access.alignment < access.type.alignment
