"""Finds the addresses that the work-items of a group access, as far as strides or the first groups' addresses tell.

What is asked of addresses, blocks that are touched or words of one bank, is the same for strides that differ by
multiples of a period, if they are so large that what smaller strides reach never meets. So a few classes of strides
stand for a million sizes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from perfmodel.counting.counts import AccessCount, KernelCounts
from perfmodel.counting.evaluation import Block
from perfmodel.counting.recording import Recording
from perfmodel.features.memory_access import ZERO, Floats, Sizes

MOST = 4096
"""The addresses of so many work-items are looked at."""
MOST_CLASSES = 2**16
"""So many classes of strides are remembered."""
DENSE = 2**18
"""Whole numbers in a range of so many are told apart by a table of them."""


class Question(Protocol):
    """A question to the addresses of a group's work-items in one execution of an access; equal ones are hashed alike.

    Attributes:
        period: bytes; the answer is the same if all addresses shift by it, and addresses farther from each other than
            that and an access have nothing to do with each other.
    """

    @property
    def period(self) -> int: ...

    def __call__(self, addresses: NDArray[np.int64], item: int) -> float:
        """Returns a number, from addresses in bytes, the least one in the first block, and the bytes of an access."""

    def __hash__(self) -> int: ...


def of_group(
    counts: KernelCounts, access: AccessCount, sizes: Sizes, question: Question, turns: int = 1
) -> Floats | None:
    """Averages the answers for a group's work-items in one execution of an access; None where their addresses are not
    known.

    Args:
        turns: so many iterations of the innermost loop, whose step has to be known, are asked for together; a
            work-item's addresses in them come one after the other.
    """
    item = access.bits // 8
    strides = [access.local_strides.get(axis, ZERO) for axis in range(len(counts.local_size))]
    if turns > 1:
        strides = [[*access.loop_strides.values()][-1], *strides]
    if None in strides:
        if access.addresses is None or turns > 1:
            return None
        return np.asarray(np.mean([question(np.asarray(group, np.int64), item) for group in access.addresses]))
    which = tuple(count for count in (*counts.local_size, *strides) if count is not None)
    columns: list[Any] = [count(sizes) for count in which]
    if turns > 1:
        columns = [turns, *columns]
    answer = _answer(question, item)
    if isinstance(sizes, Recording):
        return cast(Floats, sizes.call(answer, *columns))
    if not any(map(np.ndim, columns)):
        return np.asarray(answer(*columns))
    key = (Classes, question.period, item, turns, which)
    find = partial(Classes, answer, columns)
    return answer.of_all(sizes.once(key, find) if isinstance(sizes, Block) else find())


@dataclass(frozen=True)
class Answer:
    """The answer to a question as an elementwise function of a group's extents and an access's strides in elements."""

    question: Question
    item: int
    known: dict[tuple[int, ...], float] = field(default_factory=dict, compare=False)

    def __call__(self, *columns: float) -> float:
        return self.of_one([int(column) for column in columns])

    def of_all(self, classes: Classes) -> Floats:
        each = np.array([self.of_one(row) for row in classes.rows])
        found: Floats = each[0] if len(each) == 1 else each[classes.numbers]
        return found

    def of_one(self, row: Sequence[int]) -> float:
        """Returns the answer for one row of extents and strides."""
        labels = tuple(labels_of(row, self.item, self.question.period))
        if labels not in self.known:
            if len(self.known) >= MOST_CLASSES:
                self.known.clear()
            rank = len(row) // 2
            addresses = _affine(row[:rank], [step * self.item for step in row[rank:]])
            self.known[labels] = self.question(addresses, self.item)
        return self.known[labels]


class Classes:
    """The classes of strides that an array of sizes has.

    Attributes:
        numbers: the class at each size.
        rows: extents and strides of one member of each class.
    """

    def __init__(self, answer: Answer, columns: Sequence[Any]) -> None:
        whole = [np.asarray(column, np.int64) for column in columns]
        shape = np.broadcast_shapes(*(column.shape for column in whole))
        numbers, members = _classes(labels_of(whole, answer.item, answer.question.period), shape)
        self.numbers = numbers.reshape(shape)
        self.rows = list(zip(*(np.broadcast_to(c, shape).ravel()[members].tolist() for c in whole), strict=True))


def labels_of(columns: Sequence[Any], item: int, period: int) -> list[Any]:
    """Returns numbers that are the same only for rows with the same answers, elementwise in the columns: extents and
    strides, which are whole numbers or arrays of them.

    A step that leads farther than an access, a period and all smaller steps together puts copies of what these reach
    apart from each other. If all larger steps do so too, no two copies meet, and a period more of it changes nothing.
    """
    rank = len(columns) // 2
    extents, steps = columns[:rank], [s * (e > 1) * item for e, s in zip(columns, columns[rank:], strict=False)]
    apart = item + period
    sizes = [abs(step) for step in steps]
    places, leads = [], []  # how many steps are smaller, and whether one leads so far
    for axis, size in enumerate(sizes):
        reach, place = apart, 0
        for other, (size_, extent) in enumerate(zip(sizes, extents, strict=True)):
            if other != axis:
                # Of two equal steps, neither leads beyond the other.
                reach = reach + (size_ <= size) * (extent - 1.0) * size_
                place = place + (size_ < size)
        places.append(place)
        leads.append(size >= reach)
    labels = list(extents)
    for size, step, place, is_apart in zip(sizes, steps, places, leads, strict=True):
        for size_, leads_ in zip(sizes, leads, strict=True):
            is_apart = is_apart & ((size_ <= size) | leads_)
        label = size + is_apart * (place * period + size % period - size)
        labels.append(4 * label + 2 * is_apart + (step < 0))
    return labels


_answer = lru_cache(maxsize=1024)(Answer)


def _classes(columns: Sequence[NDArray[np.int64]], shape: tuple[int, ...]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Numbers the distinct rows of columns that broadcast to a shape: the number of each row, and one row of each."""
    count = int(np.prod(shape))
    classes, number = np.zeros(count, np.intp), 1
    for column in columns:
        low, high = int(np.min(column)), int(np.max(column))
        if low == high:
            continue
        values = np.broadcast_to(column, shape).ravel() - low
        width = high - low + 1
        if width > DENSE:
            distinct, values = np.unique(values, return_inverse=True)
            width = len(distinct)
        values = values + classes * width
        if number * width > DENSE:
            distinct, classes = np.unique(values, return_inverse=True)
            number = len(distinct)
        else:  # many times as fast as sorting them
            is_there = np.zeros(number * width, bool)
            is_there[values] = True
            places = np.cumsum(is_there) - 1
            classes, number = places[values], int(places[-1]) + 1
    members = np.empty(number, np.intp)
    members[classes] = np.arange(count)
    return classes, members


def _affine(extents: Sequence[int], steps: Sequence[int]) -> NDArray[np.int64]:
    linear = np.arange(min(math.prod(extents), MOST), dtype=np.int64)
    addresses, rest = np.zeros_like(linear), linear
    for extent, step in zip(extents, steps, strict=True):
        addresses, rest = addresses + rest % extent * step, rest // extent
    least: NDArray[np.int64] = addresses - addresses.min()
    return least
