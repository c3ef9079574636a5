"""Each access of a kernel is in one array or memory object where all pointers that reach it agree on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import syntax as syn
from perfmodel.opencl_c import walks
from perfmodel.opencl_c.types import Pointer

Roots = frozenset[str]
UNKNOWN = "?"


def assign_variables(
    body: tuple[low.Statement, ...], registers: Sequence[low.Register], parameters: Sequence[syn.Variable]
) -> None:
    """Sets `Access.variable` everywhere."""
    simple = list(walks.simple_statements(body))
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
        for node in walks.accesses_of(statement):
            found = _roots(node.pointer, roots)
            if len(found) == 1 and UNKNOWN not in found:
                (node.access.variable,) = found


def _origins(pointer: low.Expression) -> Iterator[low.Expression]:
    """Iterates over the expressions that a pointer is one of, moved and reinterpreted."""
    match pointer:
        case low.Offset():
            yield from _origins(pointer.pointer)
        case low.Reinterpret() if isinstance(pointer.operand.type, Pointer):
            yield from _origins(pointer.operand)
        case low.Select():
            yield from _origins(pointer.then)
            yield from _origins(pointer.otherwise)
        case _:
            yield pointer


def _roots(pointer: low.Expression, roots: dict[low.Register, Roots]) -> Roots:
    """Returns the points-to set of a pointer: names of arrays and memory objects, and `UNKNOWN`."""
    found: set[str] = set()
    for origin in _origins(pointer):
        match origin:
            case low.Read():
                found |= roots.get(origin.register, {UNKNOWN})
            case low.Address():
                found.add(origin.object.name)
            case low.Constant():
                pass
            case _:
                found.add(UNKNOWN)
    return frozenset(found)


def space_of(pointer: low.Expression) -> str:
    """Returns the address space that a pointer points to, ``generic`` if that is not known."""
    origins = _origins(pointer)
    types = [origin.register.type if isinstance(origin, low.Read) else origin.type for origin in origins]
    spaces = {type_.space if isinstance(type_, Pointer) else "generic" for type_ in types}
    return spaces.pop() if len(spaces) == 1 else "generic"
