"""Splits PTX text into tokens with their lines; comments are left out."""

from __future__ import annotations

import re
from dataclasses import dataclass

from perfmodel.basics.errors import SourceError

_TOKEN = re.compile(
    r"""(?P<blank>[ \t\r\f\0]+|//[^\n]*|/\*.*?\*/)|(?P<line>\n)
    |(?P<string>"(?:[^"\\\n]|\\.)*")
    |(?P<number>0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}|0[xX][0-9a-fA-F]+U?|\d+\.\d*(?:[eE][-+]?\d+)?|\d+U?(?![\w.]))
    |(?P<word>(?:[\w$%.]|::)+)
    |(?P<mark>[,;:{}()\[\]|!@+\-=<>&])""",
    re.VERBOSE | re.DOTALL,
)
MOST_CHARACTERS = 50_000_000


@dataclass(frozen=True)
class Token:
    """One token: its text, its line, and ``word``, ``number``, ``string``, ``mark`` or ``end``."""

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
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise SourceError(f"{text[place]!r} is no part of PTX; give the text as its compiler wrote it", "", line, 1)
        kind = match.lastgroup or ""
        if kind not in ("blank", "line"):
            found.append(Token(kind, match[0], line))
        line += match[0].count("\n")
        place = match.end()
    return [*found, Token("end", "", line)]
