"""These math functions (section 6.12.2) are exact, or rounded once: parts, signs, neighbours, fma."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from perfmodel.opencl_c.builtins.integers import mad
from perfmodel.opencl_c.builtins.representation import Builder, Form, always, choose, dtype_of
from perfmodel.opencl_c.builtins.rounded_once import fma, remainder_and_quotient
from perfmodel.opencl_c.types import Type

ILOGB_OF_ZERO, ILOGB_OF_NAN = -(2**31), 2**31 - 1
"""FP_ILOGB0 and FP_ILOGBNAN are to be defined as these numbers."""


def _round(x: Any) -> Any:
    """Rounds halves away from zero; the difference of x and its truncation is exact."""
    whole = np.trunc(x)
    step = np.greater_equal(np.absolute(np.subtract(x, whole)), 0.5)
    return np.copysign(np.add(np.absolute(whole), step), x).astype(x.dtype, copy=False)


def _maxmag(x: Any, y: Any) -> Any:
    left, right = np.absolute(x), np.absolute(y)
    return choose(np.greater(left, right), x, choose(np.greater(right, left), y, np.fmax(x, y)))


def _minmag(x: Any, y: Any) -> Any:
    left, right = np.absolute(x), np.absolute(y)
    return choose(np.less(left, right), x, choose(np.less(right, left), y, np.fmin(x, y)))


def _fraction(x: Any) -> Any:
    """Returns the fraction, which is less than one, even where the difference rounds to it."""
    below_one = np.nextafter(x.dtype.type(1), x.dtype.type(0))
    part = np.minimum(np.subtract(x, np.floor(x)), below_one)
    return choose(np.logical_or(np.isinf(x), x == 0), np.copysign(x.dtype.type(0), x), part)


def _logb(x: Any) -> Any:
    exponent = np.subtract(np.frexp(x)[1], 1).astype(x.dtype)
    is_regular = np.logical_and(np.isfinite(x), x != 0)
    return choose(is_regular, exponent, np.log(np.absolute(x)))


def _ilogb(x: Any) -> Any:
    exponent = np.subtract(np.frexp(x)[1], np.int32(1))
    special_one = choose(x == 0, np.int32(ILOGB_OF_ZERO), np.int32(ILOGB_OF_NAN))
    return choose(np.logical_and(np.isfinite(x), x != 0), exponent, special_one)


def _nextafter(x: Any, y: Any) -> Any:
    """Returns the neighbour; two zeros give the second one, which numpy forgets for halfs."""
    return choose(np.equal(x, y), y, np.nextafter(x, y))


def _sign_of_gamma(x: Any) -> Any:
    """Returns -1 between a negative even number and the odd one above it, 1 elsewhere; at a zero, its sign."""
    whole = np.floor(x)
    is_negative = np.logical_and(np.logical_and(np.less(x, 0), whole != x), np.fmod(whole, 2) != 0)
    return choose(np.logical_or(is_negative, np.logical_and(x == 0, np.signbit(x))), np.int32(-1), np.int32(1))


def _nan(result: Type, arguments: tuple[Type, ...]) -> Form:
    """Returns the form of a quiet NaN with the number in its low digits."""
    dtype, code = dtype_of(result), dtype_of(arguments[0])
    quiet = np.array(np.nan, dtype).view(code)[()]
    payload = code.type(2 ** (np.finfo(dtype).nmant - 1) - 1)
    return lambda number: np.bitwise_or(np.bitwise_and(number, payload), quiet).view(dtype)


PARTS: Mapping[str, Builder] = {
    "ceil": always(np.ceil),
    "copysign": always(np.copysign),
    "divide": always(np.divide),
    "fabs": always(np.absolute),
    "fdim": always(lambda x, y: choose(np.less_equal(x, y), x.dtype.type(0), np.subtract(x, y))),
    "floor": always(np.floor),
    "fma": lambda result, arguments: fma(dtype_of(result)),
    "fmax": always(np.fmax),
    "fmin": always(np.fmin),
    "fmod": always(np.fmod),
    "fract.0": always(_fraction),
    "fract.1": always(np.floor),
    "frexp.0": always(lambda x: np.frexp(x)[0]),
    "frexp.1": always(lambda x: np.frexp(x)[1]),
    "ilogb": always(_ilogb),
    "lgamma_r.1": always(_sign_of_gamma),
    "logb": always(_logb),
    "mad": always(mad),
    "maxmag": always(_maxmag),
    "minmag": always(_minmag),
    "modf.0": always(lambda x: np.modf(x)[0]),
    "modf.1": always(np.trunc),
    "nan": _nan,
    "nextafter": always(_nextafter),
    "recip": always(lambda x: np.divide(x.dtype.type(1), x)),
    "remquo.1": always(lambda x, y: remainder_and_quotient(x, y)[1]),
    "rint": always(np.rint),
    "round": always(_round),
    "sqrt": always(np.sqrt),
    "trunc": always(np.trunc),
}
