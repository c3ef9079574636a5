"""Reads sizes as a tag filter asks for them: numbers, ranges, powers of two, series of powers, or chosen for the
device."""

from __future__ import annotations

import re
from dataclasses import dataclass

MOST_DIGITS = 19
# As published (2016, section 4.1): 2^(p+t) or 2^(p+2t), p chosen for each device. After a second colon: how many t.
SERIES = re.compile(r"2\^\((?P<start>p|\d{1,2})\+(?P<step>\d?)\*?t\)(?::(?P<cases>\d{1,2}))?")
POWER = re.compile(r"2\^(\d{1,2})")
RANGE = re.compile(rf"(\d{{1,{MOST_DIGITS - 1}}})\.\.(\d{{1,{MOST_DIGITS - 1}}})")


@dataclass(frozen=True)
class SizeSeries:
    """The sizes 2**(start + step*t) for t = 0 … cases-1.

    Attributes:
        start: None where it is to be chosen for a device.
    """

    start: int | None
    step: int
    cases: int

    def sizes(self, start: int | None = None) -> list[int]:
        first = self.start if start is None else start
        assert first is not None
        return [2 ** (first + self.step * t) for t in range(self.cases)]


def parse_size(text: str, step: int, cases: int) -> int | SizeSeries | None:
    """Reads a size as a filter writes it; None for what is none.

    Args:
        step, cases: of a series that doesn't give its own.
    """
    if text.isdecimal():
        return int(text) if len(text) < MOST_DIGITS and int(text) > 0 else None
    if power := POWER.fullmatch(text):
        return 2 ** int(power[1]) if int(power[1]) < 63 else None
    if text.partition(":")[0] == "auto":
        text = f"2^(p+{step}t)" + text[len("auto") :]
    if not (series := SERIES.fullmatch(text)):
        return None
    found = SizeSeries(
        None if series["start"] == "p" else int(series["start"]),
        int(series["step"] or 1),
        int(series["cases"] or cases),
    )
    last = (found.start or 0) + found.step * (found.cases - 1)
    return found if found.cases and found.step and last < 63 else None


def parse_range(text: str) -> range | None:
    """Reads a range such as ``1..1000``, both ends included; None for what is none."""
    found = RANGE.fullmatch(text)
    return range(int(found[1]), int(found[2]) + 1) if found else None
