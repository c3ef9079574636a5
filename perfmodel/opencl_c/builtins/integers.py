"""The integer functions (section 6.12.3) are exact for 8 to 64 bits, and never leave the type in between."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from perfmodel.opencl_c.builtins.representation import Builder, DType, Form, always, bits_of, choose, dtype_of, unsigned
from perfmodel.opencl_c.types import Type


def _typed(make: Callable[[DType], Form]) -> Builder:
    """Makes a builder of a form that depends on the type of the first argument."""
    return lambda result, arguments: make(dtype_of(arguments[0]))


def _split(signed_form: Form, unsigned_form: Form) -> Builder:
    return _typed(lambda dtype: signed_form if dtype.kind == "i" else unsigned_form)


# --- magnitudes


def _abs(dtype: DType) -> Form:
    if dtype.kind == "u":
        return np.positive
    return lambda x: np.absolute(x).view(unsigned(dtype))  # the smallest number wraps around to its magnitude


def _abs_diff(dtype: DType) -> Form:
    whole = unsigned(dtype)

    def abs_diff(x: Any, y: Any) -> Any:
        difference = np.subtract(x.view(whole), y.view(whole))
        return choose(np.less(x, y), np.negative(difference), difference)

    return abs_diff


def clamp(x: Any, low: Any, high: Any) -> Any:
    return np.minimum(np.maximum(x, low), high)


# --- sums


def _saturated(x: Any) -> Any:
    """Returns the end of the type's range on the side of `x`: by its sign the largest or smallest number."""
    return np.bitwise_xor(np.right_shift(x, bits_of(x.dtype) - 1), np.iinfo(x.dtype).max)


def _add_sat_signed(x: Any, y: Any) -> Any:
    total = np.add(x, y)
    has_wrapped = np.less(np.bitwise_and(np.bitwise_xor(x, total), np.bitwise_xor(y, total)), 0)
    return choose(has_wrapped, _saturated(x), total)


def _sub_sat_signed(x: Any, y: Any) -> Any:
    total = np.subtract(x, y)
    has_wrapped = np.less(np.bitwise_and(np.bitwise_xor(x, y), np.bitwise_xor(x, total)), 0)
    return choose(has_wrapped, _saturated(x), total)


def _add_sat_unsigned(x: Any, y: Any) -> Any:
    total = np.add(x, y)
    return choose(np.less(total, x), x.dtype.type(np.iinfo(x.dtype).max), total)


def _hadd(x: Any, y: Any) -> Any:
    """Returns half the sum: the bits that both have, and half of those that one has; nothing can overflow."""
    return np.add(np.bitwise_and(x, y), np.right_shift(np.bitwise_xor(x, y), 1))


# --- products


def _mul_hi(dtype: DType) -> Form:
    bits = bits_of(dtype)
    if bits == 64:
        return lambda x, y: _high_signed(x, y) if dtype.kind == "i" else _high_unsigned(x, y)
    wide = np.dtype(f"{dtype.kind}8")
    return lambda x, y: np.right_shift(np.multiply(x, y, dtype=wide), bits).astype(dtype)


def _high_unsigned(x: Any, y: Any) -> Any:
    """Returns the upper 64 of 128 bits, by schoolbook multiplication of halves."""
    low = np.uint64(0xFFFFFFFF)
    x0, x1, y0, y1 = x & low, x >> np.uint64(32), y & low, y >> np.uint64(32)
    middle = np.add(np.multiply(x1, y0), np.multiply(x0, y0) >> np.uint64(32))
    carried = np.add(np.multiply(x0, y1), middle & low)
    return np.add(np.add(np.multiply(x1, y1), middle >> np.uint64(32)), carried >> np.uint64(32))


def _high_signed(x: Any, y: Any) -> Any:
    """Returns the upper half of a signed product: as unsigned numbers, negative ones are 2^64 too large."""
    high = _high_unsigned(x.view(np.uint64), y.view(np.uint64)).view(np.int64)
    excess = np.add(np.bitwise_and(np.right_shift(x, 63), y), np.bitwise_and(np.right_shift(y, 63), x))
    return np.subtract(high, excess)


