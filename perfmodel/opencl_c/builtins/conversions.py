"""Numbers are converted (section 6.2), and bits reinterpreted as another type, as OpenCL C does it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from perfmodel.basics.errors import EmulationError, nearest
from perfmodel.opencl_c.builtins.representation import DType, Form, choose, dtype_of
from perfmodel.opencl_c.types import Type, Vector, width_of

TO_WHOLE: Mapping[str, np.ufunc] = {"rte": np.rint, "rtz": np.trunc, "rtp": np.ceil, "rtn": np.floor}
"""Each rounding mode has the function that rounds a float which becomes an integer."""


@lru_cache(maxsize=1024)
def conversion(source: Type, target: Type, rounding: str = "", saturate: bool = False) -> Form:
    """Returns the form that makes numbers of one type another's: C's conversions, ``convert_type`` with suffixes, a
    scalar for all components.

    By default floats are truncated to integers, and everything else is rounded to nearest even. Any number that isn't
    zero is true; true becomes 1, as C's comparisons do. What is out of range of an integer wraps around if it is an
    integer itself; if it is a float the result is undefined by C, and some number here.
    """
    if rounding and rounding not in TO_WHOLE:
        raise EmulationError(f"there is no rounding mode {rounding!r}{nearest(rounding, TO_WHOLE)}")
    form = _of_elements(dtype_of(source), dtype_of(target), rounding, saturate)
    if isinstance(target, Vector) and not isinstance(source, Vector):
        width = target.width
        return lambda value: np.repeat(np.atleast_1d(form(value))[np.newaxis], width, axis=0)
    return form


@lru_cache(maxsize=1024)
def reinterpretation(source: Type, target: Type) -> Form:
    """Returns the form that gives the same bits as another type of the same size (``as_type``); a vector of three has
    the room of four."""
    before, after = dtype_of(source), dtype_of(target)
    if before == after and source.size == before.itemsize:
        return _same
    if before.itemsize == after.itemsize and width_of(source) == width_of(target):
        return lambda value: value.view(after)

    def regroup(value: Any) -> Any:
        rows = value if isinstance(source, Vector) else np.atleast_1d(value)[np.newaxis]
        if len(rows) == 3:
            rows = np.concatenate([rows, np.zeros_like(rows[:1])])
        rows = np.ascontiguousarray(np.ascontiguousarray(rows.T).view(after).T)
        if isinstance(target, Vector):
            return rows[: target.width]
        return rows[0, 0] if rows.shape[1] == 1 else rows[0]

    return regroup


def _same(value: Any) -> Any:
    return value


def _of_elements(source: DType, target: DType, rounding: str, saturate: bool) -> Form:
    if source == target:
        return _same
    if target.kind == "b":
        return lambda value: np.not_equal(value, 0)
    if source.kind == "b":
        return lambda value: value.astype(target)
    if target.kind == "f":
        return _to_float(source, target, rounding)
    if source.kind == "f":
        return _to_integer(source, target, TO_WHOLE[rounding or "rtz"], saturate)
    return _between_integers(source, target, saturate)


# --- to integers


def _between_integers(source: DType, target: DType, saturate: bool) -> Form:
    if not saturate:
        return lambda value: value.astype(target)
    before, after = np.iinfo(source), np.iinfo(target)
    low, high = max(before.min, after.min), min(before.max, after.max)
    return lambda value: np.minimum(np.maximum(value, low), high).astype(target)


def _to_integer(source: DType, target: DType, to_whole: np.ufunc, saturate: bool) -> Form:
    limits = np.iinfo(target)
    end = float(limits.max + 1)  # a power of two, unlike the largest integer

    def saturated(value: Any) -> Any:
        whole = to_whole(value, dtype=np.float64)
        is_high = np.greater_equal(whole, end)
        is_inside = np.logical_and(np.greater_equal(whole, float(limits.min)), np.logical_not(is_high))
        inside = np.where(is_inside, whole, 0).astype(target)
        beyond = np.where(is_high, target.type(limits.max), target.type(limits.min))
        return choose(np.logical_or(is_inside, np.isnan(value)), inside, beyond)

    if saturate:
        return saturated
    if to_whole is np.trunc:
        return lambda value: value.astype(target)
    return lambda value: to_whole(value).astype(target)


# --- to floats


def _to_float(source: DType, target: DType, rounding: str) -> Form:
    if target.itemsize == 2 and source.kind in "iu":
        return _to_half(source, rounding)
    if rounding in ("", "rte"):
        return lambda value: value.astype(target)
    if source.kind in "iu" and source.itemsize == 8:
        return lambda value: _directed(value.astype(target), *_sides(value, value.astype(target)), rounding)

    def directed(value: Any) -> Any:
        exact = value.astype(np.float64)  # as all integers of up to 32 bits are
        near = value.astype(target)
        return _directed(near, np.greater(near, exact), np.less(near, exact), rounding)

    return directed


def _to_half(source: DType, rounding: str) -> Form:
    """Returns the conversion by way of float, from which halfs are rounded once; numbers too large for both stay so."""
    limits = np.iinfo(source)
    low, high = max(limits.min, -(2**17)), min(limits.max, 2**17)
    form = _to_float(np.dtype(np.float32), np.dtype(np.float16), rounding)
    return lambda value: form(np.minimum(np.maximum(value, low), high).astype(np.float32))


def _sides(exact: Any, near: Any) -> tuple[Any, Any]:
    """Returns where a float is above and below an integer of 64 bits, which no float may hold."""
    is_beyond = np.greater_equal(near, float(np.iinfo(exact.dtype).max + 1))
    whole = np.where(is_beyond, 0, near).astype(exact.dtype)
    is_below = np.logical_and(np.logical_not(is_beyond), np.less(whole, exact))
    return np.logical_or(is_beyond, np.greater(whole, exact)), is_below


def _directed(near: Any, is_above: Any, is_below: Any, rounding: str) -> Any:
    """Returns the nearest float, or its neighbour if it was rounded to the wrong side."""
    infinity = near.dtype.type(np.inf)
    if rounding == "rtz":
        is_too_large = np.where(np.less(near, 0), is_below, is_above)
        is_wrong, towards = np.logical_and(is_too_large, np.not_equal(near, 0)), near.dtype.type(0)
    else:
        is_wrong, towards = (is_above, -infinity) if rounding == "rtn" else (is_below, infinity)
    return choose(is_wrong, np.nextafter(near, towards), near)
