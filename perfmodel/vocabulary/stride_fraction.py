"""Categories of amortized stride fractions (Stevens & Klöckner 2016, section 2.1)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.errors import FeatureError
from perfmodel.vocabulary.feature_name import Word

_FRACTION = re.compile(r"([1-4])/(>?[2-4])$")
# What is left of a rounding error must not lift a utilization into the next category.
_SLACK = 1e-9


@dataclass(frozen=True)
class StrideFraction:
    """One category: stride 0, stride 1, or a numerator over a stride of 2, 3, 4 or more.

    Attributes:
        numerator: the utilization in parts of the stride, 1 to the stride (quarters for strides above 4); 0 for the
            strides 0 and 1, where it is disregarded.
        stride: 0 to 4, or 5 for all above 4.
    """

    numerator: int
    stride: int

    def matches(self, stride: Any, utilization: Any) -> NDArray[np.bool_]:
        """Returns a mask of accesses in the category, by their strides (not negative) and utilizations (0 to 1)."""
        here: NDArray[np.bool_] = np.asarray(stride) > 4 if self.stride == 5 else np.asarray(stride) == self.stride
        if self.stride < 2:
            return here
        parts = min(self.stride, 4)
        quantized = np.clip(np.ceil(np.asarray(utilization) * parts - _SLACK), 1, parts)
        return np.asarray(here & (quantized == self.numerator))


def parse_stride_fraction(word: Word) -> StrideFraction:
    """Reads a stride fraction: ``0``, ``1``, ``1/2`` … ``4/4``, or ``1/>4`` … ``4/>4``.

    Raises:
        FeatureError: for anything else.
    """
    text = (word.condition or "").replace(" ", "")
    if text in ("0", "1"):
        return StrideFraction(0, int(text))
    if match := _FRACTION.match(text):
        numerator, above = int(match[1]), match[2] == ">4"
        stride = 5 if above else int(match[2]) if match[2].isdigit() else 0
        if stride and numerator <= min(stride, 4):
            return StrideFraction(numerator, stride)
    raise FeatureError(
        f"asf:{{{word.condition}}} is no amortized stride fraction; write 0, 1, {{1/2}}, {{2/2}}, {{1/3}} … {{4/4}}, "
        "or {1/>4} … {4/>4}",
        word.offset,
    )
