"""Instructions of floats, as functions of arrays; rounded as PTX says, approximations to the last bits of numpy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from perfmodel.ptx.syntax import Instruction
from perfmodel.ptx.types import Type

Function = Callable[..., Any]
_WIDE: dict[int, Any] = {16: np.float64, 32: np.float64, 64: np.longdouble}
"""The types that results are computed in before they are rounded once."""


def of_floats(instruction: Instruction) -> Function | None:
    """Returns what an instruction of floats computes from its operands; None for one that is none of these."""
    type_ = instruction.types[-1]
    found = _computed(instruction, type_)
    if found is None:
        return None
    if instruction.has("sat"):
        plain = found
        found = lambda *operands: saturated(plain(*operands))  # noqa: E731
    return found


def _computed(instruction: Instruction, type_: Type) -> Function | None:
    direction = next((m for m in instruction.modifiers if m in ("rz", "rm", "rp")), None)
    match instruction.opcode:
        case "add":
            return rounded(np.add, type_, direction) if direction else np.add
        case "sub":
            return rounded(np.subtract, type_, direction) if direction else np.subtract
        case "mul":
            return rounded(np.multiply, type_, direction) if direction else np.multiply
        case "fma" | "mad":
            fused = rounded(lambda a, b, c: a * b + c, type_, direction)
            return (lambda *operands: np.fmax(fused(*operands), 0)) if instruction.has("relu") else fused
        case "div":
            return rounded(np.divide, type_, direction) if direction else np.divide
        case "rcp":
            return rounded(lambda a: 1 / a, type_, direction)
        case "sqrt":
            return rounded(np.sqrt, type_, direction) if direction else np.sqrt
        case "abs":
            return np.abs
        case "neg":
            return np.negative
        case "min":
            least = np.minimum if instruction.has("NaN") else np.fmin
            return _of_magnitudes(least) if instruction.has("xorsign") else least
        case "max":
            most = np.maximum if instruction.has("NaN") else np.fmax
            return _of_magnitudes(most) if instruction.has("xorsign") else most
        case "copysign":
            return lambda a, b: np.copysign(b, a)
    return _approximated(instruction.opcode, type_)


def _of_magnitudes(choose: Function) -> Function:
    """Returns a choice of two magnitudes, with the sign that a product would have."""

    def chosen(a: Any, b: Any) -> Any:
        found = choose(np.abs(a), np.abs(b))
        return np.where(np.signbit(a) != np.signbit(b), -found, found)

    return chosen


def _approximated(opcode: str, type_: Type) -> Function | None:
    functions: dict[str, Function] = {
        "rsqrt": lambda a: 1 / np.sqrt(a),
        "sin": np.sin,
        "cos": np.cos,
        "lg2": np.log2,
        "ex2": np.exp2,
        "tanh": np.tanh,
    }
    return rounded(functions[opcode], type_, None) if opcode in functions else None


def rounded(compute: Function, type_: Type, direction: str | None) -> Function:
    """Returns a function computed in a wider type and rounded once: to the nearest number, or in a direction."""
    wide, narrow = _WIDE[8 * type_.numpy.itemsize] if not type_.form else np.float64, type_.numpy

    def once(*operands: Any) -> Any:
        exact = compute(*(operand.astype(wide) for operand in operands))
        return directed(exact, narrow, direction)

    return once


def directed(exact: Any, narrow: np.dtype[Any], direction: str | None) -> Any:
    """Returns numbers of a wider type rounded in a direction (``rz``, ``rm``, ``rp``), or to the nearest."""
    near = exact.astype(narrow)
    if direction in (None, "rn"):
        return near
    back = near.astype(exact.dtype)
    low, high = narrow.type(-np.inf), narrow.type(np.inf)
    down = np.where(back > exact, np.nextafter(near, low), near)
    up = np.where(back < exact, np.nextafter(near, high), near)
    return down if direction == "rm" else up if direction == "rp" else np.where(exact >= 0, down, up)


def saturated(value: Any) -> Any:
    """Returns floats held between 0 and 1; what is no number is 0."""
    return np.where(np.isnan(value), value.dtype.type(0), np.clip(value, 0, 1)).astype(value.dtype)


def tested(instruction: Instruction) -> Function:
    """Returns what ``testp`` asks of a float."""
    tiny = np.finfo(instruction.types[-1].numpy).tiny
    tests: dict[str, Function] = {
        "finite": np.isfinite,
        "infinite": np.isinf,
        "number": lambda a: ~np.isnan(a),
        "notanumber": np.isnan,
        "normal": lambda a: np.isfinite(a) & (np.abs(a) >= tiny),
        "subnormal": lambda a: (a != 0) & (np.abs(a) < tiny),
    }
    return tests[instruction.modifiers[0]]
