"""A lowered expression is a function of sizes, coordinates and loop counters, where that can be told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from perfmodel.counting.symbolic import (
    EVERYWHERE,
    NOWHERE,
    ONE,
    ZERO,
    Bounds,
    Pieces,
    both,
    chosen,
    combined,
    compared,
    divided_by_size,
    either,
    number,
    opposite,
    plain,
)
from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import walks
from perfmodel.opencl_c.arithmetic import COMPARISONS, number_as
from perfmodel.opencl_c.static.constant_tables import ConstantTables
from perfmodel.opencl_c.static.known_numbers import Known, computed, known
from perfmodel.opencl_c.static.values import (
    Components,
    Environment,
    PointsTo,
    Truth,
    Value,
    Wrapped,
    of_components,
    of_each,
    short,
)
from perfmodel.opencl_c.static.whole_numbers import WholeNumbers
from perfmodel.opencl_c.types import BOOL, Pointer, Scalar, Type, Vector, element_of, is_float, width_of
from perfmodel.opencl_c.visitor import Dispatch

MOST = 1 << 62
"""Larger numbers are no sizes, and would not fit into the coefficients of counts."""

POINTER_BYTES = 8


class Evaluator:
    """Evaluates expressions in an environment.

    Args:
        work_item: value of ``get_local_id`` and its like, by function and axis.
        bounds: of all names.
        is_never: whether a condition holds nowhere where the kernel is now.
        tables: what is in constant memory.
    """

    def __init__(
        self,
        work_item: Mapping[tuple[str, int], Pieces],
        bounds: Bounds,
        is_never: Callable[[str], bool],
        tables: ConstantTables,
    ) -> None:
        self.work_item, self.bounds, self.is_never, self.tables = work_item, bounds, is_never, tables
        self.whole = WholeNumbers(bounds, is_never)
        self.environment: Environment = {}

    def __call__(self, expression: low.Expression) -> Value:
        return short(self._value(expression))

    _value = Dispatch[[], Value](low.Expression)

    @_value.on(low.ReadImage, low.ImageSize)
    def _unknown(self, expression: low.ReadImage | low.ImageSize) -> Value:
        return None

    @_value.on(low.Load)
    def _load(self, expression: low.Load) -> Value:
        type_ = expression.type
        if expression.access.space != "constant" or not isinstance(type_, Scalar | Vector):
            return None
        place = self(expression.pointer)
        if not isinstance(place, PointsTo):
            return None
        if isinstance(type_, Scalar):
            return self._element(place, type_, 0)
        parts = [self._element(place, type_.element, component) for component in range(type_.width)]
        numbers = [part for part in parts if isinstance(part, Known)]
        if len(numbers) == type_.width:
            return known([number.value for number in numbers], type_)
        values = tuple(part for part in parts if isinstance(part, Pieces))
        return Components(values) if len(values) == type_.width else None

    def _element(self, place: PointsTo, element: Scalar, component: int) -> Pieces | Known | None:
        """Returns what stands in constant memory so many elements behind a place."""
        offset = place.offset.map(lambda at: at + number(component * element.size))
        return self.tables.value(place.variable, offset, element, self.bounds)

    @_value.on(low.Join)
    def _joined(self, expression: low.Join) -> Value:
        values = [self(part) for part in expression.parts]
        if is_float(expression.type):
            return self._number(expression, values)
        parts = [
            of_components(value, width_of(part.type)) for value, part in zip(values, expression.parts, strict=True)
        ]
        return Components(tuple(component for part in parts for component in part))

    @_value.on(low.Pick)
    def _picked(self, expression: low.Pick) -> Value:
        vector = self(expression.vector)
        if not isinstance(vector, Components):
            return self._number(expression, [vector])
        picked = tuple(vector.values[component] for component in expression.components)
        return picked[0] if len(picked) == 1 else Components(picked)

    def _number(self, expression: low.Expression, operands: Sequence[Value]) -> Value:
        """Returns what is made of numbers, floating-point ones among them, that are known; None where one is not."""
        numbers = []
        for part, operand in zip(walks.parts(expression), operands, strict=True):
            if isinstance(operand, Pieces) and operand.single is not None and operand.single.constant is not None:
                wrapped = number_as(operand.single.constant, element_of(part.type))
                operand = None if wrapped is None else known(wrapped, part.type)
            if not isinstance(operand, Known):
                return None
            numbers.append(operand)
        found = computed(expression, numbers)
        if isinstance(found, bool):
            return Truth(EVERYWHERE if found else NOWHERE)
        if isinstance(found, Known) and isinstance(found.type, Scalar) and not found.type.is_float:
            return plain(number(int(found.value)))
        return found

    @_value.on(low.Read)
    def _read(self, expression: low.Read) -> Value:
        return self.environment.get(expression.register)

    @_value.on(low.Address)
    def _address(self, expression: low.Address) -> Value:
        return PointsTo(expression.object.name, plain(ZERO))

    @_value.on(low.Reinterpret)
    def _reinterpret(self, expression: low.Reinterpret) -> Value:
        inner = self(expression.operand)
        return inner if isinstance(expression.type, Pointer) and isinstance(inner, PointsTo) else None

    @_value.on(low.Select)
    def _select(self, expression: low.Select) -> Value:
        return self.select(*map(self, walks.parts(expression)))

    @_value.on(low.Convert)
    def _convert(self, expression: low.Convert) -> Value:
        operand = self(expression.operand)
        if isinstance(operand, Known) or (isinstance(operand, Pieces) and is_float(expression.type)):
            return self._number(expression, [operand])
        return self._converted(operand, expression.operand.type, expression.type)

    @_value.on(low.Constant)
    def _constant(self, constant: low.Constant) -> Value:
        if constant.type == BOOL:
            return Truth(EVERYWHERE if constant.value else NOWHERE)
        if is_float(constant.type):
            return known(constant.value, constant.type)
        if isinstance(constant.type, Pointer):
            return None
        whole = int(constant.value)
        if element_of(constant.type).dtype == "uint64" and whole >= 1 << 63:
            whole -= 1 << 64  # a negative number that has become unsigned is a step back
        if abs(whole) >= MOST:
            return None
        value = plain(number(whole))
        return Components((value,) * constant.type.width) if isinstance(constant.type, Vector) else value

    @_value.on(low.WorkItem)
    def _work_item(self, expression: low.WorkItem) -> Value:
        if expression.axis is None:
            return self.work_item.get((expression.function, 0))
        axis = self(expression.axis)
        at = axis.single.constant if isinstance(axis, Pieces) and axis.single is not None else None
        if at is None:
            return None
        is_id = expression.function.endswith(("_id", "_offset"))
        return self.work_item.get((expression.function, at), plain(ZERO if is_id else ONE))

    @_value.on(low.Unary)
    def _unary(self, expression: low.Unary) -> Value:
        operand = self(expression.operand)
        if isinstance(operand, Components):
            element = element_of(expression.type)
            return of_each(lambda value: self.whole.unary(expression.operator, value, element), operand)
        if isinstance(operand, Truth):
            return Truth(opposite(operand.text))
        if not isinstance(operand, Pieces):
            return self._number(expression, [operand])
        return self.whole.unary(expression.operator, operand, expression.type)

    @_value.on(low.Binary)
    def _binary(self, expression: low.Binary) -> Value:
        operator, left, right = expression.operator, self(expression.left), self(expression.right)
        if isinstance(left, Components) and isinstance(right, Components):
            element = element_of(expression.type)
            if operator in COMPARISONS:  # -1 where it holds
                return None
            return of_each(lambda a, b: self.whole.binary(operator, a, b, element), left, right)
        if isinstance(left, Truth) and isinstance(right, Truth):
            if operator == "&":
                return Truth(both(left.text, right.text))
            if operator == "|":
                return Truth(either(left.text, right.text))
            return None
        if expression.type == BOOL and operator in "&|":  # one side is not known
            known = left if isinstance(left, Truth) else right
            if isinstance(known, Truth) and known.text == (NOWHERE if operator == "&" else EVERYWHERE):
                return known
            return None
        if isinstance(left, PointsTo) and isinstance(right, PointsTo) and left.variable == right.variable:
            left, right = left.offset, right.offset
        is_number = isinstance(expression.type, Scalar) and not expression.type.is_float
        if is_number and operator in "&*" and plain(ZERO) in (left, right):  # whatever the other is
            return plain(ZERO)
        if isinstance(left, Wrapped) or isinstance(right, Wrapped):
            return self.whole.around(operator, left, right, expression.type)
        if not isinstance(left, Pieces) or not isinstance(right, Pieces):
            return self._number(expression, [left, right])
        if expression.type == BOOL:
            text = self.whole.compared(operator, left, right) or self._compared_by_multiples(operator, left, right)
            return None if text is None else Truth(text)
        return self.whole.binary(operator, left, right, expression.type)

    def _compared_by_multiples(self, operator: str, left: Pieces, right: Pieces) -> str | None:
        """Returns when values compare so that differ by a multiple of a size and less than it: ``i + j * n < 8 * n`` is
        j < 8 where i is from 0 to n - 1."""
        if operator not in ("<", "<=", ">", ">=") or left.single is None or right.single is None:
            return None
        difference = right.single - left.single if operator == ">" else left.single - right.single
        parts = divided_by_size(difference - ONE if operator == "<=" else difference)
        if parts is None:
            return None
        size, times, rest = (part.isl() for part in parts)
        if size is None or times is None or rest is None or not self.is_never(f"{rest} < 0 or {rest} >= {size}"):
            return None
        return f"{times} {'>=' if operator == '>=' else '<'} 0"

    def _converted(self, value: Value, source: Type, target: Type) -> Value:
        if isinstance(target, Vector):
            if not isinstance(value, Components):
                value = Components(of_components(value, 1) * target.width)
            element, wide = element_of(source), target.element
            return of_each(lambda each: self._converted(each, element, wide), value)
        if not isinstance(target, Scalar) or target.is_float or not isinstance(source, Scalar):
            return None
        if isinstance(value, Truth):
            return value if target == BOOL else chosen(value.text, plain(ONE), plain(ZERO))
        if isinstance(value, Wrapped) and target.size <= source.size:
            value = value.value
        if not isinstance(value, Pieces):
            return None
        if target == BOOL:
            text = compared("!=", value, plain(ZERO))
            return None if text is None else Truth(text)
        if value.single is not None and (constant := value.single.constant) is not None:
            wrapped = number_as(constant, target)
            return None if wrapped is None else plain(number(int(wrapped)))
        is_wider = target.size > source.size or (target.size == source.size and target.is_signed == source.is_signed)
        if is_wider and (target.is_signed or not source.is_signed):
            return value
        return self.whole.fitting(value, target)

    def select(self, condition: Value, then: Value, otherwise: Value) -> Value:
        """Returns one of two values; also what the two ways to here made of a variable."""
        return short(self._selected(condition, then, otherwise))

    def _selected(self, condition: Value, then: Value, otherwise: Value) -> Value:
        if then == otherwise:
            return then
        if not isinstance(condition, Truth):
            return None
        text = condition.text
        if text in (EVERYWHERE, NOWHERE):
            return then if text == EVERYWHERE else otherwise
        if isinstance(then, Pieces) and isinstance(otherwise, Pieces):
            return chosen(text, then, otherwise)
        if isinstance(then, Pieces | Wrapped) and isinstance(otherwise, Pieces | Wrapped):
            inner = chosen(text, *(each.value if isinstance(each, Wrapped) else each for each in (then, otherwise)))
            return None if inner is None else Wrapped(inner)
        if isinstance(then, Components) and isinstance(otherwise, Components):
            return of_each(lambda a, b: self._selected(condition, a, b), then, otherwise)
        if isinstance(then, Truth) and isinstance(otherwise, Truth):
            return Truth(either(both(text, then.text), both(opposite(text), otherwise.text)))
        if isinstance(then, PointsTo) and isinstance(otherwise, PointsTo) and then.variable == otherwise.variable:
            offset = chosen(text, then.offset, otherwise.offset)
            return None if offset is None else PointsTo(then.variable, offset)
        return None

    @_value.on(low.Offset)
    def _offset(self, expression: low.Offset) -> Value:
        pointer, index = self(expression.pointer), self(expression.index)
        if isinstance(index, Wrapped) and expression.index.type.size == POINTER_BYTES:  # the sum wraps around as well
            index = index.value
        if not isinstance(pointer, PointsTo) or not isinstance(index, Pieces):
            return None
        offset = combined(pointer.offset, index, lambda a, b: a + b.scaled(expression.scale))
        return None if offset is None else PointsTo(pointer.variable, offset)

    @_value.on(low.Call)
    def _call(self, expression: low.Call) -> Value:
        values: list[Any] = [self(argument) for argument in expression.arguments]
        if isinstance(expression.type, Vector) and not is_float(expression.type):
            element, width = expression.type.element, expression.type.width
            operands = [of_components(v, width_of(a.type)) for v, a in zip(values, expression.arguments, strict=True)]
            if not operands or any(len(components) not in (1, width) for components in operands):
                return None  # shuffles, and what takes pointers
            vectors = [Components(each if len(each) == width else each * width) for each in operands]
            return of_each(lambda *each: self.whole.call(expression.function, list(each), element), *vectors)
        if not values or not all(isinstance(value, Pieces) for value in values):
            return self._number(expression, values) if any(isinstance(value, Known) for value in values) else None
        return self.whole.call(expression.function, values, expression.type)
