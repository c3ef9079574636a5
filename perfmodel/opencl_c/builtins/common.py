"""The common (section 6.12.4) and geometric functions (6.12.5) need plain arithmetic only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from perfmodel.opencl_c.builtins.dot_products import dot as dot_of_whole_numbers
from perfmodel.opencl_c.builtins.integers import clamp
from perfmodel.opencl_c.builtins.representation import Builder, Form, always, choose, dtype_of, of_lanes
from perfmodel.opencl_c.types import Type, Vector, is_float


def _scaled(factor: float) -> Builder:
    return lambda result, arguments: lambda x: np.multiply(x, dtype_of(result).type(factor))


def _mix(x: Any, y: Any, part: Any) -> Any:
    return np.add(x, np.multiply(np.subtract(y, x), part))


def _step(edge: Any, x: Any) -> Any:
    return np.logical_not(np.less(x, edge)).astype(x.dtype)


def _smoothstep(low: Any, high: Any, x: Any) -> Any:
    t = clamp(np.divide(np.subtract(x, low), np.subtract(high, low)), 0, 1)
    return np.multiply(np.multiply(t, t), np.subtract(3, np.multiply(2, t)))


def _sign(x: Any) -> Any:
    """Returns the sign, of zeros with their own sign; what is no number gives 0."""
    return choose(np.isnan(x), x.dtype.type(0), np.copysign(np.sign(x), x))


def _dot(result: Type, arguments: tuple[Type, ...]) -> Form:
    if not is_float(arguments[0]):
        return dot_of_whole_numbers(result, arguments)
    if not isinstance(arguments[0], Vector):
        return np.multiply
    return lambda x, y: of_lanes(np.add.reduce(np.multiply(x, y), axis=0))


def _cross(x: Any, y: Any) -> Any:
    product = np.subtract(np.multiply(x[_NEXT], y[_AFTER_NEXT]), np.multiply(x[_AFTER_NEXT], y[_NEXT]))
    return product if len(x) == 3 else np.concatenate([product, np.zeros_like(product[:1])])


_NEXT, _AFTER_NEXT = np.array([1, 2, 0]), np.array([2, 0, 1])


def _length(result: Type, arguments: tuple[Type, ...]) -> Form:
    if not isinstance(arguments[0], Vector):
        return np.absolute
    dtype = dtype_of(result)

    def length(x: Any) -> Any:
        scaled, exponent = _moderate(x)
        return of_lanes(np.ldexp(np.sqrt(np.add.reduce(np.square(scaled), axis=0)), exponent).astype(dtype))

    return length


def _moderate(x: Any) -> tuple[Any, Any]:
    """Returns the vector over a power of two, in double precision, so that squares don't overflow; and that exponent.

    Those of single precision never do.
    """
    if x.dtype != np.float64:
        return x.astype(np.float64), 0
    largest = np.maximum.reduce(np.absolute(x), axis=0)
    exponent = np.where(np.isfinite(largest), np.frexp(largest)[1], 0)
    return np.ldexp(x, -exponent), exponent


def _distance(result: Type, arguments: tuple[Type, ...]) -> Form:
    length = _length(result, arguments)
    return lambda x, y: length(np.subtract(x, y))


def _normalize(result: Type, arguments: tuple[Type, ...]) -> Form:
    dtype = dtype_of(result)
    if not isinstance(result, Vector):
        return lambda x: choose(np.logical_or(np.isnan(x), np.equal(x, 0)), x, np.copysign(dtype.type(1), x))

    def normalize(x: Any) -> Any:
        scaled = _moderate(x)[0]
        if (is_infinite := np.isinf(scaled)).any():  # infinite components are as if of size one, the others zero
            ones = np.copysign(is_infinite.astype(np.float64), scaled)
            of_infinite = np.logical_and(is_infinite.any(axis=0), np.logical_not(np.isnan(scaled).any(axis=0)))
            scaled = np.where(of_infinite, ones, scaled)
        squares = np.add.reduce(np.square(scaled), axis=0)
        return np.divide(scaled, np.sqrt(np.where(squares == 0, 1, squares))).astype(dtype)

    return normalize


COMMON: Mapping[str, Builder] = {
    "clamp": always(clamp),
    "degrees": _scaled(57.295779513082320877),
    "max": always(np.maximum),
    "min": always(np.minimum),
    "mix": always(_mix),
    "radians": _scaled(0.017453292519943295769),
    "sign": always(_sign),
    "smoothstep": always(_smoothstep),
    "step": always(_step),
}
GEOMETRIC: Mapping[str, Builder] = {
    "cross": always(_cross),
    "distance": _distance,
    "dot": _dot,
    "fast_distance": _distance,
    "fast_length": _length,
    "fast_normalize": _normalize,
    "length": _length,
    "normalize": _normalize,
}
