"""The home of each register is the list of statements of a kernel in which it lives.

An assignment under a mask must keep the values of lanes that are not active. But mostly nobody reads them again: a
variable that is declared within a branch is only read there. The list of statements that holds all of a register's
occurrences, of which the first one sets all of it, is its home: lanes that are not active in that list never read it.
So an assignment need merge only if lanes that are active at home are not active where it stands.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import walks
from perfmodel.opencl_c.visitor import child_fields

ListKey: TypeAlias = tuple[int, str]
"""A list of statements is known by the identity of the statement that it belongs to, and the name of its field."""
ROOT: ListKey = (0, "")


@dataclass
class _Life:
    path: tuple[ListKey, ...]
    starts_set: tuple[ListKey, ...] | None


def homes(kernel: low.LoweredKernel) -> dict[low.Register, ListKey]:
    """Returns the home of each register; the whole kernel where no smaller one is sure."""
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
            if isinstance(statement, low.Straight):
                for inner in statement.statements:
                    for register in walks.registers_read(inner):
                        meet(register, path, False)
                    if (changed := walks.register_set(inner)) is not None:
                        meet(changed, path, not isinstance(inner, low.Assign) or inner.components is None)
                continue
            if isinstance(statement, low.If):
                meet(statement.condition, path, False)
            for slot in _slots(statement):
                inside = (*path, (id(statement), slot))
                visit(getattr(statement, slot), inside)
                if isinstance(statement, low.Loop) and slot == "test":
                    meet(statement.condition, inside, False)

    visit(kernel.body, (ROOT,))
    return {register: life.path[-1] if life.starts_set == life.path else ROOT for register, life in lives.items()}


def _slots(statement: low.Statement) -> tuple[str, ...]:
    """Returns the names of a statement's lists of statements, in the order in which they are first executed."""
    slots = child_fields(type(statement))
    return (*slots[1:], slots[0]) if isinstance(statement, low.Loop) and statement.is_do else slots
