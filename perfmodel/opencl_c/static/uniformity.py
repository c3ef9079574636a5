"""Finds what is the same for all lanes of a processor's vectors, so that control branches and is not masked.

A compiler that makes vectors of work-items turns conditions that lanes may decide differently into masks: what stands
behind them is done for all vectors that come by, whether any lane takes part or not.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c.static.vectorization import differs_between_lanes
from perfmodel.opencl_c.visitor import walk as nodes_within

_Context = tuple[int, ...]
"""The conditions around a statement that lanes decide differently, by their numbers."""


class Uniformity:
    """Says which values of a kernel differ between the lanes of a vector, which lie along the first axis."""

    def __init__(self, kernel: low.LoweredKernel) -> None:
        self._body = kernel.body

    def is_masked(self, branch: low.If | low.Loop) -> bool:
        """Returns whether lanes may decide differently on a branch."""
        return branch.condition in self._varying[0]

    @cached_property
    def _varying(self) -> tuple[set[low.Register], set[str]]:
        """The registers, and the arrays of work-items' own, that differ between lanes: all that follows from ids, from
        loads at places that differ, and from what was set under different masks."""
        registers: set[low.Register] = set()
        arrays: set[str] = set()
        found = -1
        while found < len(registers) + len(arrays):
            found = len(registers) + len(arrays)
            contexts: dict[low.Register, set[_Context]] = {}
            self._collect(self._body, (), registers, arrays, contexts)
            registers.update(register for register, seen in contexts.items() if len(seen) > 1)
        return registers, arrays

    def _collect(
        self,
        body: Iterable[low.Statement],
        context: _Context,
        registers: set[low.Register],
        arrays: set[str],
        contexts: dict[low.Register, set[_Context]],
    ) -> None:
        """Adds what statements under masks make differ."""
        for statement in body:
            match statement:
                case low.If():
                    inner = (*context, statement.number) if statement.condition in registers else context
                    self._collect(statement.then, inner, registers, arrays, contexts)
                    other = (*context, ~statement.number) if inner is not context else context
                    self._collect(statement.otherwise, other, registers, arrays, contexts)
                case low.Loop():
                    for part in (statement.test, statement.body, statement.step):
                        self._collect(part, context, registers, arrays, contexts)
                case low.Scope():
                    self._collect(statement.body, context, registers, arrays, contexts)
                case low.Straight():
                    for simple in statement.statements:
                        self._set(simple, context, registers, arrays, contexts)

    def _set(
        self,
        statement: low.Simple,
        context: _Context,
        registers: set[low.Register],
        arrays: set[str],
        contexts: dict[low.Register, set[_Context]],
    ) -> None:
        match statement:
            case low.Assign():
                contexts.setdefault(statement.register, set()).add(context)
                if self._differs(statement.value, registers, arrays):
                    registers.add(statement.register)
            case low.Store():
                parts = (statement.pointer, statement.value)
                if context or any(self._differs(part, registers, arrays) for part in parts):
                    arrays.add(_array(statement.access))
            case low.Atomic() | low.Collective() if statement.result is not None:
                registers.add(statement.result)

    def _differs(self, value: low.Expression, registers: set[low.Register], arrays: set[str]) -> bool:
        """Returns whether lanes may have different values."""
        for node in nodes_within(value):
            match node:
                case low.Read() if node.register in registers:
                    return True
                case low.WorkItem() if differs_between_lanes(node):
                    return True
                case low.Load() if node.access.space == "private" and _array(node.access) in arrays:
                    return True
        return False


def _array(access: low.Access) -> str:
    return access.variable or ""
