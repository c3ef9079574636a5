"""Says how the counter of a loop moves, and where it ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import walks

COMPARED = ("<", "<=", ">", ">=", "!=")


def leaves(loop: low.Loop) -> bool:
    """Returns whether a loop may end in the middle of an iteration, or before it, by what data say."""
    tested = any(not isinstance(each, low.Straight) for each in loop.test)
    return tested or loop.is_do or bool(walks.labels_left(loop.body))


def parts_of(loop: low.Loop) -> tuple[low.Statement, ...]:
    return (*loop.test, *loop.body, *loop.step)


def condition_of(loop: low.Loop) -> low.Expression | None:
    found = [each.value for each in _assignments(loop.test) if each.register is loop.condition]
    return found[0] if len(found) == 1 else None


def moved_in(loop: low.Loop) -> low.Assign | None:
    """Returns what moves a loop's counter in every iteration; None where nothing does, or more."""
    condition = condition_of(loop)
    compared = set() if condition is None else set(walks.registers_read(condition))
    moved = [each for each in _assignments((*loop.body, *loop.step)) if each.register in compared]
    return moved[0] if len(moved) == 1 else None


def step_of(loop: low.Loop) -> low.Assign | None:
    """Returns what moves a loop's counter by a number in every iteration."""
    moved = moved_in(loop)
    return moved if moved is not None and number_added(moved) else None


def start_of(step: low.Assign, assigned: Mapping[low.Register, Iterable[low.Expression]]) -> low.Expression | None:
    """Returns what a loop's counter starts at, where that is all that it is given beside what moves it."""
    starts = starts_of(step, assigned)
    return starts[0] if len(starts) == 1 else None


def starts_of(moved: low.Assign, assigned: Mapping[low.Register, Iterable[low.Expression]]) -> list[low.Expression]:
    """Returns what a loop's counter is given beside what moves it."""
    return [value for value in assigned.get(moved.register, ()) if value is not moved.value]


def end_of(loop: low.Loop) -> low.Expression | None:
    """Returns what a loop's counter is compared with."""
    condition = condition_of(loop)
    if not isinstance(condition, low.Binary) or condition.operator not in COMPARED:
        return None
    return condition.right


def takes_in_end(loop: low.Loop) -> int:
    """Returns 1 or -1 where a loop's counter goes up or down to its end, and comes there; 0 where it stays before."""
    condition = condition_of(loop)
    return {"<=": 1, ">=": -1}.get(condition.operator, 0) if isinstance(condition, low.Binary) else 0


def bound_of(loop: low.Loop) -> int | None:
    """Returns the number that a loop's counter stays below (or above), if it is one."""
    end = end_of(loop)
    bound = None if end is None else whole_number(end)
    return None if bound is None else bound + takes_in_end(loop)


def whole_number(expression: low.Expression) -> int | None:
    value = walks.unconverted(expression)
    return int(value.value) if isinstance(value, low.Constant) and not isinstance(value.value, float) else None


def number_added(assign: low.Assign) -> int:
    """Returns the number that is added to a register; 0 where something else is done to it."""
    value = walks.unconverted(assign.value)
    if not isinstance(value, low.Binary) or value.operator not in ("+", "-"):
        return 0
    own, number = walks.unconverted(value.left), whole_number(value.right)
    if not isinstance(own, low.Read) or own.register is not assign.register or number is None:
        return 0
    return number if value.operator == "+" else -number


def multiplies(parts: Iterable[object], counter: low.Register) -> bool:
    """Returns whether a part of an address is a counter times what is no number, as in a column of a matrix."""
    return any(whole_number(other) is None for other in _factors(parts, counter, ("*",)))


def is_scaled(parts: Iterable[object], counter: low.Register) -> bool:
    """Returns whether a part of an address is a counter times a number, so that it moves by more than one."""
    return any(whole_number(other) is not None for other in _factors(parts, counter, ("*", "<<")))


def _factors(parts: Iterable[object], counter: low.Register, operators: tuple[str, ...]) -> Iterator[low.Expression]:
    """Iterates over what stands beside a counter under these operators."""
    for each in parts:
        if isinstance(each, low.Binary) and each.operator in operators:
            for own, other in ((each.left, each.right), (each.right, each.left)):
                if counter in set(walks.registers_read(own)):
                    yield other


def _assignments(statements: Iterable[low.Statement]) -> Iterator[low.Assign]:
    return (each for each in walks.simple_statements(statements) if isinstance(each, low.Assign))


def note_number(statement: low.Simple, numbers: dict[low.Register, int]) -> None:
    """Notes in place the number that a statement gives a register, or that it gives it another value."""
    register = walks.register_set(statement)
    if register is not None:
        numbers.pop(register, None)
        if isinstance(statement, low.Assign) and (number := whole_number(statement.value)) is not None:
            numbers[register] = number
