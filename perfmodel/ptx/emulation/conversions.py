"""Conversions from type to type, and comparisons, as functions of arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from perfmodel.ptx.emulation.floats import directed, saturated
from perfmodel.ptx.emulation.narrow_floats import FORMATS, decoded, encoded, rounded_to_tf32
from perfmodel.ptx.syntax import Instruction
from perfmodel.ptx.types import Type

Function = Callable[..., Any]
_ROUNDED: dict[str, Function] = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


def converted(instruction: Instruction) -> Function | None:
    """Returns what a ``cvt`` computes; None for one of packed values."""
    if len(instruction.types) != 2:
        return None
    to, source = instruction.types
    if to.lanes != source.lanes:
        return None
    whole = next((_ROUNDED[m] for m in instruction.modifiers if m in _ROUNDED), None)
    direction = next((m for m in instruction.modifiers if m in ("rn", "rz", "rm", "rp")), None)
    is_saturated = instruction.has("sat")
    if source.is_float and not to.is_float:
        return _to_whole(to, whole or np.trunc)
    if to.form or instruction.has("relu", "satfinite"):
        return narrowed(instruction, to) if source.is_float else lambda a: a.astype(to.numpy)
    if source.is_float:
        return _between_floats(to, source, whole, direction, is_saturated)
    if to.is_float:
        return lambda a: (
            directed(a.astype(np.longdouble), to.numpy, direction)
            if direction
            in (
                "rz",
                "rm",
                "rp",
            )
            else a.astype(to.numpy)
        )
    if is_saturated:
        limits = np.iinfo(to.numpy)
        least, most = np.iinfo(source.numpy).min, np.iinfo(source.numpy).max
        low, high = max(limits.min, least), min(limits.max, most)
        return lambda a: np.clip(a, source.numpy.type(low), source.numpy.type(high)).astype(to.numpy)
    return lambda a: a.astype(to.numpy)


def _to_whole(to: Type, round_: Function) -> Function:
    """Returns floats as whole numbers, the nearest that there are; 0 for what is no number."""
    limits = np.iinfo(to.numpy)

    def convert(a: Any) -> Any:
        value = round_(a.astype(np.float64))
        beyond = value >= float(limits.max)
        below = value <= float(limits.min)
        kept = np.where(beyond | below | np.isnan(value), 0.0, value)
        found = kept.astype(to.numpy)
        found = np.where(beyond, to.numpy.type(limits.max), found)
        return np.where(below, to.numpy.type(limits.min), found)

    return convert


def narrowed(instruction: Instruction, to: Type) -> Function:
    """Returns floats as numbers of a narrower type."""
    direction = next((m for m in instruction.modifiers if m in ("rn", "rna", "rz")), "rn")
    is_positive, is_finite = instruction.has("relu"), instruction.has("satfinite")
    most = FORMATS[to.form].largest if to.form in FORMATS else float(np.finfo(to.numpy).max)

    def narrow(a: Any) -> Any:
        value = np.fmax(a, 0) if is_positive else a
        if to.form == "tf32":
            return rounded_to_tf32(value.astype(np.float32), direction)
        value = value.astype(np.float64)
        if is_finite:
            value = np.clip(value, -most, most)
        if direction == "rz" and to.form:
            return decoded(encoded(value, to.form, mode="rz"), to.form)
        return directed(value, to.numpy, direction)

    return narrow


def _between_floats(
    to: Type, source: Type, whole: Function | None, direction: str | None, is_saturated: bool
) -> Function:
    def convert(a: Any) -> Any:
        value = whole(a) if whole is not None else a
        wide = value.astype(np.float64) if to.bits < source.bits and direction in ("rz", "rm", "rp") else value
        found = directed(wide, to.numpy, direction) if wide is not value else value.astype(to.numpy)
        return saturated(found) if is_saturated else found

    return convert


_ORDERED: dict[str, Function] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lo": np.less,
    "ls": np.less_equal,
    "hi": np.greater,
    "hs": np.greater_equal,
}


def compared(instruction: Instruction, type_: Type) -> Function:
    """Returns the comparison that a ``setp`` or ``set`` makes, without what it joins it with."""
    name = next(m for m in instruction.modifiers if m not in ("and", "or", "xor", "ftz"))
    if name == "num":
        return lambda a, b: ~(np.isnan(a) | np.isnan(b))
    if name == "nan":
        return lambda a, b: np.isnan(a) | np.isnan(b)
    if name.endswith("u") and name[:-1] in _ORDERED:
        plain = _ORDERED[name[:-1]]
        return lambda a, b: plain(a, b) | np.isnan(a) | np.isnan(b)
    plain = _ORDERED[name]
    if name == "ne" and type_.is_float:
        return lambda a, b: plain(a, b) & ~(np.isnan(a) | np.isnan(b))
    return plain


def joined(instruction: Instruction) -> Function | None:
    """Returns how a comparison is joined with another predicate, if it is."""
    functions: dict[str, Function] = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}
    return next((functions[m] for m in instruction.modifiers if m in functions), None)
