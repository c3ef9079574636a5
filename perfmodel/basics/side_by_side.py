"""Calls a function for many items, in processes side by side."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from typing import Any, TypeVar

from perfmodel.basics.errors import PerfmodelError
from perfmodel.basics.lifetime import end_with

Item = TypeVar("Item")
Found = TypeVar("Found")
Told = Callable[[int, int], None]

QUICK_S = 0.3
"""Calls that take longer in all are worth processes of their own, which take a moment to start."""
GRACE = 4
"""A call that began before a deadline may take until so many times its seconds are over."""
AGAIN_S = 1.0
"""A call that is too late is told so again and again, as Python drops what is raised while it frees something."""


def unheard(done: int, of: int) -> None:
    """Does nothing with how many items are done."""


def side_by_side(
    function: Callable[[Item], Found], items: Sequence[Item], workers: int | None = None, told: Told = unheard
) -> list[Found]:
    """Returns what the function gives for each item, in their order.

    Processes are forked, so that the function may be any; what it gives is pickled. It may use no device. Where
    nothing can be forked, or such a process dies, this process does it all. Ctrl-C ends them after the items that they
    are at, and so does what the function raises.

    Args:
        workers: processes at the same time; as many as there are processors if left out. 1 calls in this process.
        told: is given the number of items that are done, with all before them, as it grows, and that of all.

    Raises:
        PerfmodelError: for fewer than one; else what the function raises.
    """
    check_workers(workers)
    count = min(workers or processors(), len(items))
    if count < 2 or not _can_fork():
        return _here(function, items, told)
    try:
        return _forked(function, items, count, told)
    except BrokenProcessPool:
        return _here(function, items, told)


def _forked(function: Callable[[Item], Found], items: Sequence[Item], count: int, told: Told) -> list[Found]:
    """Returns what the function gives for each item in so many forked processes; see `side_by_side`."""
    global _work
    _work = lambda place: function(items[place])  # noqa: E731, which forked processes know without a name
    pool = ProcessPoolExecutor(count, multiprocessing.get_context("fork"), _begin, (os.getpid(),))
    try:
        return _taken([pool.submit(_done, place) for place in range(len(items))], told)
    finally:
        _work = None
        pool.shutdown(cancel_futures=True)


class Deadline:
    """Calls functions for items, in processes side by side, and begins no more of them once some seconds are over.

    Args:
        seconds: that all calls may take together, from now on, but for those that were begun.
    """

    def __init__(self, seconds: float) -> None:
        now = time.monotonic()
        self._end, self._last, self._is_quick = now + seconds, now + GRACE * seconds, False

    def done(self, function: Callable[[Item], Found], items: Sequence[Item]) -> list[tuple[Item, Found]]:
        """Returns the items that are done in time, in their order, each with what the function gives for it.

        Forked processes stop in the middle of what is not done after `GRACE` times the seconds. Where all that was
        asked at first is quick, what is asked next is done here, as it is where nothing can be forked or such a process
        dies; this process ends what it is at. Exceptions are passed on.
        """
        if self._is_quick or not items or not _can_fork():
            return self._here(function, items)
        started = time.monotonic()
        try:
            results = _forked(partial(self._in_time, function), items, min(processors(), len(items)), unheard)
        except BrokenProcessPool:
            return self._here(function, items)
        self._is_quick = time.monotonic() - started < QUICK_S
        return [(item, result[0]) for item, result in zip(items, results, strict=True) if result]

    def _here(self, function: Callable[[Item], Found], items: Sequence[Item]) -> list[tuple[Item, Found]]:
        found: list[tuple[Item, Found]] = []
        for item in items:
            if time.monotonic() >= self._end:
                break
            found.append((item, function(item)))
        return found

    def _in_time(self, function: Callable[[Item], Found], item: Item) -> list[Found]:
        """Returns what the function gives, in a list that is empty where it is too late; nothing else in its process
        may use an alarm."""
        now = time.monotonic()
        if now >= self._end:
            return []
        try:
            signal.signal(signal.SIGALRM, _stop)
            signal.setitimer(signal.ITIMER_REAL, self._last - now, AGAIN_S)
            found = function(item)
            signal.setitimer(signal.ITIMER_REAL, 0)
        except _TooLateError:
            return []
        return [found]


class _TooLateError(BaseException):
    """Stops what a forked process is at."""


def _stop(*_: object) -> None:
    raise _TooLateError


def _can_fork() -> bool:
    return "fork" in multiprocessing.get_all_start_methods()


def processors() -> int:
    """Returns the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check_workers(workers: int | None) -> None:
    if workers is not None and workers < 1:
        raise PerfmodelError(f"workers={workers} are too few; give 1 or more")


def _here(function: Callable[[Item], Found], items: Sequence[Item], told: Told) -> list[Found]:
    found = []
    for item in items:
        found.append(function(item))
        told(len(found), len(items))
    return found


def _taken(futures: Sequence[Future[Found]], told: Told) -> list[Found]:
    found = []
    for future in futures:
        found.append(future.result())
        told(len(found), len(futures))
    return found


_work: Callable[[int], Any] | None = None
"""Gives the result of one item of those that forked processes share out."""


def _begin(parent: int) -> None:
    """Leaves Ctrl-C to the process that forked this one, and ends with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with(parent)
    if loopy := sys.modules.get("loopy"):  # its caches are connections to SQLite, which no forked process may use
        loopy.set_caching_enabled(False)


def _done(place: int) -> Any:
    assert _work is not None
    return _work(place)
