"""Private arrays lie in memory where a compiler doesn't know which element an access is of, and else in registers.

The GPU makers' names of such memory are local (NVIDIA) and scratch (AMD) memory.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from perfmodel.opencl_c import lowered as low

MOST_BYTES = 1024
"""Larger arrays find no room in the registers of a work-item, whatever their indices are."""


def scratch_arrays(kernel: low.LoweredKernel) -> dict[str, int]:
    """Returns the private arrays that lie in memory, with their bytes of a work-item, by name.

    An index is known if it follows from numbers, and from counters of loops that are unrolled as their ends are known.
    """
    private = {each.name: each.type.size for each in kernel.objects if each.space == "private"}
    if not private:
        return {}
    found = {name for name, size in private.items() if size > MOST_BYTES}
    indices = _Indices(kernel)
    for statement in low.simple_statements(kernel.body):
        for node in low.accesses_of(statement):
            if node.access.space != "private" or node.access.variable in found:
                continue
            if not indices.is_known(node.pointer):
                found |= set(private) if node.access.variable is None else {node.access.variable}
    return {name: private[name] for name in sorted(found & private.keys())}


class _Indices:
    """Tells what a compiler knows of expressions once it has unrolled loops."""

    def __init__(self, kernel: low.LoweredKernel) -> None:
        self._values: dict[low.Register, list[Any]] = defaultdict(list)
        for statement in low.simple_statements(kernel.body):
            if (register := low.register_set(statement)) is not None:
                self._values[register].append(statement)
        self._unknown: set[low.Register] = set()
        self._unknown = self._stepped_in_open_loops(kernel.body)

    def _stepped_in_open_loops(self, body: Iterable[low.Statement]) -> set[low.Register]:
        """Returns the registers that go on from iteration to iteration of loops that are not unrolled."""
        found: set[low.Register] = set()
        for loop in low.statements(body):
            if isinstance(loop, low.Loop) and (loop.unroll == 1 or not self._is_known_register(loop.condition, set())):
                values: dict[low.Register, list[low.Simple]] = defaultdict(list)
                for statement in low.simple_statements((loop,)):
                    if (register := low.register_set(statement)) is not None:
                        values[register].append(statement)
                found |= {
                    register
                    for register, statements in values.items()
                    if all(register in set(_registers_read(each)) for each in statements)
                }
        return found

    def is_known(self, expression: low.Expression) -> bool:
        return self._is_known(expression, set())

    def _is_known(self, expression: low.Expression, waiting: set[low.Register]) -> bool:
        for part in low.walk(expression):
            match part:
                case low.Load() | low.WorkItem() | low.Call() | low.ImageSize():
                    return False
                case low.Read() if not self._is_known_register(part.register, waiting):
                    return False
        return True

    def _is_known_register(self, register: low.Register, waiting: set[low.Register]) -> bool:
        """Returns whether all values of a register are known; `waiting` are those that this is being asked of."""
        if register.parameter is not None or register in self._unknown:
            return False
        if register in waiting:
            return True
        waiting = {*waiting, register}
        return all(
            isinstance(statement, low.Assign) and self._is_known(statement.value, waiting)
            for statement in self._values.get(register, ())
        )


def _registers_read(statement: low.Simple) -> Iterator[low.Register]:
    for expression in low.expressions_of(statement):
        yield from low.registers_read(expression)
