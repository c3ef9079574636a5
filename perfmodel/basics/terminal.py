"""Makes tables that are no wider than the terminal, or than 80 columns where there is none; in colour on a terminal."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import zip_longest
from typing import Literal

GAP = 2
"""Blanks between columns."""
PLAIN_WIDTH = 80
"""Columns of a line where standard output is no terminal."""
LONGEST_NAME = 28
"""A table that is too wide even so is cut between columns, and its first column, which every part has, into so many."""

Column = Sequence[str]
"""A column's header, and its cells."""

_is_fitted: ContextVar[bool] = ContextVar("tables are fitted to a width", default=False)


@contextmanager
def fitted_tables() -> Iterator[None]:
    """Fits tables that are made meanwhile to standard output."""
    before = _is_fitted.set(True)
    try:
        yield
    finally:
        _is_fitted.reset(before)


def is_fitted() -> bool:
    """Returns True if tables are made for standard output now, and not for a file."""
    return _is_fitted.get()


def _is_able() -> bool:
    """Returns True if standard output is a terminal which can more than plain text."""
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") not in ("dumb", "unknown")


def fitted(header: Sequence[str], lines: Sequence[Sequence[str]], width: int | None = None) -> str:
    """Returns a table for standard output, in several parts where its longest words leave no room for one.

    Args:
        width: columns of a line; by default those of the terminal, or 80.
    """
    write, most = _plain, width or PLAIN_WIDTH
    if _is_able():
        from rich.console import Console  # slow to import

        write, most = _coloured, width or Console().width
    return "\n\n".join(write(part, widths) for part, widths in _parts(list(zip(header, *lines, strict=True)), most))


def folded(line: str) -> str:
    """Returns a line as several that fit 80 columns, of which the others are indented by four more."""
    indent = line[: len(line) - len(line.lstrip())]
    return textwrap.fill(
        line.strip(),
        PLAIN_WIDTH,
        initial_indent=indent,
        subsequent_indent=f"{indent}    " if indent else "",
        break_on_hyphens=False,
        break_long_words=False,
    )


def _parts(columns: Sequence[Column], most: int) -> Iterator[tuple[list[Column], list[int]]]:
    """Yields parts of a table that are no wider than `most`, each with the widths of its columns."""
    widths = _widths(columns, most)
    if widths is not None:
        yield list(columns), widths
        return
    name, *others = columns
    first = min(max(map(len, name)), max(LONGEST_NAME, most // 3))
    part: list[Column] = []
    for column in others:
        if part and _widths([*part, column], most - first - GAP) is None:
            yield [name, *part], [first, *_capped(part, most - first - GAP)]
            part = []
        part.append(column)
    yield [name, *part], [first, *_capped(part, most - first - GAP)]


def _capped(columns: Sequence[Column], most: int) -> list[int]:
    """Returns widths of columns; that of a single one may cut its words."""
    widths = _widths(columns, most)
    return widths if widths is not None else [max(1, most)]


def _plain(columns: Sequence[Column], widths: Sequence[int]) -> str:
    header, *rows = (_folded(cells, widths) for cells in zip(*columns, strict=True))
    rule = (" " * GAP).join("-" * width for width in widths)
    return "\n".join([*header, rule, *(line for row in rows for line in row)])


def _folded(cells: Sequence[str], widths: Sequence[int]) -> list[str]:
    """Returns the lines of one row: its first cell to the left, the others to the right."""
    folded = [textwrap.wrap(cell, width, break_on_hyphens=False) for cell, width in zip(cells, widths, strict=True)]
    lines = []
    for first, *others in zip_longest(*folded, fillvalue=""):
        aligned = [text.rjust(width) for text, width in zip(others, widths[1:], strict=True)]
        lines.append((" " * GAP).join([first.ljust(widths[0]), *aligned]).rstrip())
    return lines or [""]


def _coloured(columns: Sequence[Column], widths: Sequence[int]) -> str:
    from rich import box  # slow to import
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False, color_system=None if os.environ.get("NO_COLOR") else "auto")
    is_plain = not (sys.stdout.encoding or "").lower().startswith("utf")
    # A column is followed by one blank of its own, and by the box's.
    table = Table(box=box.ASCII if is_plain else box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), pad_edge=False)
    table.header_style = "bold"
    for place, ((name, *_), width) in enumerate(zip(columns, widths, strict=True)):
        justify: Literal["left", "right"] = "right" if place else "left"
        table.add_column(Text(name), justify=justify, style="" if place else "cyan", width=width, overflow="fold")
    for line in zip(*(cells for _, *cells in columns), strict=True):
        table.add_row(*map(Text, line))
    with console.capture() as capture:
        console.print(table)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def _widths(columns: Sequence[Column], most: int) -> list[int] | None:
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
