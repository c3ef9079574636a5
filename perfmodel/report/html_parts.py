"""Writes pieces of a report page as HTML; every text from outside is escaped here."""

from __future__ import annotations

from collections.abc import Container, Sequence
from html import escape


def table(
    header: Sequence[str], rows: Sequence[Sequence[str]], kind: str = "numbers", texts: Container[int] = (0,)
) -> str:
    """Returns a table that scrolls by itself where it is wider than the page; the columns `texts` are no numbers."""

    def cells(tag: str, row: Sequence[str]) -> str:
        return "".join(
            f"<{tag}{' class=text' if i in texts else ''}>{escape(cell)}</{tag}>" for i, cell in enumerate(row)
        )

    head = f"<thead><tr>{cells('th', header)}</tr></thead>" if any(header) else ""
    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f'<div class="wide" tabindex="0"><table class="{kind}">{head}<tbody>{body}</tbody></table></div>'


def described(facts: Sequence[tuple[str, str]]) -> str:
    """Returns facts as an HTML table, each beside its name."""
    rows = "".join(f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>' for name, value in facts)
    return f'<table class="conditions"><tbody>{rows}</tbody></table>'


def chart(kind: str, caption: str, *, model: int | None = None, comparison: int | None = None) -> str:
    """Returns a figure in which the script draws a chart; without the script, only the caption is there."""
    of = f'data-model="{model}"' if model is not None else f'data-comparison="{comparison}"'
    return (
        f'<figure data-chart="{kind}" {of}><div class="plot"></div><ul class="legend"></ul>'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


def details(summary: str, content: str) -> str:
    return f"<details><summary>{escape(summary)}</summary>{content}</details>"


def section(title: str, *content: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{''.join(content)}</section>"


def paragraph(text: str, kind: str = "") -> str:
    return f'<p class="{kind}">{escape(text)}</p>' if kind else f"<p>{escape(text)}</p>"


def figures(named: Sequence[tuple[str, str, str]]) -> str:
    """Returns a few figures, large: what each is, its value, a note."""
    cells = (
        f'<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd><dd class="note">{escape(note)}</dd></div>'
        for name, value, note in named
    )
    return f'<dl class="figures">{"".join(cells)}</dl>'
