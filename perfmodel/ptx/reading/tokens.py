"""Splits PTX text into tokens with their lines; comments are left out."""

from __future__ import annotations

import re
from typing import NamedTuple

from perfmodel.basics.errors import SourceError

_TOKEN = re.compile(
    r"""(?P<blank>[ \t\r\f\0]+|//[^\n]*|/\*.*?\*/)|(?P<line>\n)
    |(?P<list>\{\s*(?:0|[1-9]\d*)(?:\s*,\s*(?:0|[1-9]\d*)){15,}\s*\})
    |(?P<string>"(?:[^"\\\n]|\\.)*")
    |(?P<number>0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}|0[xX][0-9a-fA-F]+U?|\d+\.\d*(?:[eE][-+]?\d+)?|\d+U?(?![\w.]))
    |(?P<word>(?:[\w$%.]|::)+)
    |(?P<mark>[,;:{}()\[\]|!@+\-=<>&])""",
    re.VERBOSE | re.DOTALL,
)
MOST_CHARACTERS = 50_000_000


class Token(NamedTuple):
    """One token: its text, its line, and ``word``, ``number``, ``string``, ``mark`` or ``end``; a ``list`` has many
    whole numbers in braces, as tables have them by the hundred thousand."""

    kind: str
    text: str
    line: int


def tokens_of(text: str) -> list[Token]:
    """Returns the tokens of a text, one of kind ``end`` behind the last.

    Raises:
        SourceError: for characters that PTX doesn't have.
    """
    if len(text) > MOST_CHARACTERS:
        raise SourceError(f"the PTX text has more than {MOST_CHARACTERS} characters; give one kernel's")
    found: list[Token] = []
    line, place = 1, 0
    for match in _TOKEN.finditer(text):
        if match.start() != place:
            break
        kind = match.lastgroup or ""
        if kind == "line":
            line += 1
        elif kind != "blank":
            found.append(Token(kind, match[0], line))
        if kind in ("blank", "list"):  # comments go over lines
            line += match[0].count("\n")
        place = match.end()
    if place < len(text):
        raise SourceError(f"{text[place]!r} is no part of PTX; give the text as its compiler wrote it", "", line, 1)
    return [*found, Token("end", "", line)]
