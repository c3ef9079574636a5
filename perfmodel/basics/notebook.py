"""Writes what notebooks show of objects: small tables in HTML, everything escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from perfmodel.basics.brief import shortened

MOST_ROWS = 12
LONGEST = 160
"""Longer cells are shortened to so many characters."""


class ShownAsText:
    """Objects of this kind are shown in notebooks as `print` shows them, where tables would say less."""

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns a table in HTML; cells are texts."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    cells = [[escape(shortened(cell, LONGEST)) for cell in row] for row in rows]
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in cells)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def titled(title: str, said: str, *tables: str) -> str:
    """Returns tables in HTML below a title in bold and what is said of it."""
    return "\n".join([f"<p><b>{escape(title)}</b>{escape(said)}</p>", *tables])


def folded(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns a table in HTML; a long one is folded behind its title."""
    found = table(header, rows)
    if len(rows) <= MOST_ROWS:
        return found
    return f"<details><summary>{escape(title)}</summary>{found}</details>"
