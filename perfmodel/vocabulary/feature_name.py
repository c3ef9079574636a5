"""The grammar that all feature names share: words joined by underscores, some with a condition.

``f_mem_access_global_float32_load_lstrides:{0:1;1:>15}_afr:>1`` has the words ``mem access global float32 load``, and
the conditioned words ``lstrides`` and ``afr``. What the words mean is each family's own business.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.errors import FeatureError

_WORD = re.compile(r"(?P<key>[A-Za-z0-9]+)(?::(?:\{(?P<braced>[^{}]*)\}|(?P<plain>[^_{}]+)))?(?:_|$)")
_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,2})?"
_AXES = ("0", "1", "2")
_CONDITION = re.compile(rf"(?P<operator><=|>=|<|>)?(?P<value>{_NUMBER})$")
_RANGE = re.compile(rf"(?P<low>{_NUMBER})\.\.(?P<high>{_NUMBER})$")


@dataclass(frozen=True)
class Word:
    """One word of a feature's name.

    Attributes:
        condition: the text behind the colon, without braces; None for a bare word.
        offset: position in the name.
    """

    key: str
    condition: str | None
    offset: int


@dataclass(frozen=True)
class FeatureName:
    """A feature's name, taken apart."""

    text: str
    words: tuple[Word, ...]

    def after(self, prefix: tuple[str, ...]) -> tuple[Word, ...]:
        return self.words[len(prefix) :]

    def starts_with(self, prefix: tuple[str, ...]) -> bool:
        return tuple(w.key for w in self.words[: len(prefix)] if w.condition is None) == prefix


def parse_name(text: str) -> FeatureName:
    """Takes ``f_…`` apart.

    Raises:
        FeatureError: with the offset of what is not in the grammar.
    """
    if not text.startswith("f_"):
        raise FeatureError(f"{text!r} is not a feature's name; those start with 'f_'")
    words = []
    position = 2
    while position < len(text):
        match = _WORD.match(text, position)
        if match is None:
            raise FeatureError(
                f"feature {text!r} cannot be read at {text[position : position + 12]!r}; words are joined by '_', "
                "conditions follow ':'",
                position,
            )
        condition = match["braced"] if match["braced"] is not None else match["plain"]
        words.append(Word(match["key"], condition, position))
        position = match.end()
    if not words or text.endswith("_"):
        raise FeatureError(f"feature {text!r} ends too early; a word is missing after '_'", len(text) - 1)
    return FeatureName(text, tuple(words))


@dataclass(frozen=True)
class Condition:
    """A test of numbers: exact, below, above, or inside a closed range."""

    text: str
    low: float
    high: float
    open_low: bool = False
    open_high: bool = False

    def matches(self, values: Any) -> NDArray[np.bool_]:
        """Returns a mask of the values that fulfil the condition, of the values' shape."""
        array = np.asarray(values, dtype=np.float64)
        above = array > self.low if self.open_low else array >= self.low
        below = array < self.high if self.open_high else array <= self.high
        return above & below


def parse_condition(text: str, word: Word) -> Condition:
    """Reads a condition such as ``16``, ``<2``, ``>=1.5`` or ``2..8``.

    Raises:
        FeatureError: for anything else.
    """
    stripped = text.replace(" ", "")
    if match := _RANGE.match(stripped):
        low = float(match["low"])
        high = float(match["high"])
        if low > high:
            raise FeatureError(
                f"condition {text!r} selects nothing, as {low:g} is above {high:g}; swap them", word.offset
            )
        return Condition(text=stripped, low=low, high=high)
    if match := _CONDITION.match(stripped):
        value = float(match["value"])
        operator = match["operator"] or ""
        low = -np.inf if operator.startswith("<") else value
        high = np.inf if operator.startswith(">") else value
        return Condition(text=stripped, low=low, high=high, open_low=operator == ">", open_high=operator == "<")
    raise FeatureError(
        f"condition {text!r} of {word.key!r} is not understood; write a number, '<n', '<=n', '>n', '>=n' or 'a..b'",
        word.offset,
    )


def parse_axes(word: Word) -> Mapping[int, Condition]:
    """Reads conditions by axis, such as ``0:1;1:>15``.

    Raises:
        FeatureError: for a missing colon, an axis that is none of OpenCL's three, or one given twice.
    """
    axes: dict[int, Condition] = {}
    for entry in (word.condition or "").split(";"):
        axis, colon, condition = entry.partition(":")
        if not colon or axis.strip() not in _AXES or int(axis) in axes:
            raise FeatureError(
                f"{word.key}:{{{word.condition}}} is not a list of axes; write for example {word.key}:{{0:1;1:>15}}",
                word.offset,
            )
        axes[int(axis)] = parse_condition(condition, word)
    return axes
