"""Draws the formulas of pages as SVG in the page itself, in the colour of its text, so that a site needs no network."""

from __future__ import annotations

from html import escape
from typing import Any

from matplotlib.font_manager import FontProperties
from matplotlib.path import Path as Curves
from matplotlib.textpath import TextPath

SIZE = 10.0
"""Points of the font that outlines are taken from; a page scales them to its own."""
FONT = FontProperties(family="DejaVu Sans", math_fontfamily="cm")
SAID_OTHERWISE = {r"\lVert": r"\Vert", r"\rVert": r"\Vert", r"\bigl": "", r"\bigr": ""}
"""Commands of LaTeX that matplotlib lacks, with those that it has."""
LETTERS = {Curves.MOVETO: "M", Curves.LINETO: "L", Curves.CURVE3: "Q", Curves.CURVE4: "C", Curves.CLOSEPOLY: "Z"}


def svg(latex: str, is_block: bool) -> str:
    """Returns a formula as an SVG element; read aloud, it is its LaTeX.

    Raises:
        ValueError: for a command that matplotlib does not know.
    """
    text = latex
    for said, otherwise in SAID_OTHERWISE.items():
        text = text.replace(said, otherwise)
    outline = TextPath((0, 0), f"${' '.join(text.split())}$", size=SIZE, prop=FONT)
    box = outline.get_extents()
    parts = []
    for points, code in outline.iter_segments(simplify=False, curves=True):
        letter = LETTERS[code]
        parts.append(letter if letter == "Z" else letter + " ".join(f"{x:.2f}" for x in points * _flipped(len(points))))
    left, top, width, height = box.x0, -box.y1, box.width, box.height
    style = f"height:{height / SIZE:.3f}em;vertical-align:{min(box.y0, 0.0) / SIZE:.3f}em;fill:currentColor"
    return (
        f'<svg class="formula{" block" if is_block else ""}" role="img" aria-label="{escape(latex.strip())}" '
        f'style="{style}" viewBox="{left:.2f} {top:.2f} {width:.2f} {height:.2f}"><path d="{"".join(parts)}"/></svg>'
    )


def _flipped(numbers: int) -> list[int]:
    """Returns factors for coordinates, whose second axis points down on a page."""
    return [1, -1] * (numbers // 2)


def setup(app: Any) -> None:
    app.add_html_math_renderer("svg", (_inline, None), (_block, None))


def _inline(page: Any, node: Any) -> None:
    _written(page, svg(node.astext(), is_block=False))


def _block(page: Any, node: Any) -> None:
    _written(page, f'<div class="formula">{svg(node.astext(), is_block=True)}</div>')


def _written(page: Any, element: str) -> None:
    from docutils.nodes import SkipNode  # only where a site is made

    page.body.append(element)
    raise SkipNode
