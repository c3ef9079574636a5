"""A lowered expression is a function of sizes, coordinates and loop counters, where that can be told."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from perfmodel.counting.symbolic import (
    EVERYWHERE,
    NOWHERE,
    ONE,
    ZERO,
    Bounds,
    Pieces,
    Polynomial,
    both,
    chosen,
    combined,
    compared,
    either,
    number,
    opposite,
    plain,
    quotient,
    remainder,
)
from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c.arithmetic import COMPARISONS, number_as
from perfmodel.opencl_c.static.constant_tables import ConstantTables
from perfmodel.opencl_c.static.known_numbers import Known, computed, known
from perfmodel.opencl_c.types import BOOL, Pointer, Scalar, Type, Vector, element_of, is_float, width_of
from perfmodel.opencl_c.visitor import Dispatch


@dataclass(frozen=True)
class Truth:
    """A truth is a condition, in isl's notation."""

    text: str


@dataclass(frozen=True)
class PointsTo:
    """A pointer's value is a place in an array or memory object, in bytes from its start."""

    variable: str
    offset: Pieces


@dataclass(frozen=True)
class Components:
    """A vector of whole numbers has a value for each of its components."""

    values: tuple[Pieces | None, ...]


@dataclass(frozen=True)
class Wrapped:
    """An unsigned number that may have been below zero is known but for a multiple of 2 to the power of its bits."""

    value: Pieces


Value: TypeAlias = Pieces | Wrapped | Truth | PointsTo | Components | Known | None
"""A value is None where it depends on data, or cannot be written as piecewise polynomial with isl's conditions."""

MOST = 1 << 62
"""Larger numbers are no sizes, and would not fit into the coefficients of counts."""

MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""The operators that say the same with their sides exchanged."""

POINTER_BYTES = 8
SMALL = 1 << 20
"""Numbers that are this near to a multiple of 2^bits were negative before they became unsigned of so many bits."""

MOST_TEXT = 10_000
"""No value has conditions of more characters: iterations that all depend on those before can double them."""

Environment: TypeAlias = dict[low.Register, Value]


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
        self.work_item, self.bounds, self.is_never = work_item, bounds, is_never
        self.tables = tables
        self.environment: Environment = {}

    def __call__(self, expression: low.Expression) -> Value:
        return _short(self._value(expression))

    _value = Dispatch[[], Value](low.Expression)

    @_value.on(low.ReadImage, low.ImageSize)
    def _unknown(self, expression: low.ReadImage | low.ImageSize) -> Value:
        return None

    @_value.on(low.Load)
    def _load(self, expression: low.Load) -> Value:
        if expression.access.space != "constant" or not isinstance(expression.type, Scalar):
            return None
        place = self(expression.pointer)
        if not isinstance(place, PointsTo):
            return None
        return self.tables.value(place.variable, place.offset, expression.type, self.bounds)

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
        for part, operand in zip(low.parts(expression), operands, strict=True):
            if isinstance(operand, Pieces) and operand.single is not None and operand.single.constant is not None:
                operand = known(operand.single.constant, part.type)
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
        return self.select(*map(self, low.parts(expression)))

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
        if isinstance(constant.type, Pointer) or abs(constant.value) >= MOST:
            return None
        value = plain(number(int(constant.value)))
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
            return _of_each(lambda value: self._whole_unary(expression.operator, value, element), operand)
        if isinstance(operand, Truth):
            return Truth(opposite(operand.text))
        if not isinstance(operand, Pieces):
            return self._number(expression, [operand])
        return self._whole_unary(expression.operator, operand, expression.type)

    def _whole_unary(self, operator: str, operand: Pieces, type_: Type) -> Value:
        if operator == "~":
            is_unsigned = isinstance(type_, Scalar) and not type_.is_signed
            ones = number((1 << 8 * type_.size) - 1) if is_unsigned else -ONE
            operand = operand.map(lambda value: ones - value)
        else:
            operand = operand.map(lambda value: -value)
        return self._fitting(operand, type_)

    @_value.on(low.Binary)
    def _binary(self, expression: low.Binary) -> Value:
        operator, left, right = expression.operator, self(expression.left), self(expression.right)
        if isinstance(left, Components) and isinstance(right, Components):
            element = element_of(expression.type)
            if operator in COMPARISONS:  # -1 where it holds
                return None
            return _of_each(lambda a, b: self._whole(operator, a, b, element), left, right)
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
        if isinstance(left, Wrapped) or isinstance(right, Wrapped):
            return self._around(operator, left, right, expression.type)
        if not isinstance(left, Pieces) or not isinstance(right, Pieces):
            return self._number(expression, [left, right])
        if expression.type == BOOL:
            text = compared(operator, left, right)
            return None if text is None else Truth(text)
        return self._whole(operator, left, right, expression.type)

    def _around(self, operator: str, left: Value, right: Value, type_: Type) -> Value:
        """Returns what an operator makes of unsigned numbers that may have been below zero: sums and products of what
        they were, and whether they are within a range, which they are not when they were below zero."""
        plain_left, plain_right = (each.value if isinstance(each, Wrapped) else each for each in (left, right))
        if not isinstance(plain_left, Pieces) or not isinstance(plain_right, Pieces):
            return None
        if operator in ("+", "-", "*") or (operator == "<<" and isinstance(right, Pieces)):
            return self._whole(operator, plain_left, plain_right, type_)
        if type_ != BOOL or operator not in MIRRORED:
            return None
        if isinstance(right, Wrapped):
            operator, plain_left, plain_right = MIRRORED[operator], plain_right, plain_left
            if isinstance(left, Wrapped):
                return None
        text, below = compared(operator, plain_left, plain_right), compared("<", plain_left, plain(ZERO))
        if text is None or below is None:
            return None
        return Truth(both(opposite(below), text) if operator in ("<", "<=") else either(below, text))

    def _whole(self, operator: str, left: Pieces, right: Pieces, type_: Type) -> Value:
        if not isinstance(type_, Scalar) or type_.is_float:
            return None
        found = self._arithmetic(operator, left, right, type_)
        return None if found is None else self._fitting(found, type_)

    def _arithmetic(self, operator: str, left: Pieces, right: Pieces, type_: Scalar) -> Pieces | None:
        match operator:
            case "+":
                return combined(left, right, lambda a, b: a + b)
            case "-":
                return combined(left, right, lambda a, b: a - b)
            case "*":
                return combined(left, right, lambda a, b: a * b)
            case "/" | "%":
                if not self._is_at_least(left, 0):
                    return None
                function = quotient if operator == "/" else remainder
                return combined(left, right, lambda a, b: function(a, b, self.bounds) if self._divides(b) else None)
            case "<<":
                return combined(left, right, self._shifted_left)
            case ">>":
                return combined(left, right, self._shifted_right)
            case "&":
                return combined(left, right, lambda a, b: self._masked(a, b, type_))
            case "|" | "^":
                return combined(left, right, lambda a, b: self._bitwise(operator, a, b))
        return None

    def _divides(self, divisor: Polynomial) -> bool:
        """Returns whether a divisor can be taken as positive: a positive number, or sizes."""
        low_, _ = divisor.bounds(self.bounds)
        return low_ is not None and (low_ > 0 or divisor.constant is None)

    def _shifted_left(self, value: Polynomial, by: Polynomial) -> Polynomial | None:
        bits = by.constant
        return value.scaled(1 << bits) if bits is not None and 0 <= bits < 63 else None

    def _shifted_right(self, value: Polynomial, by: Polynomial) -> Polynomial | None:
        bits = by.constant
        return quotient(value, number(1 << bits), self.bounds) if bits is not None and 0 <= bits < 63 else None

    def _masked(self, left: Polynomial, right: Polynomial, type_: Scalar) -> Polynomial | None:
        if left.constant is not None and right.constant is not None:
            return number(left.constant & right.constant)
        value, mask = (left, right.constant) if right.constant is not None else (right, left.constant)
        if mask is None:
            return None
        if not type_.is_signed and mask >> (8 * type_.size - 1):  # ~31u
            mask -= 1 << 8 * type_.size
        if mask >= 0 and mask & (mask + 1) == 0:
            return remainder(value, number(mask + 1), self.bounds)
        if mask < 0 and -mask & (-mask - 1) == 0:
            return value - remainder(value, number(-mask), self.bounds)
        return None

    def _bitwise(self, operator: str, left: Polynomial, right: Polynomial) -> Polynomial | None:
        if left.constant is not None and right.constant is not None:
            a, b = left.constant, right.constant
            return number(a | b if operator == "|" else a ^ b)
        if ZERO in (left, right):
            return left + right
        for high, low_ in ((left, right), (right, left)):  # bits that do not overlap are added
            common = math.gcd(*high.terms.values())
            step = common & -common
            text = low_.isl()
            if step > 1 and text is not None and self.is_never(f"{text} < 0 or {text} >= {step}"):
                return left + right
            bits, text = low_.constant, high.isl()
            if bits is not None and bits > 0 and text is not None and self._has_none_of(bits, text):
                return left + right
        return None

    def _has_none_of(self, bits: int, text: str) -> bool:
        """Returns whether a value's binary digits are all zero where those of a number are not."""
        ones = [1 << place for place in range(bits.bit_length()) if bits >> place & 1]
        return all(self.is_never(f"(floor(({text})/{one})) mod 2 = 1") for one in ones)

    def _is_at_least(self, value: Pieces, least: int) -> bool:
        for condition, piece in value.pieces:
            lowest, _ = piece.bounds(self.bounds)
            if lowest is None or lowest < least:
                text = piece.isl()
                if text is None or not self.is_never(both(condition, f"{text} < {least}")):
                    return False
        return True

    def _is_at_most(self, value: Pieces, most: int) -> bool:
        negative = value.map(lambda piece: -piece)
        return self._is_at_least(negative, -most)

    def _fitting(self, value: Pieces, type_: Type) -> Value:
        """Returns the value, unless it may be out of an unsigned or short type's range, where it would wrap around.

        Of types of 32 and 64 bits only the lower end is looked at: no kernel computes indices that are too large.
        """
        if not isinstance(type_, Scalar) or type_.is_float:
            return None
        if not type_.is_signed:
            value = value.map(lambda piece: _small(piece, 8 * type_.size))
            if not self._is_at_least(value, 0):
                return None if type_.size < 4 else Wrapped(value)
        if type_.size < 4:
            bits = 8 * type_.size
            least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if type_.is_signed else (0, (1 << bits) - 1)
            if not self._is_at_least(value, least) or not self._is_at_most(value, most):
                return None
        return value

    def _converted(self, value: Value, source: Type, target: Type) -> Value:
        if isinstance(target, Vector):
            if not isinstance(value, Components):
                value = Components(of_components(value, 1) * target.width)
            element, wide = element_of(source), target.element
            return _of_each(lambda each: self._converted(each, element, wide), value)
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
        return self._fitting(value, target)

    def select(self, condition: Value, then: Value, otherwise: Value) -> Value:
        """Returns one of two values; also what the two ways to here made of a variable."""
        return _short(self._selected(condition, then, otherwise))

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
            return _of_each(lambda a, b: self._selected(condition, a, b), then, otherwise)
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
            return _of_each(lambda *each: self._called(expression.function, list(each), element), *vectors)
        if not values or not all(isinstance(value, Pieces) for value in values):
            return self._number(expression, values) if any(isinstance(value, Known) for value in values) else None
        return self._called(expression.function, values, expression.type)

    def _called(self, function: str, values: list[Any], type_: Type) -> Value:
        match function, values:
            case (("min" | "max"), [left, right]):
                return self._extreme(function, left, right)
            case "clamp", [value, least, most]:
                inner = self._extreme("max", value, least)
                return None if inner is None else self._extreme("min", inner, most)
            case (("mul24" | "mad24"), [left, right, *rest]):
                product = combined(left, right, lambda a, b: a * b)
                if product is not None and rest:
                    product = combined(product, rest[0], lambda a, b: a + b)
                return None if product is None else self._fitting(product, type_)
            case "abs", [value]:
                return value if self._is_at_least(value, 0) else None
        return None

    def _extreme(self, function: str, left: Pieces, right: Pieces) -> Pieces | None:
        text = compared("<=" if function == "min" else ">=", left, right)
        if text is None:
            return None
        return left if text == EVERYWHERE else right if text == NOWHERE else chosen(text, left, right)


