"""This module has tests, selections (section 6.12.6) and shuffles (6.12.12)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from perfmodel.opencl_c.builtins.representation import (
    Builder,
    Form,
    choose,
    dtype_of,
    of_lanes,
    signed,
    truth,
    unsigned,
)
from perfmodel.opencl_c.types import Type, Vector


def _test(form: Form) -> Builder:
    return lambda result, arguments: truth(form, result)


def _is_normal(x: Any) -> Any:
    return np.logical_and(np.isfinite(x), np.greater_equal(np.absolute(x), np.finfo(x.dtype).smallest_normal))


def _is_unordered(x: Any, y: Any) -> Any:
    return np.logical_or(np.isnan(x), np.isnan(y))


def _over_components(form: np.ufunc) -> Builder:
    """Makes ``any`` or ``all``, which look at sign bits."""

    def build(result: Type, arguments: tuple[Type, ...]) -> Form:
        dtype = dtype_of(result)
        if isinstance(arguments[0], Vector):
            return lambda x: of_lanes(form.reduce(np.less(x, 0), axis=0)).astype(dtype)
        return lambda x: np.less(x, 0).astype(dtype)

    return build


def _bitselect(result: Type, arguments: tuple[Type, ...]) -> Form:
    dtype = dtype_of(result)
    bits = unsigned(dtype)

    def bitselect(x: Any, y: Any, mask: Any) -> Any:
        x, y, mask = x.view(bits), y.view(bits), mask.view(bits)
        return np.bitwise_xor(x, np.bitwise_and(np.bitwise_xor(x, y), mask)).view(dtype)

    return bitselect


def _select(result: Type, arguments: tuple[Type, ...]) -> Form:
    """Chooses scalars by a number that isn't zero, components of vectors by the sign bit."""
    whole = signed(dtype_of(arguments[2]))
    if isinstance(result, Vector):
        return lambda otherwise, then, condition: choose(np.less(condition.view(whole), 0), then, otherwise)
    return lambda otherwise, then, condition: choose(np.not_equal(condition, 0), then, otherwise)


def _shuffle(result: Type, arguments: tuple[Type, ...]) -> Form:
    """Picks components; only the low bits of the mask count."""
    last = _last(arguments[0])
    return lambda x, mask: _taken(x, np.bitwise_and(mask, mask.dtype.type(last)))


def _shuffle2(result: Type, arguments: tuple[Type, ...]) -> Form:
    last = 2 * _last(arguments[0]) + 1

    def shuffle2(x: Any, y: Any, mask: Any) -> Any:
        both = np.concatenate(np.broadcast_arrays(x, y))
        return _taken(both, np.bitwise_and(mask, mask.dtype.type(last)))

    return shuffle2


def _last(vector: Type) -> int:
    assert isinstance(vector, Vector)
    return vector.width - 1


def _taken(x: Any, components: Any) -> Any:
    if components.shape[1] == 1:
        return x[components[:, 0]]
    return x[components, 0 if x.shape[1] == 1 else np.arange(x.shape[1])]


RELATIONAL: Mapping[str, Builder] = {
    "all": _over_components(np.logical_and),
    "any": _over_components(np.logical_or),
    "bitselect": _bitselect,
    "isequal": _test(np.equal),
    "isfinite": _test(np.isfinite),
    "isgreater": _test(np.greater),
    "isgreaterequal": _test(np.greater_equal),
    "isinf": _test(np.isinf),
    "isless": _test(np.less),
    "islessequal": _test(np.less_equal),
    "islessgreater": _test(lambda x, y: np.logical_or(np.less(x, y), np.greater(x, y))),
    "isnan": _test(np.isnan),
    "isnormal": _test(_is_normal),
    "isnotequal": _test(np.not_equal),
    "isordered": _test(lambda x, y: np.logical_not(_is_unordered(x, y))),
    "isunordered": _test(_is_unordered),
    "select": _select,
    "signbit": _test(np.signbit),
}
SHUFFLES: Mapping[str, Builder] = {"shuffle": _shuffle, "shuffle2": _shuffle2}
