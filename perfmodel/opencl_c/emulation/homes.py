"""Where in the kernel a register lives, and which registers a loop changes.

An assignment under a mask must keep the values of lanes that are not active. But mostly nobody reads them again: a
variable that is declared within a branch is only read there. The list of statements that holds all of a register's
occurrences, of which the first one sets all of it, is its home: lanes that are not active in that list never read it.
So an assignment need merge only if lanes that are active at home are not active where it stands.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from perfmodel.opencl_c import lowered as low

ListKey: TypeAlias = tuple[int, str]
"""A list of statements: the identity of the statement that it belongs to, and which of its lists it is."""
ROOT: ListKey = (0, "")


@dataclass
class _Life:
    path: tuple[ListKey, ...]
    starts_set: tuple[ListKey, ...] | None


def homes(kernel: low.LoweredKernel) -> dict[low.Register, ListKey]:
    """Of each register its home; the whole kernel where no smaller one is sure."""
    lives: dict[low.Register, _Life] = {}

    def meet(register: low.Register, path: tuple[ListKey, ...], is_set: bool) -> None:
        life = lives.get(register)
        if life is None:
            starts_set = path if is_set and register.parameter is None else None
            lives[register] = _Life(path, starts_set)
            return
        common = 0
        while common < min(len(path), len(life.path)) and path[common] == life.path[common]:
            common += 1
        life.path = path[:common]

    def visit(body: tuple[low.Statement, ...], path: tuple[ListKey, ...]) -> None:
        for statement in body:
            match statement:
                case low.Straight():
                    for inner in statement.statements:
                        for register, is_set in _occurrences(inner):
                            meet(register, path, is_set)
                case low.If():
                    meet(statement.condition, path, False)
                    visit(statement.then, (*path, (id(statement), "then")))
                    visit(statement.otherwise, (*path, (id(statement), "otherwise")))
                case low.Loop():
                    slots = ("body", "step", "test") if statement.is_do else ("test", "body", "step")
                    for slot in slots:
                        inside = (*path, (id(statement), slot))
                        visit(getattr(statement, slot), inside)
                        if slot == "test":
                            meet(statement.condition, inside, False)
                case low.Scope():
                    visit(statement.body, (*path, (id(statement), "body")))

    visit(kernel.body, (ROOT,))
    return {register: life.path[-1] if life.starts_set == life.path else ROOT for register, life in lives.items()}


def _occurrences(statement: low.Assign | low.Store | low.Atomic | low.Barrier) -> Iterator[tuple[low.Register, bool]]:
    """Registers in the order in which they are read and set; whether all of it is set."""
    for expression in low.expressions_of(statement):
        for register in registers_of(expression):
            yield register, False
    if isinstance(statement, low.Assign):
        yield statement.register, statement.components is None
    elif isinstance(statement, low.Atomic) and statement.result is not None:
        yield statement.result, True


def registers_of(expression: low.Expression) -> set[low.Register]:
    return {part.register for part in low.walk(expression) if isinstance(part, low.Read)}


def assigned(body: tuple[low.Statement, ...]) -> set[low.Register]:
    """Registers that statements change."""
    found: set[low.Register] = set()
    for block in low.straights(body):
        for statement in block.statements:
            found |= {register for register, _ in _sets(statement)}
    return found


def _sets(statement: low.Assign | low.Store | low.Atomic | low.Barrier) -> Iterator[tuple[low.Register, bool]]:
    if isinstance(statement, low.Assign):
        yield statement.register, True
    elif isinstance(statement, low.Atomic) and statement.result is not None:
        yield statement.result, True


def escapes(statements: tuple[low.Statement, ...]) -> set[str]:
    """Labels of surrounding loops and scopes that statements leave."""
    found: set[str] = set()
    for statement in statements:
        match statement:
            case low.Leave():
                found.add(statement.label)
            case low.If():
                found |= escapes(statement.then) | escapes(statement.otherwise)
            case low.Loop():
                inside = escapes(statement.test) | escapes(statement.body) | escapes(statement.step)
                found |= inside - {statement.label}
            case low.Scope():
                found |= escapes(statement.body) - {statement.label}
    return found
