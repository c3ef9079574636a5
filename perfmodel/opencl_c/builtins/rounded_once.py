"""The fused multiply-add and remainders are computed here so that they are rounded only once."""

from __future__ import annotations

from fractions import Fraction
from math import inf
from typing import Any

import numpy as np

from perfmodel.opencl_c.builtins.representation import DType, Form, choose

SPLITTER = float(2**27 + 1)
"""A double times this number gives the upper half of its digits (Dekker)."""
SMALLEST, LARGEST = 2.0**-400, 2.0**400
"""Errors of sums and products are doubles themselves between these magnitudes."""


def fma(dtype: DType) -> Form:
    """Returns the form of ``x * y + z``, rounded once."""
    return _fma_double if dtype == np.float64 else lambda x, y, z: _fma_single(x, y, z).astype(dtype)


def _fma_single(x: Any, y: Any, z: Any) -> Any:
    """Returns a double that rounds to the float: products of floats are doubles, and their sum is rounded to odd.

    That matters only to sums that look like ties between floats: zeros are all that would be lost, and some more.
    """
    product, addend = np.multiply(x, y, dtype=np.float64), z.astype(np.float64)
    total = np.add(product, addend)
    if (np.bitwise_and(total.view(np.int64), 2**28 - 1) != 0).all():
        return total
    return _rounded_to_odd(*_sum(product, addend))


def _fma_double(x: Any, y: Any, z: Any) -> Any:
    """Follows Boldo and Melquiond's algorithm where its errors are doubles; else, which is rare, fractions."""
    product, product_error = _product(x, y)
    low, low_error = _sum(z, product_error)
    high, high_error = _sum(product, low)
    fused = np.add(high, _rounded_to_odd(*_sum(low_error, high_error)))
    values = np.broadcast_arrays(x, y, z)
    if (is_moderate := np.logical_and.reduce([_is_moderate(value) for value in values])).all():
        return fused
    has_product = np.logical_and(np.not_equal(x, 0), np.not_equal(y, 0))
    has_finite = np.logical_and(np.isfinite(x), np.isfinite(y))
    plain = choose(np.logical_and(has_product, np.equal(z, 0)), product, np.add(product, z))
    result = np.array(choose(is_moderate, fused, choose(np.logical_and(has_finite, np.isinf(z)), z, plain)))
    has_all = np.logical_and.reduce([value != 0 for value in values] + [np.isfinite(value) for value in values])
    is_hard = np.logical_and(has_all, np.logical_not(is_moderate))
    hard = (value[is_hard].tolist() for value in values)
    result[is_hard] = [_of_fractions(*parts) for parts in zip(*hard, strict=True)]
    return result[()]


def _is_moderate(x: Any) -> Any:
    size = np.absolute(x)
    return np.logical_and(np.greater(size, SMALLEST), np.less(size, LARGEST))


def _of_fractions(x: float, y: float, z: float) -> float:
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    try:
        return float(exact)  # to nearest even; the two rarely cancel, and then it is a positive zero
    except OverflowError:
        return inf if exact > 0 else -inf


def _sum(x: Any, y: Any) -> tuple[Any, Any]:
    """Returns the sum and its error (Knuth)."""
    total = np.add(x, y)
    part = np.subtract(total, x)
    return total, np.add(np.subtract(x, np.subtract(total, part)), np.subtract(y, part))


def _product(x: Any, y: Any) -> tuple[Any, Any]:
    """Returns the product and its error (Dekker)."""
    product = np.multiply(x, y)
    (x1, x0), (y1, y0) = _halves(x), _halves(y)
    error = np.subtract(product, np.multiply(x1, y1))
    error = np.subtract(np.subtract(error, np.multiply(x0, y1)), np.multiply(x1, y0))
    return product, np.subtract(np.multiply(x0, y0), error)


def _halves(x: Any) -> tuple[Any, Any]:
    scaled = np.multiply(x, SPLITTER)
    high = np.subtract(scaled, np.subtract(scaled, x))
    return high, np.subtract(x, high)


def _rounded_to_odd(total: Any, error: Any) -> Any:
    """Returns the one of two doubles around an inexact sum whose last digit is odd: no second rounding meets a tie."""
    bits = total.view(np.int64)
    is_even = np.logical_and(np.bitwise_and(bits, 1) == 0, np.logical_and(np.isfinite(error), error != 0))
    step = choose(np.signbit(total) == np.signbit(error), np.int64(1), np.int64(-1))
    return np.add(bits, choose(is_even, step, np.int64(0))).view(np.float64)


def remainder_and_quotient(x: Any, y: Any) -> tuple[Any, Any]:
    """Returns x less the nearest multiple of y, and the quotient's sign and low seven bits (``remquo``)."""
    dividend, divisor = np.absolute(x.astype(np.float64)), np.absolute(y.astype(np.float64))
    few = np.fmod(dividend, np.multiply(divisor, 128))
    rest = np.fmod(few, divisor)
    times = np.rint(np.divide(np.subtract(few, rest), divisor))
    other = np.subtract(divisor, rest)
    is_up = np.logical_or(np.greater(rest, other), np.logical_and(np.equal(rest, other), np.fmod(times, 2) == 1))
    size = np.copysign(1.0, x)
    left = np.multiply(choose(is_up, np.negative(other), rest), size)
    low_bits = np.fmod(np.add(times, is_up), 128)
    is_defined = np.logical_and(np.isfinite(left), np.isfinite(low_bits))
    quotient = np.multiply(choose(is_defined, low_bits, np.float64(0)), np.multiply(size, np.copysign(1.0, y)))
    return left, quotient.astype(np.int32)
