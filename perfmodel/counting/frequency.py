"""Data decide how often a statement is executed; a frequency says so on average, for each granularity by itself."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

ONE = Fraction(1)


@dataclass(frozen=True)
class Frequency:
    """A frequency is how often something is executed for each time that control comes to it.

    A sub-group executes what one of its work-items does, and so does a group: of what a work-item does once in a
    hundred times, a sub-group of 32 does more than a quarter.

    Attributes:
        item, subgroup, group: executions by work-items, sub-groups and work-groups.
    """

    item: Fraction = ONE
    subgroup: Fraction = ONE
    group: Fraction = ONE

    @classmethod
    def same(cls, value: Fraction) -> Frequency:
        """Returns a frequency of which nothing else is known than one number."""
        return cls(value, value, value)

    @property
    def each(self) -> tuple[Fraction, Fraction, Fraction]:
        return self.item, self.subgroup, self.group

    def __mul__(self, other: Frequency) -> Frequency:
        return Frequency(*(a * b for a, b in zip(self.each, other.each, strict=True)))

    def __add__(self, other: Frequency) -> Frequency:
        return Frequency(*(a + b for a, b in zip(self.each, other.each, strict=True)))


ALWAYS = Frequency()
"""The frequency of what nothing decides."""
