"""Which array or memory object each access of a kernel is in, where all pointers that reach it agree."""

from __future__ import annotations

from collections.abc import Sequence

from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import syntax as syn
from perfmodel.opencl_c.types import Pointer

Roots = frozenset[str]
UNKNOWN = "?"


def assign_variables(
    body: tuple[low.Statement, ...], registers: Sequence[low.Register], parameters: Sequence[syn.Variable]
) -> None:
    """Sets `Access.variable` everywhere."""
    simple = list(low.simple_statements(body))
    pointers = [register for register in registers if isinstance(register.type, Pointer)]
    roots: dict[low.Register, Roots] = {
        register: frozenset(() if register.parameter is None else (parameters[register.parameter].name,))
        for register in pointers
    }
    changed = True
    while changed:  # what a register may point to only grows
        changed = False
        for statement in simple:
            if isinstance(statement, low.Assign) and statement.register in roots:
                merged = roots[statement.register] | _roots(statement.value, roots)
                changed |= merged != roots[statement.register]
                roots[statement.register] = merged
    for statement in simple:
        for node in low.accesses_of(statement):
            found = _roots(node.pointer, roots)
            if len(found) == 1 and UNKNOWN not in found:
                (node.access.variable,) = found


def _roots(pointer: low.Expression, roots: dict[low.Register, Roots]) -> Roots:
    match pointer:
        case low.Read():
            return roots.get(pointer.register, frozenset((UNKNOWN,)))
        case low.Address():
            return frozenset((pointer.object.name,))
        case low.Offset():
            return _roots(pointer.pointer, roots)
        case low.Reinterpret() if isinstance(pointer.operand.type, Pointer):
            return _roots(pointer.operand, roots)
        case low.Select():
            return _roots(pointer.then, roots) | _roots(pointer.otherwise, roots)
        case low.Constant():
            return frozenset()
    return frozenset((UNKNOWN,))


def space_of(pointer: low.Expression) -> str:
    """The address space that a pointer points to, ``generic`` if that is not known."""
    match pointer:
        case low.Read():
            type_ = pointer.register.type
        case low.Offset():
            return space_of(pointer.pointer)
        case low.Reinterpret() if isinstance(pointer.operand.type, Pointer):
            return space_of(pointer.operand)
        case low.Select():
            spaces = {space_of(pointer.then), space_of(pointer.otherwise)}
            return spaces.pop() if len(spaces) == 1 else "generic"
        case _:
            type_ = pointer.type
    return type_.space if isinstance(type_, Pointer) else "generic"
