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
    blocks = list(low.straights(body))
    pointers = [register for register in registers if isinstance(register.type, Pointer)]
    roots: dict[low.Register, Roots] = {
        register: frozenset(() if register.parameter is None else (parameters[register.parameter].name,))
        for register in pointers
    }
    assigned = [
        (statement.register, statement.value)
        for block in blocks
        for statement in block.statements
        if isinstance(statement, low.Assign) and isinstance(statement.register.type, Pointer)
    ]
    changed = True
    while changed:  # what a register may point to only grows
        changed = False
        for register, value in assigned:
            merged = roots[register] | _roots(value, roots)
            if merged != roots[register]:
                roots[register], changed = merged, True
    for block in blocks:
        for statement in block.statements:
            if isinstance(statement, low.Store | low.Atomic):
                _set(statement.access, statement.pointer, roots)
            for expression in low.expressions_of(statement):
                for part in low.walk(expression):
                    if isinstance(part, low.Load):
                        _set(part.access, part.pointer, roots)


def _set(access: low.Access, pointer: low.Expression, roots: dict[low.Register, Roots]) -> None:
    found = _roots(pointer, roots)
    if len(found) == 1 and UNKNOWN not in found:
        (access.variable,) = found


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
