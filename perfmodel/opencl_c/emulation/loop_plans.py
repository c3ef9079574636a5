"""Some loops have iterations so alike that counting some of them is enough; that is decided from the code alone.

Iterations are alike if nothing in the loop decides by what changes between them: its own condition compares a counter
with a number known before, its body's conditions depend on neither the loop's state nor loaded data, and no lane leaves
it early. Even so counts are extrapolated only where they do repeat; see `extrapolation`.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass

from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import walks
from perfmodel.opencl_c.emulation.expression_code import plain
from perfmodel.opencl_c.emulation.register_homes import ListKey
from perfmodel.opencl_c.types import element_of, width_of
from perfmodel.opencl_c.visitor import child_fields, children

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "!=": "!="}
_SHORTEST_CYCLE = 16
"""Remainders by at most this repeat soon enough to be seen."""


@dataclass(frozen=True)
class Plan:
    """A plan tells how to leave out iterations: the loop goes on while ``counter operator bound``.

    Attributes:
        carried: whole numbers that an iteration gets from the last one, the counter first; none depends on loaded data.
    """

    loop: low.Loop
    operator: str
    bound: low.Expression
    carried: tuple[low.Register, ...]


def plan_of(loop: low.Loop, homes: dict[low.Register, ListKey]) -> Plan | None:
    """Returns the plan for a loop whose iterations may be left out."""
    if loop.is_do or walks.labels_left((*loop.test, *loop.body, *loop.step)):
        return None
    compared = _comparison(loop)
    if compared is None:
        return None
    operator, counter, bound = compared
    changed = walks.registers_set((loop,))
    is_loaded = any(isinstance(part, low.Load) for part in walks.walk(bound))
    if is_loaded or not changed.isdisjoint(walks.registers_read(bound)):
        return None
    inside = {
        (id(statement), slot) for statement in walks.statements((loop,)) for slot in child_fields(type(statement))
    }
    carried = {register for register in changed if homes[register] not in inside} - {loop.condition}
    loaded = _dependent(loop, set())
    varying = _dependent(loop, carried)
    if counter not in carried or counter in loaded:
        return None
    if any(branch.condition in varying for branch in walks.branches((*loop.body, *loop.step))):
        return None
    for inner in walks.simple_statements((loop,)):
        if any(_bends(part, varying) for expression in walks.expressions_of(inner) for part in walks.walk(expression)):
            return None
        if any(_depends(access.pointer, loaded) for access in walks.accesses_of(inner)):
            return None
    whole = [register for register in carried - loaded - {counter} if not element_of(plain(register.type)).is_float]
    return Plan(loop, operator, bound, (counter, *sorted(whole, key=lambda register: register.name)))


def _comparison(loop: low.Loop) -> tuple[str, low.Register, low.Expression] | None:
    """Returns the operator, the counter on its left, and the bound on its right."""
    if len(loop.test) != 1 or not isinstance(loop.test[0], low.Straight) or len(loop.test[0].statements) != 1:
        return None
    statement = loop.test[0].statements[0]
    if not isinstance(statement, low.Assign) or not isinstance(statement.value, low.Binary):
        return None
    comparison = statement.value
    if comparison.operator not in _MIRRORED or width_of(plain(comparison.left.type)) != 1:
        return None
    if element_of(plain(comparison.left.type)).is_float:
        return None
    changed = walks.registers_set((loop,))
    left, right = _counter(comparison.left), _counter(comparison.right)
    if left is not None and left in changed:
        return comparison.operator, left, comparison.right
    if right is not None and right in changed:
        return _MIRRORED[comparison.operator], right, comparison.left
    return None


def _counter(expression: low.Expression) -> low.Register | None:
    value = walks.unconverted(expression)
    return value.register if isinstance(value, low.Read) else None


def _dependent(loop: low.Loop, start: Set[low.Register]) -> set[low.Register]:
    """Returns registers that depend on some others or on loaded data, by their values or by conditions around them."""
    found = set(start)
    before = -1
    while len(found) != before:
        before = len(found)
        _spread((loop,), False, found, loop.condition)
    return found


def _spread(body: Iterable[low.Statement], decided: bool, found: set[low.Register], own: low.Register) -> None:
    for statement in body:
        match statement:
            case low.Straight():
                for inner in statement.statements:
                    if isinstance(inner, low.Assign) and (decided or _depends(inner.value, found)):
                        found.add(inner.register)
                    elif isinstance(inner, low.Atomic | low.Collective) and inner.result is not None:
                        found.add(inner.result)
            case low.If() | low.Loop():
                # That a loop goes on is no news within it.
                inside = decided or (statement.condition in found and statement.condition is not own)
                _spread(children(statement), inside, found, own)
            case _:
                _spread(children(statement), decided, found, own)


def _depends(expression: low.Expression, on: Set[low.Register]) -> bool:
    match expression:
        case low.Load():
            return True
        case low.Read():
            return expression.register in on
        case low.Binary() if expression.operator in "%&" and isinstance(expression.right, low.Constant):
            if 0 < expression.right.value <= _SHORTEST_CYCLE - (expression.operator == "&"):
                return any(isinstance(part, low.Load) for part in walks.walk(expression))
    return any(_depends(part, on) for part in walks.parts(expression))


def _bends(expression: low.Expression, varying: set[low.Register]) -> bool:
    """Returns whether a whole number or pointer may change its ways at some iteration, as ``min`` does."""
    is_choice = isinstance(expression, low.Select | low.Call)
    return is_choice and not element_of(plain(expression.type)).is_float and _depends(expression, varying)
