"""Instructions of whole numbers and bits, as functions of arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from perfmodel.ptx.syntax import Instruction
from perfmodel.ptx.types import TYPES, Type

Function = Callable[..., Any]
_WIDER: dict[int, dict[str, Any]] = {16: {"s": np.int32, "u": np.uint32}, 32: {"s": np.int64, "u": np.uint64}}


def binary(instruction: Instruction) -> Function | None:
    """Returns what an instruction of two operands of one type computes; None for others."""
    type_ = instruction.types[-1]
    match instruction.opcode:
        case "add":
            return _saturated(np.add, type_) if instruction.has("sat") else np.add
        case "sub":
            return _saturated(np.subtract, type_) if instruction.has("sat") else np.subtract
        case "mul" | "mul24":
            return multiplied(instruction)
        case "div":
            return _quotient
        case "rem":
            return lambda a, b: (a - _quotient(a, b) * b).astype(a.dtype if hasattr(a, "dtype") else None)
        case "min":
            return np.minimum
        case "max":
            return np.maximum
        case "and":
            return np.bitwise_and if type_.kind != "p" else np.logical_and
        case "or":
            return np.bitwise_or if type_.kind != "p" else np.logical_or
        case "xor":
            return np.bitwise_xor if type_.kind != "p" else np.logical_xor
    return None


def unary(instruction: Instruction) -> Function | None:
    """Returns what an instruction of one operand computes."""
    type_ = instruction.types[-1]
    match instruction.opcode:
        case "not":
            return np.logical_not if type_.kind == "p" else np.invert
        case "cnot":
            return lambda a: (a == 0).astype(type_.numpy)
        case "neg":
            return np.negative
        case "abs":
            return np.abs
        case "popc":
            return lambda a: np.bitwise_count(a).astype(np.uint32)
        case "clz":
            return lambda a: (type_.bits - _length(a, type_)).astype(np.uint32)
        case "brev":
            return lambda a: _reversed(a, type_)
        case "bfind":
            return _highest(type_, instruction.has("shiftamt"))
    return None


def multiplied(instruction: Instruction) -> Function:
    """Returns the product that ``lo``, ``hi`` or ``wide`` asks for."""
    type_ = instruction.types[-1]
    if instruction.has("wide"):
        wide = np.dtype(_WIDER[type_.bits][type_.kind])
        return lambda a, b: np.multiply(a.astype(wide), b.astype(wide))
    if instruction.opcode == "mul24":
        return lambda a, b: np.multiply(_low24(a, type_), _low24(b, type_))
    if instruction.has("hi"):
        return _high(type_)
    return np.multiply


def _high(type_: Type) -> Function:
    if type_.bits < 64:
        wide = np.dtype(_WIDER[type_.bits][type_.kind])
        return lambda a, b: (np.multiply(a.astype(wide), b.astype(wide)) >> type_.bits).astype(type_.numpy)

    def high(a: Any, b: Any) -> Any:
        x, y = a.astype(np.uint64), b.astype(np.uint64)
        low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
        x0, x1, y0, y1 = x & low, x >> half, y & low, y >> half
        middle = x1 * y0 + ((x0 * y0) >> half)
        cross = x0 * y1 + (middle & low)
        found = x1 * y1 + (middle >> half) + (cross >> half)
        if type_.kind == "s":
            found = found - np.where(a < 0, y, np.uint64(0)) - np.where(b < 0, x, np.uint64(0))
        return found.astype(type_.numpy)

    return high


def _low24(a: Any, type_: Type) -> Any:
    return (a << 8) >> 8 if type_.kind == "s" else a & np.uint32(0xFFFFFF)


def _quotient(a: Any, b: Any) -> Any:
    """Returns quotients rounded towards zero, and all bits where the divisor is zero."""
    found = np.floor_divide(a, b)
    if np.asarray(a).dtype.kind == "i":
        rest = a - found * b
        found = found + ((rest != 0) & ((a < 0) != (b < 0))).astype(found.dtype)
    if np.any(b == 0):
        found = np.where(b == 0, np.asarray(-1).astype(found.dtype), found)
    return found


def _saturated(compute: Function, type_: Type) -> Function:
    limits = np.iinfo(np.int32)
    return lambda a, b: np.clip(compute(a.astype(np.int64), b.astype(np.int64)), limits.min, limits.max).astype(
        type_.numpy
    )


def shifted(instruction: Instruction) -> Function:
    """Returns a shift, of which amounts beyond the width leave nothing, or the sign."""
    type_ = instruction.types[-1]
    bits = type_.bits
    if instruction.opcode == "shl":

        def left(a: Any, by: Any) -> Any:
            if np.ndim(by) == 0 and by < bits:
                return np.left_shift(a, by.astype(a.dtype))
            found = np.left_shift(a, np.minimum(by, bits - 1).astype(a.dtype))
            return np.where(by < bits, found, np.zeros_like(found)) if np.any(by >= bits) else found

        return left

    def right(a: Any, by: Any) -> Any:
        if np.ndim(by) == 0 and by < bits:
            return np.right_shift(a, by.astype(a.dtype))
        found = np.right_shift(a, np.minimum(by, bits - 1).astype(a.dtype))
        if type_.kind == "s" or not np.any(by >= bits):
            return found
        return np.where(by < bits, found, np.zeros_like(found))

    return right


def funnel(instruction: Instruction) -> Function:
    """Returns a shift of two registers that are taken as one of 64 bits."""

    def shift(low: Any, high: Any, by: Any) -> Any:
        both = (high.astype(np.uint64) << np.uint64(32)) | low.astype(np.uint64)
        amount = (by & np.uint32(31) if instruction.has("wrap") else np.minimum(by, np.uint32(32))).astype(np.uint64)
        found = (both << amount) >> np.uint64(32) if instruction.has("l") else both >> amount
        return found.astype(np.uint32)

    return shift


def shifted_with(instruction: Instruction) -> Function:
    """Returns a shift among the instructions for videos, whose result another operation joins with a third number."""
    is_left, is_wrapped = instruction.opcode == "vshl", instruction.has("wrap")

    def shift(a: Any, by: Any, *third: Any) -> Any:
        wide = a.astype(np.int64)
        amount = (by & np.uint32(31) if is_wrapped else np.minimum(by, np.uint32(32))).astype(np.int64)
        found = (wide << amount if is_left else wide >> amount).astype(instruction.types[0].numpy)
        if not third:
            return found
        return (np.minimum if instruction.has("min") else np.maximum if instruction.has("max") else np.add)(
            found, third[0]
        )

    return shift


def extracted(type_: Type) -> Function:
    """Returns a field of bits; a signed one is extended by its sign."""

    def extract(a: Any, start: Any, length: Any) -> Any:
        start, length = np.minimum(start & 255, 64).astype(np.int64), np.minimum(length & 255, 64).astype(np.int64)
        raw = a.astype(np.dtype(f"i{type_.bytes}") if type_.kind == "s" else type_.raw)
        wide = raw.astype(np.int64) if type_.kind == "s" else raw.astype(np.uint64)
        moved = wide >> np.minimum(start, 63).astype(wide.dtype)
        moved = np.where(start > 63, wide >> wide.dtype.type(63), moved)
        taken = np.minimum(length, 63)
        mask = (np.uint64(1) << taken.astype(np.uint64)) - np.uint64(1)
        field = moved.astype(np.uint64) & mask
        field = np.where(length > 63, moved.astype(np.uint64), field)
        if type_.kind == "s":
            last = np.minimum(start + length - 1, type_.bits - 1)
            sign = (wide >> np.clip(last, 0, 63)).astype(np.int64) & 1
            filled = np.where((sign == 1) & (length < 64), field | ~mask, field)
            field = np.where(length == 0, np.uint64(0), filled)
        return field.astype(type_.raw).view(type_.numpy) if field.ndim else type_.raw.type(field).view(type_.numpy)

    return extract


def inserted(type_: Type) -> Function:
    """Returns a register with a field of bits of another one."""

    def insert(a: Any, b: Any, start: Any, length: Any) -> Any:
        start, length = (start & 255).astype(np.uint64), (length & 255).astype(np.uint64)
        one = np.uint64(1)
        ones = np.where(length > 63, ~np.uint64(0), (one << np.minimum(length, np.uint64(63))) - one)
        by = np.minimum(start, np.uint64(63))
        mask = np.where(start > 63, np.uint64(0), ones << by)
        found = (b.astype(np.uint64) & ~mask) | ((a.astype(np.uint64) << by) & mask)
        return found.astype(type_.raw)

    return insert


def logic(table: int) -> Function:
    """Returns the function of three operands that a table of 8 bits says."""

    def combine(a: Any, b: Any, c: Any) -> Any:
        found = np.zeros_like(a | b | c)
        for case in range(8):
            if table >> case & 1:
                one = a if case & 4 else ~a
                two = b if case & 2 else ~b
                three = c if case & 1 else ~c
                found = found | (one & two & three)
        return found

    return combine


def permuted(instruction: Instruction) -> Function:
    """Returns bytes of two registers in an order that a third one says."""
    if instruction.modifiers:
        return _permuted_in_mode(instruction.modifiers[0])

    def permute(a: Any, b: Any, selector: Any) -> Any:
        if np.ndim(selector) == 0:
            return _permuted_alike(a, b, int(selector))
        both = (b.astype(np.uint64) << np.uint64(32)) | a.astype(np.uint64)
        found = np.zeros_like(both)
        for place in range(4):
            chosen = (selector.astype(np.uint64) >> np.uint64(4 * place)) & np.uint64(15)
            byte = (both >> ((chosen & np.uint64(7)) * np.uint64(8))) & np.uint64(255)
            sign = np.where(byte & np.uint64(128), np.uint64(255), np.uint64(0))
            found = found | (np.where(chosen & np.uint64(8), sign, byte) << np.uint64(8 * place))
        return found.astype(np.uint32)

    return permute


def _permuted_alike(a: Any, b: Any, selector: int) -> Any:
    """Returns bytes of two registers in an order that is the same for all lanes."""
    found: Any = np.uint32(0)
    for place in range(4):
        chosen = selector >> 4 * place & 15
        byte = ((b if chosen & 4 else a).astype(np.uint32) >> np.uint32(8 * (chosen & 3))) & np.uint32(255)
        if chosen & 8:
            byte = (byte >> np.uint32(7)) * np.uint32(255)
        found = found | (byte << np.uint32(8 * place))
    return found


_MODES = {
    "f4e": (0x3210, 0x4321, 0x5432, 0x6543),
    "b4e": (0x5670, 0x6701, 0x7012, 0x0123),
    "rc8": (0x0000, 0x1111, 0x2222, 0x3333),
    "ecl": (0x3210, 0x3211, 0x3222, 0x3333),
    "ecr": (0x0000, 0x1110, 0x2210, 0x3210),
    "rc16": (0x1010, 0x3232, 0x1010, 0x3232),
}


def _permuted_in_mode(mode: str) -> Function:
    table = np.array(_MODES[mode], np.uint32)
    plain = permuted(Instruction("prmt", types=(TYPES["b32"],)))
    return lambda a, b, selector: plain(a, b, table[selector & np.uint32(3)])


def dot(signs: tuple[str, str], bits: int = 8, first: int = 0) -> Function:
    """Returns the sum of products of parts of two words, and a third operand.

    Args:
        signs: kinds of the parts, ``s`` or ``u``.
        bits: of a part of the first word, all of which are taken; those of the second have 8.
        first: the part of the second word that the first one is multiplied with.
    """

    def part(words: Any, place: int, bits: int, sign: str) -> Any:
        found = (words.astype(np.int64) >> (bits * place)) & ((1 << bits) - 1)
        return found.astype(f"{'i' if sign == 's' else 'u'}{bits // 8}").astype(np.int64)

    def products(a: Any, b: Any, c: Any) -> Any:
        found = c.astype(np.int64)
        for place in range(32 // bits):
            found = found + part(a, place, bits, signs[0]) * part(b, first + place, 8, signs[1])
        return found.astype(np.int32)

    return products


def _length(a: Any, type_: Type) -> Any:
    """Returns how many bits a number has without leading zeros."""
    rest = np.asarray(a).astype(np.uint64)
    found = np.zeros(rest.shape, np.int64)
    for step in (32, 16, 8, 4, 2, 1):
        is_large = rest >= (np.uint64(1) << np.uint64(step))
        found = found + is_large * step
        rest = np.where(is_large, rest >> np.uint64(step), rest)
    return (found + (rest > 0)).astype(np.uint32)


def _reversed(a: Any, type_: Type) -> Any:
    found = np.zeros_like(a)
    one = type_.raw.type(1)
    for place in range(type_.bits):
        found = found | (((a >> type_.raw.type(place)) & one) << type_.raw.type(type_.bits - 1 - place))
    return found


def _highest(type_: Type, is_shift: bool) -> Function:
    def find(a: Any) -> Any:
        raw = np.asarray(a)
        if type_.kind == "s":
            raw = np.where(raw < 0, ~raw, raw)
        place = _length(raw.astype(type_.raw), type_).astype(np.int64) - 1
        if is_shift:
            place = np.where(place >= 0, type_.bits - 1 - place, place)
        return place.astype(np.int32)

    return find
