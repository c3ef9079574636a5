"""Operations of C on whole numbers that are functions of sizes: what they give, unless they may wrap around."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

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
    is_coordinate,
    number,
    opposite,
    plain,
    quotient,
    remainder,
)
from perfmodel.opencl_c.static.values import Truth, Value, Wrapped
from perfmodel.opencl_c.types import BOOL, Scalar, Type

MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""The operators that say the same with their sides exchanged."""

MOST_CASES = 64
"""So many numbers are looked at one by one, to compare what is no affine function of them."""

SMALL = 1 << 20
"""Numbers that are this near to a multiple of 2^bits were negative before they became unsigned of so many bits."""


class WholeNumbers:
    """Computes with whole numbers as C does.

    Args:
        bounds: of all names.
        is_never: whether a condition holds nowhere where the kernel is now.
    """

    def __init__(self, bounds: Bounds, is_never: Callable[[str], bool]) -> None:
        self.bounds, self.is_never = bounds, is_never

    def unary(self, operator: str, operand: Pieces, type_: Type) -> Value:
        if operator == "~":
            is_unsigned = isinstance(type_, Scalar) and not type_.is_signed
            ones = number((1 << 8 * type_.size) - 1) if is_unsigned else -ONE
            operand = operand.map(lambda value: ones - value)
        else:
            operand = operand.map(lambda value: -value)
        return self.fitting(operand, type_)

    def around(self, operator: str, left: Value, right: Value, type_: Type) -> Value:
        """Returns what an operator makes of unsigned numbers that may have been below zero: sums and products of what
        they were, and whether they are within a range, which they are not when they were below zero."""
        plain_left, plain_right = (each.value if isinstance(each, Wrapped) else each for each in (left, right))
        if not isinstance(plain_left, Pieces) or not isinstance(plain_right, Pieces):
            return None
        if operator in ("+", "-", "*") or (operator == "<<" and isinstance(right, Pieces)):
            return self.binary(operator, plain_left, plain_right, type_)
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

    def binary(self, operator: str, left: Pieces, right: Pieces, type_: Type) -> Value:
        if not isinstance(type_, Scalar) or type_.is_float:
            return None
        found = self._arithmetic(operator, left, right, type_)
        return None if found is None else self.fitting(found, type_)

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

    def fitting(self, value: Pieces, type_: Type) -> Value:
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

    def call(self, function: str, values: list[Any], type_: Type) -> Value:
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
                return None if product is None else self.fitting(product, type_)
            case "abs", [value]:
                return value if self._is_at_least(value, 0) else self._magnitude(value)
        return None

    def _magnitude(self, value: Pieces) -> Pieces | None:
        negative = value.map(lambda piece: -piece)
        return self._extreme("max", value, negative)

    def compared(self, operator: str, left: Pieces, right: Pieces) -> str | None:
        """Returns the condition under which two values compare so; None where isl cannot decide it.

        Powers and products of a few numbers, as counters of short loops are, are looked at number by number.
        """
        text = compared(operator, left, right)
        if text is not None or left.single is None or right.single is None:
            return text
        difference = left.single - right.single
        curved = [monomial for monomial in difference.terms if sum(power for _, power in monomial) > 1]
        names = sorted({each for monomial in curved for each in Polynomial({monomial: 1}).names()})
        bounds = [self.bounds.get(each, (0, None)) for each in names]
        if any(most is None for _, most in bounds) or not all(map(is_coordinate, names)):
            return None
        ranges = [range(least, most + 1) for least, most in bounds if most is not None]
        if math.prod(map(len, ranges)) > MOST_CASES:
            return None
        found = NOWHERE
        for numbers in product(*ranges):
            case = difference.replaced(dict(zip(names, map(number, numbers), strict=True)))
            holds = compared(operator, plain(case), plain(ZERO))
            if holds is None:
                return None
            here = " and ".join(f"{each} = {at}" for each, at in zip(names, numbers, strict=True))
            found = either(found, both(here, holds))
        return found

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
