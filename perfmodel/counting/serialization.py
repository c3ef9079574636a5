"""Counts as plain data for JSON, and back: a table for each class, in which each distinct object has one row.

Rows refer to rows of other tables by number, so that what accesses share in a kernel's counts (executions,
polynomials, quotients of sizes) is stored once, and is one object again when it is read. How a field is written follows
from its type; whole numbers beyond 53 bits, which other JSON readers would round, are hexadecimal strings.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any

from perfmodel.counting.atomics import Update
from perfmodel.counting.counts import (
    AccessCount,
    BranchCount,
    ChainCount,
    CollectiveCount,
    Executions,
    Footprint,
    KernelCounts,
    OperationCount,
)
from perfmodel.counting.quasipolynomial import Affine, Constraint, Piece, QuasiPolynomial, Term

# Rows refer only to earlier rows, which are those of earlier classes or, of affine forms, of their own.
CLASSES = (
    *(Affine, Constraint, Term, Piece, QuasiPolynomial),
    Update,
    *(Executions, OperationCount, ChainCount, AccessCount, Footprint, BranchCount, CollectiveCount),
    KernelCounts,
)

_Tables = dict[type, list[Any]]
_Read = Callable[[Any, _Tables], Any]


def to_data(counts: KernelCounts) -> dict[str, list[Any]]:
    """Returns every class's rows by its name, of lists, strings, numbers and None only."""
    rows: dict[type, dict[Any, int]] = {kind: {} for kind in CLASSES}

    def plain(value: Any) -> Any:
        if type(value) in rows:
            row = tuple(plain(getattr(value, field.name)) for field in dataclasses.fields(value))
            return rows[type(value)].setdefault(row, len(rows[type(value)]))
        if isinstance(value, tuple):
            return tuple(map(plain, value))
        if isinstance(value, Mapping):
            return tuple((plain(key), plain(item)) for key, item in value.items())
        if isinstance(value, frozenset):
            return tuple(sorted(value))
        if type(value) is int and abs(value) >= 2**53:
            return hex(value)
        return value

    plain(counts)
    return {kind.__name__: list(table) for kind, table in rows.items()}


def from_data(data: Any) -> KernelCounts:
    """Returns the counts that `to_data` was given; objects that were equal are now identical.

    Args:
        data: as `to_data` gives it; tuples may have become lists.

    Raises:
        ValueError: for anything else.
    """
    if not isinstance(data, dict) or set(data) != {kind.__name__ for kind in CLASSES}:
        raise ValueError("counts are not stored as one table for each class")
    tables: _Tables = {kind: [] for kind in CLASSES}
    for kind in CLASSES:
        readers = _READERS[kind]
        for row in _listed(data[kind.__name__]):
            tables[kind].append(_checked(kind(*_fixed(row, readers, tables))))
    if len(tables[KernelCounts]) != 1:
        raise ValueError(f"there are counts of {len(tables[KernelCounts])} kernels and not of one")
    counts: KernelCounts = tables[KernelCounts][0]
    return counts


def _reader(hint: Any) -> _Read:
    """Returns a function that turns plain data into a value of the type, or raises ValueError."""
    if hint in CLASSES:
        return lambda value, tables: _referred(value, tables[hint])
    if hint is int:
        return lambda value, tables: int(value, 16) if isinstance(value, str) else _instance(value, int)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is None:
        return lambda value, tables: _instance(value, hint)
    parts = [_reader(argument) for argument in arguments if argument not in (Ellipsis, types.NoneType)]
    if origin is types.UnionType:
        return lambda value, tables: None if value is None else parts[0](value, tables)
    if origin is tuple and Ellipsis not in arguments:
        return lambda value, tables: _fixed(value, parts, tables)
    if origin is Mapping:
        return lambda value, tables: dict(_fixed(item, parts, tables) for item in _listed(value))
    return lambda value, tables: origin(parts[0](item, tables) for item in _listed(value))


def _referred(value: Any, table: list[Any]) -> Any:
    if type(value) is not int or not 0 <= value < len(table):
        raise ValueError(f"{value!r} is not the number of a row")
    return table[value]


def _listed(value: Any) -> list[Any] | tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise ValueError(f"{type(value).__name__} stands where a list should")
    return value


def _fixed(value: Any, parts: list[_Read], tables: _Tables) -> tuple[Any, ...]:
    if len(_listed(value)) != len(parts):
        raise ValueError(f"a list has {len(value)} items and not {len(parts)}")
    return tuple([read(item, tables) for read, item in zip(parts, value, strict=True)])


def _instance(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise ValueError(f"{type(value).__name__} stands where {kind.__name__} should")
    return value


def _checked(value: Any) -> Any:
    """Refuses what has the right types, and yet no value."""
    if getattr(value, "denominator", 1) < 1:
        raise ValueError(f"a denominator is {value.denominator}")
    if isinstance(value, Term) and any(exponent < 1 for _, exponent in (*value.sizes, *value.floors)):
        raise ValueError("an exponent is not positive")
    return value


_READERS = {kind: list(map(_reader, typing.get_type_hints(kind).values())) for kind in CLASSES}