def _mad_hi(dtype: DType) -> Form:
    mul_hi = _mul_hi(dtype)
    return lambda x, y, z: np.add(mul_hi(x, y), z)


def _mad_sat(dtype: DType) -> Form:
    if dtype.itemsize == 8:
        return _mad_sat_signed if dtype.kind == "i" else _mad_sat_unsigned
    wide, limits = np.dtype(f"{dtype.kind}8"), np.iinfo(dtype)  # products and sums of 32 bits fit into 64

    def mad_sat(x: Any, y: Any, z: Any) -> Any:
        return clamp(np.add(np.multiply(x, y, dtype=wide), z), limits.min, limits.max).astype(dtype)

    return mad_sat


def _mad_sat_unsigned(x: Any, y: Any, z: Any) -> Any:
    low = np.multiply(x, y)
    total = np.add(low, z)
    is_beyond = np.logical_or(_high_unsigned(x, y) != 0, np.less(total, low))
    return choose(is_beyond, np.uint64(0xFFFFFFFFFFFFFFFF), total)


def _mad_sat_signed(x: Any, y: Any, z: Any) -> Any:
    """Keeps 128 bits of the sum: it fits if the upper half only repeats the sign of the lower."""
    low = np.multiply(x, y).view(np.uint64)
    total = np.add(low, z.view(np.uint64))
    carry = np.less(total, low).astype(np.int64)
    high = np.add(np.add(_high_signed(x, y), np.right_shift(z, 63)), carry)
    total = total.view(np.int64)
    return choose(np.equal(high, np.right_shift(total, 63)), total, _saturated(high))


# --- bits


def _popcount(x: Any) -> Any:
    return np.bitwise_count(x.view(unsigned(x.dtype))).astype(x.dtype)


def _clz(x: Any) -> Any:
    """Counts leading zeros by a float's exponent; without bits below a set one, the float isn't rounded up."""
    whole = x.view(unsigned(x.dtype))
    sparse = np.bitwise_and(whole, np.invert(np.right_shift(whole, 1)))
    return np.subtract(bits_of(x.dtype), np.frexp(sparse.astype(np.float64))[1]).astype(x.dtype)


def _ctz(x: Any) -> Any:
    """Counts the ones below the lowest set bit, which are all bits of zero."""
    return _popcount(np.bitwise_and(np.invert(x), np.subtract(x, x.dtype.type(1))))


def _rotate(dtype: DType) -> Form:
    whole, mask = unsigned(dtype), bits_of(dtype) - 1

    def rotate(x: Any, places: Any) -> Any:
        value, left = x.view(whole), np.bitwise_and(places, mask).astype(whole)
        right = np.bitwise_and(np.negative(left), whole.type(mask))
        return np.bitwise_or(np.left_shift(value, left), np.right_shift(value, right)).view(dtype)

    return rotate


def _upsample(result: Type, arguments: tuple[Type, ...]) -> Form:
    dtype, places = dtype_of(result), bits_of(dtype_of(arguments[0]))
    return lambda high, low: np.bitwise_or(np.left_shift(high.astype(dtype), places), low.astype(dtype))


def mad(x: Any, y: Any, z: Any) -> Any:
    return np.add(np.multiply(x, y), z)


INTEGERS: Mapping[str, Builder] = {
    "abs": _typed(_abs),
    "abs_diff": _typed(_abs_diff),
    "add_sat": _split(_add_sat_signed, _add_sat_unsigned),
    "clz": always(_clz),
    "ctz": always(_ctz),
    "hadd": always(_hadd),
    "mad24": always(mad),
    "mad_hi": _typed(_mad_hi),
    "mad_sat": _typed(_mad_sat),
    "mul24": always(np.multiply),
    "mul_hi": _typed(_mul_hi),
    "popcount": always(_popcount),
    "rhadd": always(lambda x, y: np.subtract(np.bitwise_or(x, y), np.right_shift(np.bitwise_xor(x, y), 1))),
    "rotate": _typed(_rotate),
    "sub_sat": _split(_sub_sat_signed, lambda x, y: np.subtract(np.maximum(x, y), y)),
    "upsample": _upsample,
}
