"""Says how a predicted time grows with a size: what doubling it changes, and the power law that it comes to."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from perfmodel.basics.tables import seconds as with_unit

FOLLOWED, BETWEEN = (1, 4, 5, 6), (2, 3)
"""A size is doubled so often, to see what its time comes to; and so often, where something else limits it meanwhile or
where it cannot become as large."""
HALVINGS = (1, 2), (3, 4), (5, 6)
"""A size is halved so often, some at a time, to see where another cost takes over."""
SAME = 0.005
"""Ratios that are nearer to one than this count as one."""
NEAR_A_POWER, STILL_NEAR = 0.06, 0.25
"""An exponent that is nearer to a whole number than this is taken for it, if that of the doubling before is near it,
too."""
SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


@dataclass(frozen=True)
class PowerLaw:
    """Says what a time comes to for large sizes: ``seconds * size**exponent``.

    Attributes:
        limit: what it is limited by then.
        start: the size above which that limits it; None where it does at all sizes that were looked at.
        before: what limits it below; empty for nothing else.
    """

    size: str
    seconds: float
    exponent: int
    limit: str
    start: int | None
    before: str

    def __str__(self) -> str:
        power = f"{self.exponent}".translate(SUPERSCRIPTS) if self.exponent != 1 else ""
        law = with_unit(self.seconds) if self.exponent == 0 else f"{self.seconds:.3g} s · {self.size}{power}"
        below = f"; below {self.size} = {self.start} {self.before}" if self.start is not None else ""
        return f"as {self.size} grows: {law} ({self.limit}){below}"


@dataclass(frozen=True)
class Growth:
    """Holds what doubling one size changes, and what the time comes to for large ones.

    Attributes:
        times: how many times as long it takes.
        limit: what it is limited by then.
        change: the first of the following doublings at which something else limits it, and what; None if nothing does.
        law: None where the time follows no power of the size.
    """

    size: str
    value: int
    times: float
    limit: str
    change: tuple[int, str] | None
    law: PowerLaw | None = None

    @property
    def exponent(self) -> float:
        """The power of the size that the time is proportional to about here."""
        return math.log2(self.times)

    def stays(self, limit: str) -> bool:
        """Returns whether a time, limited by `limit`, stays what it is however often the size is doubled."""
        is_constant = self.law is not None and self.law.exponent == 0 and not self.law.before
        return is_constant and _is_one(self.times) and self.limit == limit and not self.change

    def sentences(self, limit: str) -> list[str]:
        """Returns what doubling changes for a kernel that is limited by `limit`, and the power law."""
        changed = f"; limited by {self.limit} then" if self.limit != limit else ""
        if not changed and self.change:
            changed = f"; limited by {self.change[1]} from {self.size}={self.change[0]} on"
        doubled = f"twice {self.size} takes {times_as_long(self.times).removesuffix(' as')}{changed}"
        return [doubled, *([str(self.law)] if self.law else [])]


def times_as_long(ratio: float) -> str:
    """Returns the words for a ratio of times, to be followed by what it is relative to: "as long as", "1.25 times as
    long as"."""
    return "as long as" if _is_one(ratio) else f"{ratio:.3g} times as long as"


def _is_one(ratio: float) -> bool:
    return abs(ratio - 1) < SAME


@dataclass(frozen=True)
class Point:
    """A prediction at one size: its time, and the time by itself of each cost, the one that limits it first."""

    value: int
    seconds: float
    costs: Mapping[str, float]

    @property
    def limit(self) -> str:
        return next(iter(self.costs), "")


Looking = Callable[[Sequence[int]], Sequence[Point | None]]
"""Gives the predictions at some values of a size; None for those that are not possible."""


def growth(here: Point, name: str, look: Looking) -> Growth | None:
    """Returns how a time grows with a size; None where it can't be doubled or counted, or is no positive number."""
    above = _doubled(here.value, look)
    if not above or not (above[0].seconds > 0 and here.seconds > 0):
        return None
    first = above[0]
    change = next(((each.value, each.limit) for each in above[1:] if each.limit != first.limit), None)
    law = None
    exponent = _power([here, *above])
    if exponent is not None:
        limits = {each.limit for each in (here, *above)}
        is_flat = exponent == 0 and _is_one(first.seconds / here.seconds)
        below = [] if is_flat or len(limits) > 1 else _halved(here.value, above[-1].limit, look)
        law = _law(name, exponent, [*below[::-1], here, *above])
    return Growth(
        size=name, value=here.value, times=first.seconds / here.seconds, limit=first.limit, change=change, law=law
    )


def _doubled(value: int, look: Looking) -> list[Point]:
    """Returns the predictions at doublings of a size, as far as they are possible; see `FOLLOWED`."""
    found = _possible(look([value * 2**times for times in FOLLOWED])) if value > 0 else []
    if found and (len(found) < len(FOLLOWED) or found[0].limit != found[1].limit):
        found += _possible(look([value * 2**times for times in BETWEEN]))
    return sorted(found, key=lambda each: each.value)


def _halved(value: int, limit: str, look: Looking) -> list[Point]:
    """Returns the predictions at halves of a size, up to the first that something else limits."""
    found: list[Point] = []
    for some in HALVINGS:
        points = _possible(look([value // 2**times for times in some if value % 2**times == 0]))
        for point in points:
            found.append(point)
            if point.limit != limit:
                return found
        if len(points) < len(some):
            break
    return found


def _possible(points: Sequence[Point | None]) -> list[Point]:
    """Returns the predictions up to the first that is not possible."""
    found: list[Point] = []
    for point in points:
        if point is None:
            break
        found.append(point)
    return found


def _power(points: Sequence[Point]) -> int | None:
    """Returns the whole number that the exponent comes to over the last doublings; None for no such."""
    last = points[-3:]
    if len(last) < 3 or min(each.seconds for each in last) <= 0:
        return None
    before, found = (math.log2(b.seconds / a.seconds) for a, b in pairwise(last))
    nearest = round(found)
    return nearest if abs(found - nearest) < NEAR_A_POWER and abs(before - nearest) < STILL_NEAR else None


def _law(name: str, exponent: int, points: Sequence[Point]) -> PowerLaw:
    """Returns the law of the last point, and where something else than what limits that limits the time."""
    last = points[-1]
    others = [place for place, point in enumerate(points[:-1]) if point.limit != last.limit]
    start, before = None, ""
    if others:
        low, high = points[others[-1]], points[others[-1] + 1]
        before = low.limit
        start = _meeting(low, high, low.limit, last.limit)
    return PowerLaw(
        size=name,
        seconds=last.seconds / last.value**exponent,
        exponent=exponent,
        limit=last.limit,
        start=start,
        before=before,
    )


def _meeting(low: Point, high: Point, one: str, other: str) -> int:
    """Returns the size between two at which two costs take as long, if both follow powers of it; two digits of it."""
    ratios = [each.costs.get(other, 0.0) / each.costs[one] if each.costs.get(one) else math.inf for each in (low, high)]
    if not (0 < ratios[0] < 1 < ratios[1] < math.inf):
        return high.value
    part = -math.log(ratios[0]) / math.log(ratios[1] / ratios[0])
    value = low.value * (high.value / low.value) ** part
    digits = 1 - math.floor(math.log10(value))
    return int(round(value, digits))
