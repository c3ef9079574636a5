"""Which registers and labels the statements of a lowered kernel are about."""

from __future__ import annotations

from collections.abc import Callable

from perfmodel.opencl_c import lowered as low


def assigned_in(loop: low.Loop) -> list[low.Register]:
    found: dict[low.Register, None] = {}
    for block in low.straights((*loop.test, *loop.body, *loop.step)):
        for statement in block.statements:
            if isinstance(statement, low.Assign):
                found[statement.register] = None
            elif isinstance(statement, low.Atomic) and statement.result is not None:
                found[statement.result] = None
    return list(found)


def last_value(body: tuple[low.Statement, ...], register: low.Register) -> low.Expression | None:
    found = None
    for statement in body:
        if not isinstance(statement, low.Straight):
            return None
        for inner in statement.statements:
            if isinstance(inner, low.Assign) and inner.register is register:
                found = inner.value
    return found


def is_left(body: tuple[low.Statement, ...], wanted: Callable[[str], bool]) -> bool:
    """Whether anything in there leaves for a label like this."""
    for statement in body:
        match statement:
            case low.Leave():
                if wanted(statement.label):
                    return True
            case low.If():
                if is_left((*statement.then, *statement.otherwise), wanted):
                    return True
            case low.Loop():
                if is_left((*statement.test, *statement.body, *statement.step), wanted):
                    return True
            case low.Scope():
                if is_left(statement.body, wanted):
                    return True
    return False


def is_inside(loop: low.Loop, label: str) -> bool:
    """Whether a label belongs to something within a loop's body."""
    return label in labels_in((*loop.test, *loop.body, *loop.step))


def labels_in(body: tuple[low.Statement, ...]) -> set[str]:
    found: set[str] = set()
    for statement in body:
        match statement:
            case low.If():
                found |= labels_in((*statement.then, *statement.otherwise))
            case low.Loop():
                found |= {statement.label} | labels_in((*statement.test, *statement.body, *statement.step))
            case low.Scope():
                found |= {statement.label} | labels_in(statement.body)
    return found
