"""Expressions of a kernel become Python text on numpy values.

What does not change in a loop is computed in front of it, the outermost loop that allows it. This pays twice: addresses
whose lanes' part stays the same array are recognized at once (see `access_handlers`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from perfmodel.basics.errors import EmulationError
from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import walks
from perfmodel.opencl_c.builtins import binary, conversion, function, reinterpretation, unary
from perfmodel.opencl_c.emulation.address_space import constant_address
from perfmodel.opencl_c.emulation.lanes import Values
from perfmodel.opencl_c.syntax import Place
from perfmodel.opencl_c.types import LONG, Pointer, Scalar, Type, Vector, element_of, width_of
from perfmodel.opencl_c.visitor import Dispatch

_INFIX: Mapping[Any, str] = {
    np.add: "+",
    np.subtract: "-",
    np.multiply: "*",
    np.true_divide: "/",
    np.bitwise_and: "&",
    np.bitwise_or: "|",
    np.bitwise_xor: "^",
    np.less: "<",
    np.less_equal: "<=",
    np.greater: ">",
    np.greater_equal: ">=",
    np.equal: "==",
    np.not_equal: "!=",
}
"""Operators are quicker than functions for numpy scalars, and compute the same."""


@dataclass
class LoopFrame:
    """A frame is a loop whose code is being made: what it changes, and what is computed in front of it."""

    assigned: Set[low.Register]
    lines: list[str] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)


class Expressions:
    """Makes the text, and gathers what it refers to.

    Attributes:
        namespace: functions and constants by the names in the text.
        accesses: of each number in the text (``load3``), the access and the scale of its index.
        work_items: names of the values of work-item functions.
        divisions: where integers are divided, by number.
    """

    def __init__(self, names: Mapping[low.Register, str]) -> None:
        self.names = names
        self.namespace: dict[str, Any] = {
            "choose": choose,
            "join": join,
            "pick": pick,
            "int64": np.int64,
        }
        self.accesses: list[tuple[low.Access, int]] = []
        self.work_items: dict[tuple[str, int | None], str] = {}
        self.divisions: list[Place] = []
        self.loops: list[LoopFrame] = []
        self.place = Place("", 0, 0)
        self.mask = ""
        self._hoisted = 0
        self._bound: dict[tuple[str, object], str] = {}
        self._summaries: dict[int, tuple[low.Expression, frozenset[low.Register], bool]] = {}

    # --- what may be moved out of loops

    def _summary(self, expression: low.Expression) -> tuple[frozenset[low.Register], bool]:
        """Returns the registers that it reads, and whether it may be computed at another time."""
        known = self._summaries.get(id(expression))
        if known is None:
            registers: frozenset[low.Register] = frozenset()
            movable = not isinstance(expression, low.Load) and not low.may_divide_by_zero(expression)
            if isinstance(expression, low.Read):
                registers = frozenset((expression.register,))
            for part in walks.parts(expression):
                inner, inner_movable = self._summary(part)
                registers |= inner
                movable &= inner_movable
            # The expression is kept too, so that nothing else gets its identity.
            known = self._summaries[id(expression)] = (expression, registers, movable)
        return known[1], known[2]

    def _outermost(self, expression: low.Expression) -> int:
        """Returns the first of the loops around such that neither it nor one within it changes the expression."""
        registers, movable = self._summary(expression)
        position = len(self.loops)
        while movable and position and not (self.loops[position - 1].assigned & registers):
            position -= 1
        return position

    def is_invariant(self, expression: low.Expression) -> bool:
        return self._outermost(expression) < len(self.loops)

    # --- text

    def text(self, expression: low.Expression) -> str:
        trivial = isinstance(expression, low.Constant | low.Read | low.Address) or (
            isinstance(expression, low.WorkItem)
            and (expression.axis is None or isinstance(expression.axis, low.Constant))
        )
        position = len(self.loops) if trivial else self._outermost(expression)
        if position == len(self.loops):
            return self._text(expression)
        inner, self.loops = self.loops[position:], self.loops[:position]
        try:
            text = self._text(expression)
        finally:
            self.loops = self.loops + inner
        frame = inner[0]
        name = frame.names.get(text)
        if name is None:
            self._hoisted += 1
            name = frame.names[text] = f"h{self._hoisted}"
            frame.lines.append(f"{name} = {text}")
        return name

    _text = Dispatch[[], str](low.Expression)

    @_text.on(low.Read)
    def _read(self, expression: low.Read) -> str:
        return self.names[expression.register]

    @_text.on(low.Unary)
    def _unary(self, expression: low.Unary) -> str:
        operand = self.text(expression.operand)
        if expression.operator in "-~":
            return f"({expression.operator}{operand})"
        form = unary(expression.operator, expression.operand.type)
        return f"(~{operand})" if form is np.logical_not else f"{self._bind('unary', form)}({operand})"

    @_text.on(low.Select)
    def _select(self, expression: low.Select) -> str:
        condition, then, otherwise = map(self.text, walks.parts(expression))
        if isinstance(expression.condition.type, Vector):
            condition = f"({condition} < 0)"
        return f"choose({condition}, {then}, {otherwise})"

    @_text.on(low.Reinterpret)
    def _reinterpret(self, expression: low.Reinterpret) -> str:
        source, target = plain(expression.operand.type), plain(expression.type)
        form = reinterpretation(source, target)
        operand = self.text(expression.operand)
        return operand if source == target else f"{self._bind('as', form)}({operand})"

    @_text.on(low.Join)
    def _join(self, expression: low.Join) -> str:
        return f"join({', '.join(map(self.text, expression.parts))})"

    @_text.on(low.Pick)
    def _pick(self, expression: low.Pick) -> str:
        which, vector = expression.components, self.text(expression.vector)
        return f"pick({vector}, {which[0]})" if len(which) == 1 else f"{vector}[{list(which)}]"

    @_text.on(low.Call)
    def _call(self, expression: low.Call) -> str:
        types = tuple(plain(argument.type) for argument in expression.arguments)
        form = function(expression.function, plain(expression.type), types)
        name = self._bind(re.sub(r"\W", "_", expression.function), form, (expression.function, str(types)))
        return f"{name}({', '.join(map(self.text, expression.arguments))})"

    @_text.on(low.Address)
    def _address(self, expression: low.Address) -> str:
        object_ = expression.object
        offset = constant_address(object_.offset) if object_.is_of_program else object_.offset
        return self._number(np.int64(offset))

    @_text.on(low.Load)
    def _load(self, expression: low.Load) -> str:
        return self.access("load", expression.access, expression.pointer, self.mask)

    @_text.on(low.ReadImage)
    def _read_image(self, expression: low.ReadImage) -> str:
        sampler = "int64(0)" if expression.sampler is None else self.text(expression.sampler)
        return self.image("load", expression.access, self.mask, self.text(expression.coordinates), sampler)

    def image(self, kind: str, access: low.Access, *arguments: str) -> str:
        self.accesses.append((access, 0))
        return f"{kind}{len(self.accesses) - 1}({', '.join(arguments)})"

    @_text.on(low.ImageSize)
    def _image_size(self, expression: low.ImageSize) -> str:
        return f"image_size({expression.image.name!r}, {expression.function!r})"

    @_text.on(low.Constant)
    def constant(self, constant: low.Constant) -> str:
        type_ = plain(constant.type)
        dtype = element_of(type_).numpy
        if dtype.kind in "iu":
            bits = 8 * dtype.itemsize
            value = int(constant.value) & ((1 << bits) - 1)
            number = np.array(value, f"u{dtype.itemsize}").view(dtype)[()]
        else:
            number = dtype.type(constant.value)
        if isinstance(type_, Vector):
            return self._number(np.full((type_.width, 1), number))
        return self._number(number)

    def _number(self, number: Any) -> str:
        key = f"{number.dtype}:{number.shape}:{number.tobytes().hex()}"
        return self._bind("c", number, key)

    def _bind(self, stem: str, value: object, key: object = None) -> str:
        """Returns a name in the text for something."""
        found = self._bound.get((stem, key or id(value)))
        if found is None:
            found = self._bound[stem, key or id(value)] = f"{stem}_{len(self._bound)}"
            self.namespace[found] = value
        return found

    @_text.on(low.WorkItem)
    def _work_item(self, expression: low.WorkItem) -> str:
        axis = expression.axis
        if axis is not None and not isinstance(axis, low.Constant):
            return f"work_item({expression.function!r}, {self.text(axis)})"
        key = (expression.function, None if axis is None else int(axis.value))
        stem = expression.function.removeprefix("get_")
        return self.work_items.setdefault(key, stem if key[1] is None else f"{stem}_{key[1]}")

    @_text.on(low.Binary)
    def _binary(self, expression: low.Binary) -> str:
        operator, type_ = expression.operator, plain(expression.left.type)
        left, right = self.text(expression.left), self.text(expression.right)
        form = binary(operator, type_)
        if infix := _INFIX.get(form):
            return f"({left} {infix} {right})"
        if operator in ("<<", ">>") and isinstance(expression.right, low.Constant):
            dtype = element_of(type_).numpy
            count = int(expression.right.value) & (8 * dtype.itemsize - 1)
            return f"({left} {operator} {self._number(dtype.type(count))})"
        name = self._bind("binary", form, (operator, str(type_)))
        if low.may_divide_by_zero(expression):
            self.divisions.append(self.place)
            return f"divide({self.mask}, {name}, {left}, {right}, {len(self.divisions) - 1})"
        return f"{name}({left}, {right})"

    @_text.on(low.Convert)
    def _convert(self, expression: low.Convert) -> str:
        source, target = plain(expression.operand.type), plain(expression.type)
        operand = self.text(expression.operand)
        if source == target:
            return operand
        before, after = element_of(source).numpy, element_of(target).numpy
        same_width = width_of(source) == width_of(target) and isinstance(source, Vector) == isinstance(target, Vector)
        if same_width and before.kind in "biu" and after.kind in "iu" and not expression.saturate:
            return f"{operand}.astype({self._bind('t', after, after.str)})"
        form = conversion(source, target, expression.rounding, expression.saturate)
        key = (str(source), str(target), expression.rounding, expression.saturate)
        return f"{self._bind('convert', form, key)}({operand})"

    @_text.on(low.Offset)
    def _offset(self, expression: low.Offset) -> str:
        pointer = self.text(expression.pointer)
        if isinstance(expression.index, low.Constant):
            moved = (int(expression.index.value) * expression.scale + (1 << 63)) % (1 << 64) - (1 << 63)
            return f"({pointer} + {self._number(np.int64(moved))})" if moved else pointer
        index = self.text(expression.index)
        if plain(expression.index.type) != LONG:
            index += ".astype(int64)"
        return f"({pointer} + {index})" if expression.scale == 1 else f"({pointer} + {index} * {expression.scale})"

    # --- memory

    def access(self, kind: str, access: low.Access, pointer: low.Expression, *arguments: str) -> str:
        """Returns the call that carries out an access, with the parts of its address apart."""
        where, scale = self._parts(pointer)
        self.accesses.append((access, scale))
        number = len(self.accesses) - 1
        return f"{kind}{number}({', '.join((*arguments, *where))})"

    def _parts(self, pointer: low.Expression) -> tuple[list[str], int]:
        if not isinstance(pointer, low.Offset) or isinstance(pointer.index, low.Constant):
            return [self.text(pointer)], 1
        start = self.text(pointer.pointer)
        if not self.loops or self.is_invariant(pointer.index):
            return [start, self.text(pointer.index)], pointer.scale
        terms = _terms(pointer.index)
        fixed = [term for term in terms if self.is_invariant(term) or isinstance(term, low.Constant)]
        moving = [term for term in terms if term not in fixed]
        if not fixed:
            return [start, self.text(pointer.index)], pointer.scale
        return [start, self.text(_sum(fixed)), self.text(_sum(moving))], pointer.scale


def plain(type_: Type) -> Scalar | Vector:
    """Returns the numbers that stand for a type: pointers are 64-bit integers."""
    if isinstance(type_, Pointer):
        return LONG
    if isinstance(type_, Scalar | Vector):
        return type_
    raise EmulationError(f"the emulation has no values of type {type_}")


def _terms(expression: low.Expression) -> list[low.Expression]:
    """Returns the terms of a sum of integers of one type; these wrap around, so that their order does not matter."""
    if isinstance(expression, low.Binary) and expression.operator == "+":
        return _terms(expression.left) + _terms(expression.right)
    return [expression]


def _sum(terms: list[low.Expression]) -> low.Expression:
    result = terms[0]
    for term in terms[1:]:
        result = low.Binary(result.type, "+", result, term)
    return result


def choose(condition: Values, then: Values, otherwise: Values) -> Values:
    if not condition.ndim:
        return then if condition else otherwise
    return np.where(condition, then, otherwise)


def join(*parts: Values) -> Values:
    """Returns a vector of scalars and vectors."""
    rows = [part if part.ndim == 2 else np.atleast_1d(part)[np.newaxis] for part in parts]
    lanes = max(row.shape[1] for row in rows)
    return np.concatenate([np.broadcast_to(row, (len(row), lanes)) for row in rows])


def pick(vector: Values, component: int) -> Values:
    row = vector[component]
    return row[0] if len(row) == 1 else row
