"""Defines what the value of an expression may be, where it can be told: a number, a condition, a place in memory, a
vector of numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from perfmodel.counting.symbolic import Pieces
from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c.static.known_numbers import Known


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
    """Holds an unsigned number that may have wrapped around below zero, and so is known up to a multiple of 2 to the
    power of its bits."""

    value: Pieces


Value: TypeAlias = Pieces | Wrapped | Truth | PointsTo | Components | Known | None
"""A value is None where it depends on data, or cannot be written as piecewise polynomial with isl's conditions."""

Environment: TypeAlias = dict[low.Register, Value]

MOST_TEXT = 10_000
"""No value has conditions of more characters: iterations that all depend on those before can double them."""


def of_components(value: Value, width: int) -> tuple[Pieces | None, ...]:
    """Returns what is known of each component of a vector, or of a scalar as if it was a vector of one."""
    if isinstance(value, Components):
        return value.values
    return (value if isinstance(value, Pieces) and width == 1 else None,) * width


def of_each(function: Callable[..., Value], *operands: Components) -> Components:
    """Returns what a function of whole numbers makes of each component, where all its operands are known."""
    found = []
    for values in zip(*(operand.values for operand in operands), strict=True):
        value = None if None in values else function(*values)
        found.append(value if isinstance(value, Pieces) else None)
    return Components(tuple(found))


def short(value: Value) -> Value:
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
