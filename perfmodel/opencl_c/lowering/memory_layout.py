"""Some variables need an address, and aggregates lie in memory as this module says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from perfmodel.basics.errors import SourceError
from perfmodel.opencl_c import syntax as syn
from perfmodel.opencl_c.lowering.builtin_names import BY_POINTER
from perfmodel.opencl_c.lowering.folding import as_constant
from perfmodel.opencl_c.types import Array, Pointer, Scalar, Type, Vector, numbers_within
from perfmodel.opencl_c.visitor import Tree, children, walk

MOST_LEAVES = 4096
"""No aggregate with more leaves is initialized or copied at once."""
FEW_BYTES, FEW_STORES = 32, 6
"""Compilers clear a larger array in which no more numbers than so many are others than 0, and store these."""


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
            pointer = unconverted(inner.pop(position))
            inner.append(pointer.target if isinstance(pointer, syn.AddressOf) else pointer)
        case syn.AddressOf():
            target = _inside(node.target)
            if isinstance(target, syn.Name):
                found.add(target.variable)
        case syn.Declare() if node.variable.initial is not None:
            inner.append(node.variable.initial)
    return inner


def unconverted(pointer: Tree) -> Tree:
    """Returns a pointer without the conversions to another address space; those to another type of value stay."""
    while isinstance(pointer, syn.Convert) and _points_to_the_same(pointer.type, pointer.operand.type):
        pointer = pointer.operand
    return pointer


def _points_to_the_same(one: Type, other: Type) -> bool:
    return isinstance(one, Pointer) and isinstance(other, Pointer) and one.target == other.target


def private_tables(unit: syn.Unit) -> frozenset[syn.Variable]:
    """Returns private arrays that begin with constants and are only loaded from, which compilers keep once for all
    work-items, as they do tables of the program."""
    begun, written = set[syn.Variable](), set[int]()
    named, loaded = Counter[syn.Variable](), Counter[syn.Variable]()
    bodies = [function.body for function in unit.functions.values() if function.body is not None]
    nodes = [node for body in bodies for node in _all_within(body)]
    for node in nodes:
        match node:
            case syn.Declare() if _begins_with_constants(node.variable):
                begun.add(node.variable)
            case syn.Assign() | syn.CompoundAssign() | syn.Increment() | syn.AddressOf():
                written.add(id(_inside(node.target)))
            case syn.Name():
                named[node.variable] += 1
    for node in nodes:
        is_number = isinstance(node, syn.Dereference) and isinstance(node.type, Scalar | Vector)
        if is_number and id(node) not in written and (array := _array_of(node)) is not None:
            loaded[array] += 1
    return frozenset(each for each in begun if named[each] == loaded[each])


def _all_within(body: Tree) -> Iterator[Tree]:
    for node in walk(body):
        yield node
        if isinstance(node, syn.Declare) and node.variable.initial is not None:
            yield from _all_within(node.variable.initial)


def _begins_with_constants(variable: syn.Variable) -> bool:
    initial = variable.initial
    if not isinstance(variable.type, Array) or not isinstance(initial, syn.InitializerList):
        return False
    if not all(isinstance(leaf, Scalar | Vector) for _, _, leaf in numbers_within(variable.type)):
        return False
    numbers = [as_constant(each) for _, each in initial.leaves]
    others = sum(number != 0 for number in numbers)  # a vector is a tuple
    return None not in numbers and (variable.type.size <= FEW_BYTES or others > FEW_STORES)


def _inside(target: syn.Expression) -> syn.Expression:
    """Returns the lvalue that a target is a part of."""
    while isinstance(target, syn.Swizzle | syn.Member):
        target = target.vector if isinstance(target, syn.Swizzle) else target.record
    return target


def _array_of(access: Tree) -> syn.Variable | None:
    """Returns the array that an lvalue is an element of, by its own name and indices; None if it is anywhere else."""
    while isinstance(access, syn.Dereference):
        pointer = access.pointer
        while isinstance(pointer, syn.Shift):
            pointer = pointer.pointer
        if not isinstance(pointer, syn.Decay):
            return None
        access = pointer.array
    return access.variable if isinstance(access, syn.Name) else None
