"""Says by how much an address moves from one iteration of a loop to the next, wherever it begins."""

from __future__ import annotations

from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import origins, walks
from perfmodel.opencl_c.static.loop_counters import parts_of, whole_number

_DEEPEST = 12
"""Registers that follow from each other in an iteration are gone through up to here."""
_OFTEN = 64
"""A remainder by less than this is begun anew so often that it is no step."""


class Steps:
    """Knows the steps of one loop: of the registers that it moves, and of what follows from them in an iteration."""

    def __init__(self, loop: low.Loop) -> None:
        parts = parts_of(loop)
        self._set = origins.setting(parts)
        self._set_always = origins.setting(walks.always(parts))
        self._known: dict[tuple[low.Register, int], int | None] = {}  # by how deep a register was met

    def of(self, value: low.Expression, depth: int = 0) -> int | None:
        """Returns by what number a value (an address: in bytes) grows in each iteration; None if that is not known."""
        match value:
            case low.Read():
                return self._of_register(value.register, depth)
            case low.Offset():
                pointer, index = self.of(value.pointer, depth), self.of(value.index, depth)
                return None if pointer is None or index is None else pointer + index * value.scale
            case low.Convert():
                return self.of(value.operand, depth)
            case low.Binary():
                return self._of_both(value, depth)
            case _:
                steps = [self.of(part, depth) for part in walks.parts(value)]
                return 0 if all(step == 0 for step in steps) else None

    def _of_register(self, register: low.Register, depth: int) -> int | None:
        if register not in self._set:
            return 0
        value = self._given(register)
        if value is None or depth == _DEEPEST:
            return None
        if (register, depth) not in self._known:  # else ways that part and meet again would be gone through many times
            moved = self._beyond(value, register)
            self._known[register, depth] = self.of(value, depth + 1) if moved is None else moved
        return self._known[register, depth]

    def _given(self, register: low.Register) -> low.Expression | None:
        """Returns what every iteration gives a register, once."""
        set_by = self._set[register]
        if len(set_by) > 1 or set_by != self._set_always.get(register):
            return None
        (statement,) = set_by
        return statement.value if isinstance(statement, low.Assign) and not statement.components else None

    def _beyond(self, value: low.Expression, register: low.Register, depth: int = 0) -> int | None:
        """Returns how much more a value is than a register was before; None if it is no such sum."""
        match value:
            case low.Read() if value.register is register:
                return 0
            case low.Read() if value.register in self._set and depth < _DEEPEST:
                given = self._given(value.register)
                return None if given is None else self._beyond(given, register, depth + 1)
            case low.Convert():
                return self._beyond(value.operand, register, depth)
            case low.Offset():
                before, number = self._beyond(value.pointer, register, depth), whole_number(value.index)
                return None if before is None or number is None else before + number * value.scale
            case low.Binary(operator="+" | "-"):
                before, number = self._beyond(value.left, register, depth), whole_number(value.right)
                if before is None or number is None:
                    return None
                return before + number if value.operator == "+" else before - number
            case low.Binary(operator="&" | "%") if _seldom_goes_around(value):
                return self._beyond(value.left, register, depth)
            case _:
                return None

    def _of_both(self, value: low.Binary, depth: int) -> int | None:
        left, right = self.of(value.left, depth), self.of(value.right, depth)
        if left is None or right is None:
            return None
        number, other = whole_number(value.right), whole_number(value.left)
        match value.operator:
            case "+":
                return left + right
            case "-":
                return left - right
            case "*" if number is not None:
                return left * number
            case "*" if other is not None:
                return right * other
            case "<<" if number is not None and 0 <= number < 64:
                return left << number
            case "&" | "%" if right == 0 and _seldom_goes_around(value):
                return left
            case _:
                return 0 if left == right == 0 else None


def _seldom_goes_around(value: low.Binary) -> bool:
    number = whole_number(value.right)
    return number is None or number >= _OFTEN
