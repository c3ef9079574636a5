"""A bar with the time that is left, on a terminal, for campaigns that last."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perfmodel.measuring.campaign.work import DeviceWork

PATIENCE_SECONDS = 2.0


class Progress:
    """A progress bar, shown once `PATIENCE_SECONDS` went by.

    Args:
        shown: by default on a terminal.
    """

    def __init__(self, total: int, shown: bool | None) -> None:
        from rich.console import Console  # slow to import
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        console = Console(stderr=True)
        is_shown = console.is_terminal if shown is None else shown
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self._bar = Bar(*columns, console=console, transient=True, disable=not is_shown)
        self._task = self._bar.add_task("measuring", total=total)
        self._started = time.monotonic()
        self._is_running = False

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_running:
            self._bar.stop()

    def show(self, work: Sequence[DeviceWork]) -> None:
        """Updates the bar: how many kernels are done, how many of them failed, and whether disturbed ones are measured
        again."""
        failed = sum(each.failed for each in work)
        description = "measuring disturbed ones again" if any(each.passes for each in work) else "measuring"
        self._bar.update(
            self._task,
            completed=sum(each.done for each in work),
            description=f"{description} ({failed} failed)" if failed else description,
        )
        if not self._is_running and time.monotonic() - self._started > PATIENCE_SECONDS:
            self._bar.start()
            self._is_running = True
