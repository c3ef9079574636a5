"""Objects in one line, as `repr` gives them."""

from __future__ import annotations

WIDEST = 118


def brief(of: object, *parts: str) -> str:
    """Returns one line that says what an object is: its class, and in brackets what tells it from others."""
    name = type(of).__name__
    return f"{name}({shortened(', '.join(filter(None, parts)), WIDEST - len(name) - 2)})"


def shortened(text: str, most: int) -> str:
    """Returns a text in one line, with … for what is beyond so many characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def number_of(count: int, noun: str) -> str:
    """Returns a number with its noun: 1 kernel, 2 kernels."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
