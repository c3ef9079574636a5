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
from typing import Any, TypeVar

from perfmodel.basics.errors import PerfmodelError
from perfmodel.basics.lifetime import end_with

Item = TypeVar("Item")
Found = TypeVar("Found")
Told = Callable[[int, int], None]

SOON_S = 0.1
"""Calls that take longer in all are worth processes of their own."""


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
    if count < 2 or "fork" not in multiprocessing.get_all_start_methods():
        return _here(function, items, told)
    global _work
    _work = lambda place: function(items[place])  # noqa: E731, which forked processes know without a name
    pool = ProcessPoolExecutor(count, multiprocessing.get_context("fork"), _begin, (os.getpid(),))
    try:
        return _taken([pool.submit(_done, place) for place in range(len(items))], told)
    except BrokenProcessPool:
        return _here(function, items, told)
    finally:
        _work = None
        pool.shutdown(cancel_futures=True)


def soon_or_side_by_side(
    function: Callable[[Item], Found], items: Sequence[Item], soon_s: float = SOON_S
) -> list[Found]:
    """Returns what the function gives for each item, in their order: as many as are done here within `soon_s` seconds,
    and one more, and what is left by `side_by_side`, whose processes take a moment to start."""
    end, found = time.monotonic() + soon_s, list[Found]()
    for place, item in enumerate(items):
        if time.monotonic() >= end:
            return found + side_by_side(function, items[place:])
        found.append(function(item))
    return found


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
