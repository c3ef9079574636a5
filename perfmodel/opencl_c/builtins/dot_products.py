"""Products of short whole numbers, summed in a longer type (cl_khr_integer_dot_product)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from perfmodel.opencl_c.builtins.representation import Builder, Form, dtype_of, of_lanes
from perfmodel.opencl_c.types import Type

_SIGNS = {"uu_uint": ("u1", "u1"), "ss_int": ("i1", "i1"), "us_int": ("u1", "i1"), "su_int": ("i1", "u1")}


def _sum(left: Any, right: Any) -> Any:
    return of_lanes(np.add.reduce(np.multiply(left.astype(np.int64), right.astype(np.int64)), axis=0))


def _saturated(total: Any, dtype: np.dtype[Any]) -> Any:
    limits = np.iinfo(dtype)
    return np.minimum(np.maximum(total, limits.min), limits.max).astype(dtype)


def _bytes(word: Any, kind: str) -> Any:
    """Returns the four bytes of a word as a vector."""
    words = np.atleast_1d(word).astype(np.uint32)
    parts = (words[np.newaxis] >> np.array([[0], [8], [16], [24]], np.uint32)).astype(np.uint8)
    return parts.view(kind)


def _packed(signs: tuple[str, str]) -> Builder:
    def build(result: Type, arguments: tuple[Type, ...]) -> Form:
        dtype = dtype_of(result)
        return lambda x, y: _sum(_bytes(x, signs[0]), _bytes(y, signs[1])).astype(dtype)

    return build


def _accumulated(signs: tuple[str, str]) -> Builder:
    def build(result: Type, arguments: tuple[Type, ...]) -> Form:
        dtype = dtype_of(result)
        return lambda x, y, z: _saturated(_sum(_bytes(x, signs[0]), _bytes(y, signs[1])) + z.astype(np.int64), dtype)

    return build


def dot(result: Type, arguments: tuple[Type, ...]) -> Form:
    """Makes the form of ``dot`` of vectors of whole numbers."""
    dtype = dtype_of(result)
    return lambda x, y: _sum(x, y).astype(dtype)


def _dot_acc_sat(result: Type, arguments: tuple[Type, ...]) -> Form:
    dtype = dtype_of(result)
    return lambda x, y, z: _saturated(_sum(x, y) + z.astype(np.int64), dtype)


DOT_PRODUCTS: Mapping[str, Builder] = {
    "dot_acc_sat": _dot_acc_sat,
    **{f"dot_4x8packed_{name}": _packed(signs) for name, signs in _SIGNS.items()},
    **{f"dot_acc_sat_4x8packed_{name}": _accumulated(signs) for name, signs in _SIGNS.items()},
}
