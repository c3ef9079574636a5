"""Structs and vectors passed by value are given as numpy, Python and JSON have them, and kept number by number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def flattened(arguments: Mapping[str, Any], numbers: Sequence[str] = ()) -> dict[str, Any]:
    """Returns the numbers of arguments by name; ``shape={"dims": [64, 48]}`` is ``shape_dims_0`` and ``shape_dims_1``.

    Args:
        arguments: by name: mappings, numpy records, sequences and arrays, nested as the struct is; all else stays as
            it is.
        numbers: names of arguments that are single numbers, whatever is given.
    """
    found: dict[str, Any] = {}
    for name, value in arguments.items():
        parts = None if name in numbers else _parts(value)
        if parts is None:
            found[name] = value
        else:
            found.update(flattened({f"{name}_{key}": part for key, part in parts.items()}))
    return found


def _parts(value: Any) -> Mapping[Any, Any] | None:
    """Returns what a value consists of, by field or index; None for a number."""
    if isinstance(value, Mapping):
        return value
    if isinstance(value, np.ndarray) and not value.ndim:
        value = value[()]
    if isinstance(value, np.void) and value.dtype.names:
        return {field: value[field] for field in value.dtype.names}
    if isinstance(value, list | tuple | np.ndarray):
        return dict(enumerate(value))
    return None
