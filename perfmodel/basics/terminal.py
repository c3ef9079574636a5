"""Makes tables for a terminal: in colour, and no wider than it is."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

GAP = 2
"""Blanks between columns."""

_is_fitted: ContextVar[bool] = ContextVar("tables are fitted to a terminal", default=False)


@contextmanager
def fitted_tables() -> Iterator[None]:
    """Fits tables that are made meanwhile to standard output, if that is a terminal which can more than plain text."""
    before = _is_fitted.set(_is_able())
    try:
        yield
    finally:
        _is_fitted.reset(before)


def is_fitted() -> bool:
    """Returns True if tables are made for a terminal now."""
    return _is_fitted.get()


def _is_able() -> bool:
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") not in ("dumb", "unknown")


def fitted(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str | None:
    """Returns a table for the terminal; None if its longest words leave no room for that."""
    from rich import box  # slow to import
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False, color_system=None if os.environ.get("NO_COLOR") else "auto")
    widths = _widths(list(zip(header, *lines, strict=True)), console.width)
    if widths is None:
        return None
    is_plain = not (sys.stdout.encoding or "").lower().startswith("utf")
    # A column is followed by one blank of its own, and by the box's.
    table = Table(box=box.ASCII if is_plain else box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), pad_edge=False)
    table.header_style = "bold"
    for place, (name, width) in enumerate(zip(header, widths, strict=True)):
        justify: Literal["left", "right"] = "right" if place else "left"
        table.add_column(Text(name), justify=justify, style="" if place else "cyan", width=width, overflow="fold")
    for line in lines:
        table.add_row(*map(Text, line))
    with console.capture() as capture:
        console.print(table)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def _widths(columns: Sequence[Sequence[str]], most: int) -> list[int] | None:
    """Returns widths of columns that together are no wider than `most`, none narrower than its longest word; None if
    they can't be.

    What is too much is taken from the widest columns.
    """
    least = [max(len(word) for cell in (*cells, "-") for word in cell.split()) for cells in columns]
    widths = [max(map(len, cells)) for cells in columns]
    room = most - GAP * (len(columns) - 1)
    if sum(least) > room:
        return None
    while sum(widths) > room:
        places = [place for place, width in enumerate(widths) if width > least[place]]
        widths[max(places, key=widths.__getitem__)] -= 1
    return [max(pair) for pair in zip(widths, least, strict=True)]
