"""Values follow from what registers and memory were given before: a value is followed back to all of that here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import walks
from perfmodel.opencl_c.visitor import walk

Origin: TypeAlias = low.Expression | low.Simple


def setting(body: Iterable[low.Statement]) -> dict[low.Register, list[low.Simple]]:
    """Returns the statements that give each register a value, be it to some of its components only."""
    found: dict[low.Register, list[low.Simple]] = defaultdict(list)
    for statement in walks.simple_statements(body):
        if (register := walks.register_set(statement)) is not None:
            found[register].append(statement)
    return found


class Origins:
    """Follows values back through the statements of a kernel or of a part of it.

    Conditions under which registers get their values are left out.
    """

    def __init__(self, body: tuple[low.Statement, ...]) -> None:
        self._setting = setting(body)
        self._storing: dict[str | None, list[low.Simple]] = defaultdict(list)
        for statement in walks.simple_statements(body):
            if isinstance(statement, low.Store | low.Atomic) and _is_own(statement.access):
                self._storing[statement.access.variable].append(statement)

    def given_by(self, register: low.Register) -> tuple[low.Simple, ...]:
        """Returns the statements that give a register a value."""
        return tuple(self._setting.get(register, ()))

    def behind(
        self, values: Iterable[low.Expression | low.Register], *, through_memory: bool = False
    ) -> Iterator[Origin]:
        """Iterates over the expressions that values follow from, themselves included, and the statements between.

        Args:
            through_memory: what is loaded from local and private memory follows from all that is stored there, and
                what atomics and work-items together give, from their operands.
        """
        seen: set[low.Register | str | None] = set()
        waiting: list[Origin] = [
            low.Read(each.type, each) if isinstance(each, low.Register) else each for each in values
        ]
        while waiting:
            origin = waiting.pop()
            is_end = isinstance(origin, low.Atomic | low.Collective) and not through_memory
            for part in (origin,) if is_end else walk(origin):
                yield part
                if isinstance(part, low.Read) and part.register not in seen:
                    seen.add(part.register)
                    waiting += self._setting.get(part.register, ())
                elif through_memory and isinstance(part, low.Load | low.Atomic) and _is_own(part.access):
                    variable = part.access.variable
                    if variable not in seen:
                        seen.add(variable)
                        waiting += self._storing.get(variable, ())

    def registers_behind(self, values: Iterable[low.Expression | low.Register]) -> frozenset[low.Register]:
        """Returns the registers that values follow from, but for those behind memory."""
        return frozenset(each.register for each in self.behind(values) if isinstance(each, low.Read))


def _is_own(access: low.Access) -> bool:
    return access.space in ("local", "private")
