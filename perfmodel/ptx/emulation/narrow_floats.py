"""Floats that numpy lacks, by their bits: bfloat16, the two kinds of 8 bits, and float32 cut to tf32."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Format:
    """A format of floats.

    Attributes:
        bits: of a value: its sign, an exponent, and `fraction` bits behind the point.
        bias: of the exponent.
        has_infinity: else the largest numbers take the place of infinities, and only all ones are no number.
    """

    bits: int
    fraction: int
    bias: int
    has_infinity: bool = True

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(f"u{self.bits // 8}")

    @property
    def largest(self) -> float:
        exponents = 2 ** (self.bits - 1 - self.fraction)
        if self.has_infinity:
            return float((2 - 2.0**-self.fraction) * 2.0 ** (exponents - 2 - self.bias))
        return float((2 - 2.0 ** (1 - self.fraction)) * 2.0 ** (exponents - 1 - self.bias))


FORMATS: Mapping[str, Format] = {
    "bf16": Format(16, 7, 127),
    "e4m3": Format(8, 3, 7, has_infinity=False),
    "e5m2": Format(8, 2, 15),
}


def decoded(bits: NDArray[Any], name: str) -> NDArray[np.float64]:
    """Returns the numbers that bits stand for."""
    if name == "bf16":
        with np.errstate(invalid="ignore"):
            return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    return _TABLES[name][bits.astype(np.int64)]


def encoded(values: Any, name: str, is_saturated: bool = False, mode: str = "rn") -> NDArray[Any]:
    """Returns the bits of the nearest numbers of a format, of two that are equally near the even one.

    Args:
        is_saturated: whether numbers beyond the largest become it, and not infinite or no number.
        mode: ``rz`` rounds towards zero instead.
    """
    exact = np.asarray(values, np.float64)
    if name == "bf16" and mode == "rn" and not is_saturated:
        return _as_bfloat16(exact)
    form = FORMATS[name]
    magnitude = np.abs(exact)
    with np.errstate(all="ignore"):
        exponent = np.maximum(np.floor(np.log2(np.where(magnitude > 0, magnitude, 1.0))), 1 - form.bias)
        # log2 may be off by one beside powers of two
        exponent = np.where(2.0 ** (exponent + 1) <= magnitude, exponent + 1, exponent)
        exponent = np.where((2.0**exponent > magnitude) & (exponent > 1 - form.bias), exponent - 1, exponent)
        unit = 2.0 ** (exponent - form.fraction)
        whole = (np.trunc if mode == "rz" else np.rint)(magnitude / unit)  # may be a power of two more
        found = np.where(np.isfinite(magnitude), whole * unit, magnitude)
        beyond = found > form.largest
        grown = whole == 2.0 ** (form.fraction + 1)
        exponent, whole = np.where(grown, exponent + 1, exponent), np.where(grown, 2.0**form.fraction, whole)
        is_normal = whole >= 2.0**form.fraction
        biased = np.where(is_normal, exponent + form.bias, 0)
        bits = np.where(np.isfinite(magnitude), biased * 2.0**form.fraction + whole - is_normal * 2.0**form.fraction, 0)
    ones = 2 ** (form.bits - 1) - 1
    infinite = ones & ~(2**form.fraction - 1) if form.has_infinity else ones
    most = (infinite if form.has_infinity else ones) - 1
    if not is_saturated and mode == "rz":
        is_saturated = True
        beyond &= np.isfinite(magnitude)
    bits = np.where(beyond, most if is_saturated else infinite, bits)
    bits = np.where(np.isnan(exact), ones, bits).astype(np.int64)
    return np.asarray((bits | (np.signbit(exact).astype(np.int64) << (form.bits - 1))).astype(form.dtype))


def _as_bfloat16(exact: NDArray[np.float64]) -> NDArray[Any]:
    with np.errstate(all="ignore"):
        near = exact.astype(np.float32)
        back = np.abs(near.astype(np.float64))
    bits = near.view(np.uint32)
    is_tie = (bits & np.uint32(0xFFFF)) == 0x8000
    above, below = is_tie & (np.abs(exact) > back), is_tie & (np.abs(exact) < back)  # as it was rounded before
    odd = np.where(above, np.uint32(1), np.where(below, np.uint32(0), (bits >> np.uint32(16)) & np.uint32(1)))
    found = (bits + np.uint32(0x7FFF) + odd.astype(np.uint32)) >> np.uint32(16)
    return np.asarray(np.where(np.isnan(exact), np.uint32(0x7FFF), found).astype(np.uint16))


def as_tf32(values: Any) -> Any:
    """Returns float32 numbers without the 13 last bits of their fraction, as tensor cores read them."""
    return (values.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


def rounded_to_tf32(values: Any, mode: str) -> Any:
    """Returns float32 numbers rounded to tf32: ``rna`` takes the one away from zero of two that are equally near."""
    bits = values.view(np.uint32)
    if mode == "rna":
        more = np.uint32(0x1000)
    elif mode == "rn":
        more = np.uint32(0xFFF) + ((bits >> np.uint32(13)) & np.uint32(1))
    else:
        more = np.uint32(0)
    found = as_tf32((bits + more).view(np.float32))
    return np.where(np.isfinite(values), found, values)


def _table(form: Format) -> NDArray[np.float64]:
    bits = np.arange(256)
    exponent = (bits & 0x7F) >> form.fraction
    part = (bits & (2**form.fraction - 1)) / 2.0**form.fraction
    found = np.where(exponent > 0, (1 + part) * 2.0 ** (exponent - form.bias), part * 2.0 ** (1 - form.bias))
    top = 2 ** (7 - form.fraction) - 1
    if form.has_infinity:
        found = np.where(exponent == top, np.where(part == 0, np.inf, np.nan), found)
    else:
        found = np.where((bits & 0x7F) == 0x7F, np.nan, found)
    return np.where(bits & 0x80, -found, found)


_TABLES = {name: _table(form) for name, form in FORMATS.items() if form.bits == 8}
