"""Some variables need an address, and aggregates lie in memory as this module says."""

from __future__ import annotations

from perfmodel.basics.errors import SourceError
from perfmodel.opencl_c import syntax as syn
from perfmodel.opencl_c.lowering.builtin_names import BY_POINTER
from perfmodel.opencl_c.types import Type, numbers_within
from perfmodel.opencl_c.visitor import Tree, children

MOST_LEAVES = 4096
"""No aggregate with more leaves is initialized or copied at once."""


def aligned(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment


def leaves(type_: Type, place: syn.Place) -> list[tuple[int, Type]]:
    """Returns (byte offset, type) of every number that an aggregate holds; a union counts by its largest member."""
    found: list[tuple[int, Type]] = []
    for _, offset, leaf in numbers_within(type_):
        found.append((offset, leaf))
        if len(found) > MOST_LEAVES:
            raise SourceError(f"{type_} has over {MOST_LEAVES} elements to copy at once; copy them in a loop", *place)
    return found


def addressed_variables(unit: syn.Unit) -> frozenset[syn.Variable]:
    """Returns scalars, vectors and pointers whose address somebody takes."""
    found: set[syn.Variable] = set()
    for function in unit.functions.values():
        if function.body is not None:
            _search(function.body, found)
    return frozenset(found)


def _search(body: Tree, found: set[syn.Variable]) -> None:
    waiting = [body]
    while waiting:
        waiting += _searched(waiting.pop(), found)


def _searched(node: Tree, found: set[syn.Variable]) -> list[Tree]:
    """Adds what a node itself takes the address of, and returns the nodes within it that may take some as well."""
    inner = children(node)
    match node:
        case syn.BuiltinCall(name="wait_group_events"):
            return []
        case syn.BuiltinCall() if node.name in BY_POINTER or node.name.startswith("atomic_compare_exchange"):
            # What these store is a value of its own, so that their target may stay without an address.
            position = -1 if node.name in BY_POINTER else 1
            pointer = inner.pop(position)
            while isinstance(pointer, syn.Convert):
                pointer = pointer.operand
            inner.append(pointer.target if isinstance(pointer, syn.AddressOf) else pointer)
        case syn.AddressOf():
            target: syn.Expression = node.target
            while isinstance(target, syn.Swizzle | syn.Member):
                target = target.vector if isinstance(target, syn.Swizzle) else target.record
            if isinstance(target, syn.Name):
                found.add(target.variable)
        case syn.Declare() if node.variable.initial is not None:
            inner.append(node.variable.initial)
    return inner
