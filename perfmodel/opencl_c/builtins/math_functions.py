"""These math functions (section 6.12.2) compute in double precision and round the result to its type.

So floats and halfs are nearly always rounded correctly; doubles are as good as numpy and scipy, with some help.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import pi
from typing import Any

import numpy as np

from perfmodel.opencl_c.builtins.representation import Builder, Form, choose, dtype_of
from perfmodel.opencl_c.builtins.rounded_once import remainder_and_quotient
from perfmodel.opencl_c.types import Type


def _special(name: str) -> Callable[[Any], Any]:
    """Returns a function of scipy's by its name."""

    def function(x: Any) -> Any:
        from scipy import special  # slow to import

        return getattr(special, name)(x)

    return function


def _wide(form: Form) -> Builder:
    """Makes a form of doubles one for all types."""

    def build(result: Type, arguments: tuple[Type, ...]) -> Form:
        dtype = dtype_of(result)
        if dtype == np.float64 and all(dtype_of(argument) == dtype for argument in arguments):
            return form
        return lambda *values: form(*(value.astype(np.float64) for value in values)).astype(dtype)

    return build


# --- powers


def _powr(x: Any, y: Any) -> Any:
    """Returns the power of a base that isn't negative; it is undefined where the base's logarithm times y is."""
    is_undefined = np.isnan(np.multiply(np.log(np.absolute(x)), y))
    return choose(np.logical_or(np.less(x, 0), is_undefined), np.float64(np.nan), np.power(np.absolute(x), y))


def _rootn(x: Any, n: Any) -> Any:
    """Returns the power 1 / n, with what that misses of its exponent."""
    size, is_odd = np.absolute(x), np.fmod(n, 2) != 0
    inverse = np.divide(1.0, n)
    high = np.bitwise_and(inverse.view(np.int64), -(2**31)).view(np.float64)  # whose product with n is exact
    missing = np.divide(np.subtract(np.subtract(1.0, np.multiply(high, n)), np.multiply(inverse - high, n)), n)
    root = np.power(size, inverse)
    is_regular = np.logical_and(np.isfinite(root), root != 0)
    root = choose(is_regular, np.add(root, np.multiply(root, np.multiply(missing, np.log(size)))), root)
    is_undefined = np.logical_or(n == 0, np.logical_and(np.less(x, 0), np.logical_not(is_odd)))
    return choose(is_undefined, np.float64(np.nan), choose(is_odd, np.copysign(root, x), root))


# --- in units of half a turn


def _sinpi(x: Any) -> Any:
    sine, _ = _of_half_turns(x)
    return choose(sine == 0, np.copysign(0.0, x), sine)


def _tanpi(x: Any) -> Any:
    """Returns the tangent; of sine over cosine, which gives the sign of zeros and poles, only one is known there."""
    sine, cosine = _of_half_turns(x)
    return np.divide(choose(sine == 0, np.copysign(0.0, x), sine), np.add(cosine, 0.0))


def _of_half_turns(x: Any) -> tuple[Any, Any]:
    """Returns sine and cosine of x * pi, where x is brought to an eighth of a circle, exactly."""
    within = np.fmod(x, 2.0)
    quarter = np.rint(np.multiply(within, 2.0))
    angle = np.multiply(np.subtract(within, np.multiply(quarter, 0.5)), pi)
    sine, cosine = np.sin(angle), np.cos(angle)
    is_odd, is_turned = np.fmod(quarter, 2) != 0, np.bitwise_and(np.nan_to_num(quarter).astype(np.int64), 3)
    first, second = choose(is_odd, cosine, sine), choose(is_odd, sine, cosine)
    return (
        choose(is_turned >= 2, np.negative(first), first),
        choose(np.logical_or(is_turned == 1, is_turned == 2), np.negative(second), second),
    )


def _per_pi(form: np.ufunc) -> Form:
    return lambda *values: np.divide(form(*values), pi)


# --- error and gamma functions


def _erfc(x: Any) -> Any:
    """Takes the scaled function for positive numbers, where exp(-x * x) needs the square's error too."""
    high = choose(np.less(np.absolute(x), 2.0**26), x, np.float64(0))
    high = np.bitwise_and(high.view(np.int64), -(2**27)).view(np.float64)
    rest = np.multiply(np.subtract(high, x), np.add(x, high))
    tail = np.multiply(np.exp(np.negative(np.square(high))), np.multiply(np.exp(rest), _special("erfcx")(x)))
    is_tail = np.logical_and(np.greater(x, 0.5), np.less(x, 30.0))
    return choose(is_tail, tail, _special("erfc")(x))


def _tgamma(x: Any) -> Any:
    return choose(np.logical_and(np.isinf(x), np.less(x, 0)), np.float64(np.nan), _special("gamma")(x))


def _lgamma(x: Any) -> Any:
    """Takes a series near one and two, and the logarithm near zero, where scipy's other function has lost digits."""
    near_zero = np.negative(np.log(np.absolute(x)))
    other = choose(np.greater(x, 0), _special("loggamma")(x), _special("gammaln")(x))
    return choose(np.isinf(x), np.absolute(x), choose(np.less(np.absolute(x), 1e-20), near_zero, other))


def _cbrt(x: Any) -> Any:
    """Takes a step of Newton's method, as the C library of some processors is off by three units in the last place."""
    is_large = np.greater(np.absolute(x), 1)
    scaled = np.multiply(x, choose(is_large, np.float64(2.0**-300), np.float64(2.0**600)))
    root = np.cbrt(scaled)
    step = np.divide(np.subtract(np.multiply(np.square(root), root), scaled), np.multiply(np.square(root), 3.0))
    better = np.multiply(np.subtract(root, step), choose(is_large, np.float64(2.0**100), np.float64(2.0**-200)))
    return choose(np.logical_and(np.isfinite(x), np.not_equal(x, 0)), better, x)


WIDE: Mapping[str, Form] = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "acospi": _per_pi(np.arccos),
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "asinpi": _per_pi(np.arcsin),
    "atan": np.arctan,
    "atan2": np.arctan2,
    "atan2pi": _per_pi(np.arctan2),
    "atanh": np.arctanh,
    "atanpi": _per_pi(np.arctan),
    "cbrt": _cbrt,
    "cos": np.cos,
    "cosh": np.cosh,
    "cospi": lambda x: np.add(_of_half_turns(x)[1], 0.0),  # no negative zero
    "erf": _special("erf"),
    "erfc": _erfc,
    "exp": np.exp,
    "exp10": lambda x: np.power(10.0, x),
    "exp2": np.exp2,
    "expm1": np.expm1,
    "hypot": np.hypot,
    "ldexp": lambda x, exponent: np.ldexp(x, exponent.astype(np.int32)),
    "lgamma": _lgamma,
    "lgamma_r.0": _lgamma,
    "log": np.log,
    "log10": np.log10,
    "log1p": np.log1p,
    "log2": np.log2,
    "pow": np.power,
    "pown": np.power,
    "powr": _powr,
    "remainder": lambda x, y: remainder_and_quotient(x, y)[0],
    "remquo.0": lambda x, y: remainder_and_quotient(x, y)[0],
    "rootn": _rootn,
    "rsqrt": lambda x: np.divide(1.0, np.sqrt(x)),
    "sin": np.sin,
    "sincos.0": np.sin,
    "sincos.1": np.cos,
    "sinh": np.sinh,
    "sinpi": _sinpi,
    "tan": np.tan,
    "tanh": np.tanh,
    "tanpi": _tanpi,
    "tgamma": _tgamma,
}
MATH: Mapping[str, Builder] = {name: _wide(form) for name, form in WIDE.items()}
