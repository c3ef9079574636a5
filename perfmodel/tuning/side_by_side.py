"""Calls a function for many items, in processes side by side."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from perfmodel.basics.errors import PerfmodelError

Item = TypeVar("Item")
Found = TypeVar("Found")


def side_by_side(function: Callable[[Item], Found], items: Sequence[Item], workers: int | None = None) -> list[Found]:
    """Returns what the function gives for each item, in their order.

    Processes are forked, so that the function may be any; what it gives is pickled. It may use no device. Where
    nothing can be forked, or such a process dies, this process does it all.

    Args:
        workers: processes at the same time; as many as there are processors if left out. 1 calls in this process.

    Raises:
        PerfmodelError: for fewer than one; else what the function raises.
    """
    check_workers(workers)
    count = min(workers or os.cpu_count() or 1, len(items))
    if count < 2 or "fork" not in multiprocessing.get_all_start_methods():
        return [function(item) for item in items]
    global _work
    _work = lambda place: function(items[place])  # noqa: E731, which forked processes know without a name
    try:
        with ProcessPoolExecutor(count, multiprocessing.get_context("fork")) as pool:
            return list(pool.map(_done, range(len(items))))
    except BrokenProcessPool:
        return [function(item) for item in items]
    finally:
        _work = None


def check_workers(workers: int | None) -> None:
    if workers is not None and workers < 1:
        raise PerfmodelError(f"workers={workers} are too few; give 1 or more")


_work: Callable[[int], Any] | None = None
"""Gives the result of one item of those that forked processes share out."""


def _done(place: int) -> Any:
    assert _work is not None
    return _work(place)
