"""Counting ends within a budget of isl's operations, not of time, so that a kernel always has the same counts.

Users may give one that is so many times the usual; the limits of each step of counting grow with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import islpy as isl

from perfmodel.basics.errors import CountingError, OutOfBudgetError
from perfmodel.counting.usual_budget import GIVEN_MORE, USUAL

_T = TypeVar("_T")

MOST_WORK = 3_000_000
"""Counting a kernel takes no more of isl's operations with the usual budget: about a second of one core."""
MOST_KNOWN = 1024
"""So much is remembered that several counts ask for."""
_STEP, _FIRST_STEP = 64, 4096
"""Operations are told apart so finely, from so many on downwards: that there are still more is found out much sooner
than that there are none."""


class TooHardError(Exception):
    """A part of the work needs more operations than it may have; others may still be done."""


_most = 0
"""The operations that the count under way may take in all; 0 for none under way."""
_budget = USUAL
"""The budget of the count under way."""
_at_least = 0
"""Operations that isl had done when it was last asked."""
_charged = 0
"""Operations of the count under way that isl did for another one before."""


def scaled(most: float) -> int:
    """Returns a limit of counting with the usual budget as it is for the count under way."""
    return math.ceil(most * _budget)


@contextmanager
def within_budget(kernel: str, budget: float = USUAL) -> Iterator[None]:
    """Lets isl do so many times the operations for one kernel that it usually may take.

    Raises:
        OutOfBudgetError: there are no more.
    """
    global _most, _budget
    _count_anew()
    _budget = budget
    _most = most = scaled(MOST_WORK)
    _allow(most)
    try:
        yield
    except (isl.Error, CountingError, TooHardError, TypeError) as error:
        # Who asks isl whether something holds may have taken its refusal for an answer, as islpy does for types.
        if isinstance(error, TooHardError) or _is_over(most):
            raise OutOfBudgetError(
                f"counting kernel {kernel!r} takes too long; count it at sizes that are numbers, or with a larger "
                f"budget {GIVEN_MORE}, or predict it by kernel.as_emulated()"
            ) from error
        raise
    finally:
        _most, _budget = 0, USUAL
        _allow(0)
        _count_anew()


def limited(function: Callable[[], _T], most: float) -> _T:
    """Returns what a function returns that takes no more of isl's operations, with the usual budget.

    Raises:
        TooHardError: it takes more.
    """
    global _most
    before, start, most = _most, _done(), scaled(most)
    _most = start + most if not before else min(start + most, before)
    _allow(_most)
    try:
        return function()
    except (isl.Error, TypeError) as error:  # islpy finds no type for what isl refuses to convert
        if not _is_over(_most):  # what text says is cut off as well: its error is of its syntax
            raise
        raise TooHardError from error
    finally:
        _most = before
        _allow(before)


def limited_and_taken(function: Callable[[], _T], most: float) -> tuple[_T, float]:
    """Returns the same, and how many operations were taken, with the usual budget.

    Raises:
        TooHardError: it takes more.
    """
    before = _done()
    return limited(function, most), (_done() - before) / _budget


@contextmanager
def extended(by: int) -> Iterator[None]:
    """Lets isl do so many more operations, with the usual budget, for what can be left out: the budget of counting is
    not touched."""
    global _most
    before, _most = _most, _done() + scaled(by)
    _allow(_most)
    try:
        yield
    finally:
        _most = before
        _allow(before)


def unless_too_hard(function: Callable[[], _T], most: int) -> _T | None:
    """Returns what a function returns; None where that takes more of isl's operations."""
    try:
        return limited(function, most)
    except TooHardError:
        return None


@contextmanager
def unlimited() -> Iterator[None]:
    """Counts operations without stopping: for Barvinok, which, unlike isl, corrupts memory where they run out."""
    _allow(0)
    try:
        yield
    finally:
        _allow(_most)


def done_once(
    function: Callable[[], _T], known: dict[str, tuple[_T, int]], key: str, *, may_overrun: bool = False
) -> _T:
    """Returns what a function returns that several counts ask for, and that is done only once.

    Each count is charged with the operations that it took, so that none can do more than it would have by itself.

    Args:
        may_overrun: whether it is not stopped where there are no more operations, as Barvinok.

    Raises:
        TooHardError: it takes more operations than there are.
    """
    global _charged
    if key in known:
        found, operations = known[key]
        _charged += operations
        _allow(_most)
        if _most and not may_overrun and _is_over(_most):
            raise TooHardError
        return found
    before = _done()
    found = function()
    if len(known) >= MOST_KNOWN:
        known.clear()
    known[key] = found, _done() - before
    return found


def _count_anew() -> None:
    """Forgets all operations that were done or charged."""
    global _at_least, _charged
    isl.DEFAULT_CONTEXT.reset_operations()
    _at_least = _charged = 0


def _allow(most: int) -> None:
    """Has isl refuse more than so many operations, those that are charged included; 0 for no limit."""
    isl.DEFAULT_CONTEXT.set_max_operations(most and max(most - _charged, 1))


def _done() -> int:
    """Returns how many operations were done or charged; isl does not say, but whether there are more."""
    global _at_least
    low, step = _at_least, _FIRST_STEP
    try:
        while _refuses(low + step):
            low, step = low + step, 2 * step
        while step > _STEP:
            step //= 2
            if _refuses(low + step):
                low += step
    finally:
        _allow(_most)
    _at_least = low
    return low + _STEP


def _is_over(most: int) -> bool:
    """Returns whether isl has done so many operations."""
    try:
        return _refuses(most)
    finally:
        _allow(_most)


def _refuses(most: int) -> bool:
    """Returns whether isl has done so many operations, and leaves them as its limit."""
    _allow(most)
    try:
        isl.Val.zero(isl.DEFAULT_CONTEXT)
    except isl.Error:
        return True
    return False