def _small(value: Polynomial, bits: int) -> Polynomial:
    """Returns what is the same in so many bits, with small negative numbers in the place of those that were converted.

    In C, ``y + (-1)`` of an unsigned y adds 4294967295.
    """
    half = 1 << bits - 1
    if all(coefficient < half for coefficient in value.terms.values()):
        return value
    rests = {monomial: (c + half) % (2 * half) - half for monomial, c in value.terms.items()}
    return Polynomial({m: rest if abs(rest) < SMALL else value.terms[m] for m, rest in rests.items()})


def of_components(value: Value, width: int) -> tuple[Pieces | None, ...]:
    """Returns what is known of each component of a vector, or of a scalar as if it was a vector of one."""
    if isinstance(value, Components):
        return value.values
    return (value if isinstance(value, Pieces) and width == 1 else None,) * width


def _of_each(function: Callable[..., Value], *operands: Components) -> Components:
    """Returns what a function of whole numbers makes of each component, where all its operands are known."""
    found = []
    for values in zip(*(operand.values for operand in operands), strict=True):
        value = None if None in values else function(*values)
        found.append(value if isinstance(value, Pieces) else None)
    return Components(tuple(found))


def _short(value: Value) -> Value:
    """Returns the value, unless its conditions are so many that isl would be busy with them for long."""
    match value:
        case Truth():
            length = len(value.text)
        case Wrapped():
            length = sum(len(condition) for condition, _ in value.value.pieces)
        case Pieces():
            length = sum(len(condition) for condition, _ in value.pieces)
        case PointsTo():
            length = sum(len(condition) for condition, _ in value.offset.pieces)
        case Components():
            length = sum(len(condition) for each in value.values if each is not None for condition, _ in each.pieces)
        case _:
            return value
    return value if length <= MOST_TEXT else None
