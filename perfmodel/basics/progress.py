"""Shows how far something is, and the time that is left: a bar on a terminal, else a line now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

PATIENCE_SECONDS = 2.0
"""A bar is shown once so much time went by."""
LINE_SECONDS = 10.0
"""A line is written after so much time where there is no terminal, and again after each such time."""


class Progress:
    """Shows on standard error how far something is.

    Args:
        shown: whether anything is; by default a bar on a terminal, and lines where there is none.
    """

    def __init__(self, total: int, shown: bool | None) -> None:
        from rich.console import Console  # slow to import
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        console = Console(stderr=True)
        has_bar = console.is_terminal if shown is None else shown
        self._has_lines = shown is None and not has_bar
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self._bar = Bar(*columns, console=console, transient=True, disable=not has_bar)
        self._task = self._bar.add_task("", total=total)
        self._total = total
        self._started = self._told = time.monotonic()
        self._is_running = False

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_running:
            self._bar.stop()

    def show(self, doing: str, done: int) -> None:
        """Shows what is done, and how much of it."""
        now = time.monotonic()
        if self._has_lines and now - self._told >= LINE_SECONDS:
            self._told = now
            print(f"{doing}: {done} of {self._total}{self._left(done, now)}", file=sys.stderr, flush=True)
        self._bar.update(self._task, completed=done, description=doing)
        if not self._is_running and now - self._started > PATIENCE_SECONDS:
            self._bar.start()
            self._is_running = True

    def _left(self, done: int, now: float) -> str:
        """Returns an estimate of what is left, from the time of what is done; empty where there is none."""
        if not 0 < done < self._total:
            return ""
        seconds = (now - self._started) / done * (self._total - done)
        return f", about {seconds:.0f} s left" if seconds < 120 else f", about {seconds / 60:.0f} min left"


@contextmanager
def showing(doing: str, shown: bool | None = None) -> Iterator[Callable[[int, int], None]]:
    """Yields a function that is told how many of how many things are done, and shows that; see `Progress`."""
    with ExitStack() as stack:
        bars: list[Progress] = []

        def told(done: int, of: int) -> None:
            if not bars:  # the first to be done says how many there are
                bars.append(stack.enter_context(Progress(of, shown)))
            bars[0].show(doing, done)

        yield told
