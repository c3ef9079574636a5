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
    return any(isinstance(statement, low.Leave) and wanted(statement.label) for statement in low.statements(body))


def is_inside(loop: low.Loop, label: str) -> bool:
    """Whether a label belongs to something within a loop's body."""
    inside = low.statements((*loop.test, *loop.body, *loop.step))
    return any(isinstance(statement, low.Loop | low.Scope) and statement.label == label for statement in inside)
