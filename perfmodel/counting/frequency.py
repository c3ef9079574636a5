"""Data decide how often a statement is executed; a frequency says so on average, for each granularity by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from operator import add, mul
from typing import Any, TypeAlias

ONE = Fraction(1)
MOST_BITS = 256
"""No frequency has a longer denominator: those of all branches that lead to a statement are multiplied."""
Replica: TypeAlias = tuple[float, float, float, float]
"""A replica is a frequency by work-items, sub-groups, work-groups and the longest, as another sample would have shown
it."""


@dataclass(frozen=True)
class Frequency:
    """A frequency is how often something is executed for each time that control comes to it.

    A sub-group executes what one of its work-items does, and so does a group: of what a work-item does once in a
    hundred times, a sub-group of 32 does more than a quarter.

    Attributes:
        item, subgroup, group: executions by work-items, sub-groups and work-groups.
        longest: those of a work-item that does most in its group, on average; None where only means are known.
        replicas: the same as the groups of a sample show it with other weights, see `perfmodel.counting.resampling`;
            none where it is no estimate.
    """

    item: Fraction = ONE
    subgroup: Fraction = ONE
    group: Fraction = ONE
    longest: Fraction | None = None
    replicas: tuple[Replica, ...] = field(default=(), compare=False, kw_only=True)

    @classmethod
    def same(cls, value: Fraction) -> Frequency:
        """Returns a frequency of which nothing else is known than one number."""
        return cls(value, value, value)

    @property
    def each(self) -> tuple[Fraction, Fraction, Fraction]:
        return self.item, self.subgroup, self.group

    @property
    def most(self) -> Fraction:
        """Executions by a work-item that does most in its group, as far as that is known."""
        return self.item if self.longest is None else self.longest

    @property
    def spread(self) -> tuple[Replica, ...]:
        """The numbers of each replica, divided by those of the frequency."""
        numbers = [float(number) for number in (*self.each, self.most)]
        return tuple(
            _replica(each / number if number else 1.0 for each, number in zip(replica, numbers, strict=True))
            for replica in self.replicas
        )

    def with_replicas(self, others: Sequence[Frequency]) -> Frequency:
        """Returns the same frequency, with others that are its replicas."""
        return replace(self, replicas=tuple(_replica(map(float, (*other.each, other.most))) for other in others))

    def __mul__(self, other: Frequency) -> Frequency:
        return self._with(mul, other)

    def __add__(self, other: Frequency) -> Frequency:
        return self._with(add, other)

    def _with(self, operation: Callable[[Any, Any], Any], other: Frequency) -> Frequency:
        count = max(len(self.replicas), len(other.replicas))
        ours, theirs = (
            each.replicas or (_replica(map(float, (*each.each, each.most))),) * count for each in (self, other)
        )
        replicas = tuple(_replica(map(operation, a, b)) for a, b in zip(ours, theirs, strict=True))
        is_known = self.longest is not None or other.longest is not None
        longest = operation(self.most, other.most) if is_known else None
        item, subgroup, group = map(operation, self.each, other.each)
        longest = None if longest is None else _short(longest)
        return Frequency(_short(item), _short(subgroup), _short(group), longest, replicas=replicas)


ALWAYS = Frequency()
"""The frequency of what nothing decides."""


def _short(number: Fraction) -> Fraction:
    return number if number.denominator.bit_length() <= MOST_BITS else Fraction(float(number))


def _replica(numbers: Iterable[float]) -> Replica:
    item, subgroup, group, longest = numbers
    return item, subgroup, group, longest
