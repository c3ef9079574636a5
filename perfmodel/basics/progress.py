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
        beyond: the time of what comes after all that is counted, as a part of the time of that.

    Attributes:
        done: how much is, as it was told last.
    """

    def __init__(self, total: int, shown: bool | None, beyond: float = 0.0) -> None:
        from rich.console import Console  # slow to import
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as Bar

        console = Console(stderr=True)
        has_bar = console.is_terminal if shown is None else shown
        self._has_lines = shown is None and not has_bar
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]}"),
        )
        self._bar = Bar(*columns, console=console, transient=True, disable=not has_bar)
        self._task = self._bar.add_task("", total=total, left="")
        self._total, self._beyond = total, beyond
        self.done = self._known = 0
        self._worked_s = 0.0
        self._started = self._moved = self._told = time.monotonic()
        self._is_running = False

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_running:
            self._bar.stop()

    def show(self, doing: str, done: int, is_known: bool = False) -> None:
        """Shows what is done, and how much of it.

        Args:
            is_known: whether what was done since the last time took no time, as it was known from an earlier run.
        """
        now = time.monotonic()
        if done != self.done:
            if is_known:
                self._known += done - self.done
            else:
                self._worked_s += now - self._moved
            self.done, self._moved = done, now
        left = self._left(now)
        if self._has_lines and now - self._told >= LINE_SECONDS:
            self._told = now
            print(f"{doing}: {done} of {self._total}{left and f', {left}'}", file=sys.stderr, flush=True)
        self._bar.update(self._task, completed=done, description=doing, left=left)
        if not self._is_running and now - self._started > PATIENCE_SECONDS:
            self._bar.start()
            self._is_running = True

    def _left(self, now: float) -> str:
        """Returns an estimate of what is left, from the time of what is done; empty where there is none."""
        worked = self.done - self._known
        if worked <= 0 or not self.done < self._total:
            return ""
        whole = self._worked_s / worked * (self._total - self.done + self._beyond * self._total)
        seconds = max(0.0, whole - (now - self._moved))
        return f"about {seconds:.0f} s left" if seconds < 120 else f"about {seconds / 60:.0f} min left"


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
