"""Which loops have turns that are so alike that counting some of them is enough; decided from the code alone.

Turns are alike if nothing in the loop decides by what changes from turn to turn: its own condition compares a counter
with a number known before, its body's conditions depend on neither the loop's state nor loaded data, and no lane leaves
it early. Even so counts are extrapolated only where they do repeat; see `extrapolation`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c.emulation.expressions import plain
from perfmodel.opencl_c.emulation.homes import ListKey, assigned, escapes, registers_of
from perfmodel.opencl_c.types import element_of, width_of

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "!=": "!="}
_SHORTEST_CYCLE = 16
"""Remainders by at most this repeat soon enough to be seen."""


@dataclass(frozen=True)
class Plan:
    """How to leave out turns: the loop goes on while ``counter operator bound``.

    Attributes:
        carried: what whole numbers a turn gets from the one before, the counter first; none depends on loaded data.
    """

    loop: low.Loop
    operator: str
    bound: low.Expression
    carried: tuple[low.Register, ...]


def plan_of(loop: low.Loop, homes: dict[low.Register, ListKey]) -> Plan | None:
    """The plan for a loop whose turns may be left out."""
    if loop.is_do or _leaves(loop):
        return None
    compared = _comparison(loop)
    if compared is None:
        return None
    operator, counter, bound = compared
    changed = assigned((loop,))
    if registers_of(bound) & changed or any(isinstance(part, low.Load) for part in low.walk(bound)):
        return None
    inside = _lists(loop)
    carried = {register for register in changed if homes[register] not in inside} - {loop.condition}
    loaded = _dependent(loop, set(), True)
    varying = _dependent(loop, carried, True)
    if counter not in carried or counter in loaded:
        return None
    for condition in _conditions((*loop.body, *loop.step)):
        if condition in varying:
            return None
    for expression in _whole_expressions(loop):
        if _bends(expression, varying):
            return None
    for pointer in _pointers(loop):
        if _depends(pointer, loaded):
            return None
    whole = [register for register in carried - loaded - {counter} if not element_of(plain(register.type)).is_float]
    return Plan(loop, operator, bound, (counter, *sorted(whole, key=lambda register: register.name)))


def _leaves(loop: low.Loop) -> bool:
    return bool(escapes((*loop.test, *loop.body, *loop.step)))


def _comparison(loop: low.Loop) -> tuple[str, low.Register, low.Expression] | None:
    """The operator, the counter on its left, and the bound on its right."""
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
    changed = assigned((loop,))
    left, right = _counter(comparison.left), _counter(comparison.right)
    if left is not None and left in changed:
        return comparison.operator, left, comparison.right
    if right is not None and right in changed:
        return _MIRRORED[comparison.operator], right, comparison.left
    return None


def _counter(expression: low.Expression) -> low.Register | None:
    while isinstance(expression, low.Convert):
        expression = expression.operand
    return expression.register if isinstance(expression, low.Read) else None


def _lists(loop: low.Loop) -> set[ListKey]:
    """All lists of statements within a loop."""
    found: set[ListKey] = set()

    def visit(owner: low.Statement, slots: tuple[str, ...]) -> None:
        for slot in slots:
            found.add((id(owner), slot))
            for statement in getattr(owner, slot):
                match statement:
                    case low.If():
                        visit(statement, ("then", "otherwise"))
                    case low.Loop():
                        visit(statement, ("test", "body", "step"))
                    case low.Scope():
                        visit(statement, ("body",))

    visit(loop, ("test", "body", "step"))
    return found


def _dependent(loop: low.Loop, start: set[low.Register], loads: bool) -> set[low.Register]:
    """Registers that depend on some others or on loaded data, by their values or by conditions around them."""
    found = set(start)
    before = -1
    while len(found) != before:
        before = len(found)
        _spread((loop,), False, found, loop.condition)
    return found


def _spread(body: tuple[low.Statement, ...], decided: bool, found: set[low.Register], own: low.Register) -> None:
    for statement in body:
        match statement:
            case low.Straight():
                for inner in statement.statements:
                    if isinstance(inner, low.Assign) and (decided or _depends(inner.value, found)):
                        found.add(inner.register)
                    elif isinstance(inner, low.Atomic) and inner.result is not None:
                        found.add(inner.result)
            case low.If():
                inside = decided or statement.condition in found
                _spread(statement.then, inside, found, own)
                _spread(statement.otherwise, inside, found, own)
            case low.Loop():
                # That a loop goes on is no news within it.
                inside = decided or (statement.condition in found and statement.condition is not own)
                for part in (statement.test, statement.body, statement.step):
                    _spread(part, inside, found, own)
            case low.Scope():
                _spread(statement.body, decided, found, own)


def _depends(expression: low.Expression, on: set[low.Register]) -> bool:
    match expression:
        case low.Load():
            return True
        case low.Read():
            return expression.register in on
        case low.Binary() if expression.operator in "%&" and isinstance(expression.right, low.Constant):
            if 0 < expression.right.value <= _SHORTEST_CYCLE - (expression.operator == "&"):
                return any(isinstance(part, low.Load) for part in low.walk(expression))
    return any(_depends(part, on) for part in low.parts(expression))


def _conditions(body: tuple[low.Statement, ...]) -> Iterator[low.Register]:
    for statement in low.statements(body):
        if isinstance(statement, low.If | low.Loop):
            yield statement.condition


def _whole_expressions(loop: low.Loop) -> Iterator[low.Expression]:
    """All parts of expressions of whole numbers and pointers."""
    for block in low.straights((loop,)):
        for statement in block.statements:
            for expression in low.expressions_of(statement):
                for part in low.walk(expression):
                    if not element_of(plain(part.type)).is_float:
                        yield part


def _bends(expression: low.Expression, varying: set[low.Register]) -> bool:
    """Whether it may change its ways at some turn, as ``min`` does."""
    return isinstance(expression, low.Select | low.Call) and _depends(expression, varying)


def _pointers(loop: low.Loop) -> Iterator[low.Expression]:
    for block in low.straights((loop,)):
        for statement in block.statements:
            if isinstance(statement, low.Store | low.Atomic):
                yield statement.pointer
            for expression in low.expressions_of(statement):
                yield from (part.pointer for part in low.walk(expression) if isinstance(part, low.Load))
