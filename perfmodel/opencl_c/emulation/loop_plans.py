"""Some loops have iterations so alike that counting some of them is enough; that is decided from the code alone.

Iterations are alike if nothing in the loop decides by what changes between them: its own condition compares a counter
with a number known before, its body's conditions depend on neither the loop's state nor loaded data, and no lane leaves
it early. Even so counts are extrapolated only where they do repeat; see `extrapolation`. Where data decide in the body,
the counter alone tells how many iterations there are: some of them may stand for the others; see `thinning`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import takewhile

from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import walks
from perfmodel.opencl_c.emulation.expression_code import plain
from perfmodel.opencl_c.emulation.register_homes import ListKey
from perfmodel.opencl_c.origins import Origins
from perfmodel.opencl_c.types import Vector, element_of, width_of
from perfmodel.opencl_c.visitor import child_fields, children

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "!=": "!="}
_SHORTEST_CYCLE = 16
"""Remainders by at most this repeat soon enough to be seen."""


@dataclass(frozen=True)
class Plan:
    """A plan tells how to leave out iterations: the loop goes on while ``counter operator bound``.

    Attributes:
        carried: whole numbers that an iteration gets from the last one, the counter first; none depends on loaded data.
            Of a rough plan, those that move by the same step each time.
        depends_on_state: what an iteration does depends on what others before it have made.
    """

    loop: low.Loop
    operator: str
    bound: low.Expression
    carried: tuple[low.Register, ...]
    depends_on_state: bool = False


def plan_of(loop: low.Loop, homes: dict[low.Register, ListKey]) -> Plan | None:
    """Returns the plan for a loop whose iterations may be left out."""
    changed = walks.registers_set((loop,))
    compared = _comparison(loop, changed)
    if compared is None:
        return None
    operator, counter, bound = compared
    carried = {register for register in changed if homes[register] not in _lists_in(loop)} - {loop.condition}
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


def rough_plan_of(loop: low.Loop, homes: dict[low.Register, ListKey]) -> Plan | None:
    """Returns the plan for a loop some of whose iterations may stand for others, whatever data decide in them."""
    changed = walks.registers_set((loop,))
    compared = _comparison(loop, changed)
    if compared is None:
        return None
    operator, counter, bound = compared
    steady = list(_steady(walks.in_turn(loop)))
    moving = {register for register in changed if _moves(register, loop, steady, changed)}
    if counter not in moving:
        return None
    outside = {register for register in changed - moving if homes[register] not in _lists_in(loop)}
    stale = {register for register in outside if _is_carried(register, loop)}
    origins = Origins((loop,))
    inner = [each.condition for each in walks.loops((*loop.body, *loop.step))]
    if not stale.isdisjoint(origins.registers_behind(inner)):  # which may catch up with the iterations left out
        return None
    rest = sorted(moving - {counter}, key=lambda register: register.name)
    return Plan(
        loop=loop,
        operator=operator,
        bound=bound,
        carried=(counter, *rest),
        depends_on_state=_depends_on_state(loop, stale, origins),
    )


def _depends_on_state(loop: low.Loop, stale: Set[low.Register], origins: Origins) -> bool:
    """Returns whether conditions in a loop follow from registers or memory that earlier iterations have changed."""
    first: dict[str | None, low.Load | low.Store | low.Atomic] = {}
    stored: set[str | None] = set()
    for statement in walks.simple_statements(walks.in_turn(loop)):
        for node in walks.accesses_of(statement):
            first.setdefault(node.access.variable, node)
            if not isinstance(node, low.Load):
                stored.add(node.access.variable)
    kept = {variable for variable in stored if isinstance(first[variable], low.Load)}  # not overwritten by each anew
    for origin in origins.behind(each.condition for each in walks.branches((*loop.body, *loop.step))):
        match origin:
            case low.Read() if origin.register in stale:
                return True
            case low.Load() if origin.access.variable in kept:
                return True
            case low.Atomic():
                return True
    return False


def _is_invariant(expression: low.Expression, changed: Set[low.Register]) -> bool:
    is_loaded = any(isinstance(part, low.Load) for part in walks.walk(expression))
    return not is_loaded and changed.isdisjoint(walks.registers_read(expression))


def _steady(body: Iterable[low.Statement]) -> Iterator[low.Simple]:
    """Iterates over the statements that lanes come to in every iteration, whatever conditions hold."""
    for statement in body:
        if isinstance(statement, low.Straight):
            yield from statement.statements
        elif isinstance(statement, low.Scope):
            always = list(takewhile(lambda each: not walks.labels_left((each,)), statement.body))
            yield from _steady(always)


def _moves(register: low.Register, loop: low.Loop, steady: Sequence[low.Simple], changed: Set[low.Register]) -> bool:
    """Returns whether every iteration moves a whole number or pointer by the same step."""
    setting = [each for each in walks.simple_statements((loop,)) if walks.register_set(each) is register]
    if len(setting) != 1 or not any(each is setting[0] for each in steady):
        return False
    (statement,) = setting
    if not isinstance(statement, low.Assign) or statement.components is not None:
        return False
    if isinstance(register.type, Vector) or element_of(plain(register.type)).is_float:
        return False
    match _whole(statement.value):
        case low.Binary(operator="+", left=one, right=other):
            steps = [(one, other), (other, one)]
        case low.Binary(operator="-", left=one, right=other) | low.Offset(pointer=one, index=other):
            steps = [(one, other)]
        case _:
            return False
    starts = [(_whole(start), step) for start, step in steps]
    return any(
        isinstance(start, low.Read) and start.register is register and _is_invariant(step, changed)
        for start, step in starts
    )


def _whole(expression: low.Expression) -> low.Expression:
    """Returns the whole number that an expression is but for its length."""
    while isinstance(expression, low.Convert) and not element_of(plain(expression.operand.type)).is_float:
        expression = expression.operand
    return expression


def _lists_in(loop: low.Loop) -> set[ListKey]:
    return {(id(statement), slot) for statement in walks.statements((loop,)) for slot in child_fields(type(statement))}


def _is_carried(register: low.Register, loop: low.Loop) -> bool:
    """Returns whether an iteration may read what one before it gave to a register."""
    return _reads_first(register, walks.in_turn(loop)) is not False


def _reads_first(register: low.Register, body: Iterable[low.Statement]) -> bool | None:
    """Returns whether statements may read a register before all lanes set it; None where they never do either."""
    for statement in body:
        found: bool | None = None
        match statement:
            case low.Straight():
                found = _reads_first_in(register, statement)
            case low.Scope():
                found = _reads_first(register, statement.body)
            case low.Loop():
                found = _reads_first(register, statement.body if statement.is_do else statement.test)
        if found is None and not isinstance(statement, low.Straight | low.Scope) and _occurs(register, statement):
            found = True
        if found is not None:
            return found
    return None


def _reads_first_in(register: low.Register, block: low.Straight) -> bool | None:
    for statement in block.statements:
        if register in walks.registers_read(statement):
            return True
        if walks.register_set(statement) is register:
            return isinstance(statement, low.Assign) and statement.components is not None
    return None


def _occurs(register: low.Register, statement: low.Statement) -> bool:
    simple = list(walks.simple_statements((statement,)))
    decided = (each.condition for each in walks.branches((statement,)))
    found = (walks.register_set(each) is register or register in walks.registers_read(each) for each in simple)
    return any(found) or register in decided


def _comparison(loop: low.Loop, changed: Set[low.Register]) -> tuple[str, low.Register, low.Expression] | None:
    """Returns what alone ends a loop: the operator, the counter on its left, and on its right a bound that stays.

    Args:
        changed: the registers that the loop sets.
    """
    if walks.labels_left((*loop.test, *loop.body, *loop.step)):
        return None
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
    left, right = _counter(comparison.left), _counter(comparison.right)
    if left is not None and left in changed:
        found = comparison.operator, left, comparison.right
    elif right is not None and right in changed:
        found = _MIRRORED[comparison.operator], right, comparison.left
    else:
        return None
    return found if _is_invariant(found[2], changed) else None


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
