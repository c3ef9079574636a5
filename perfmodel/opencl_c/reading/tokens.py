"""The preprocessor tells these tokens of OpenCL C apart."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from typing import NamedTuple

from perfmodel.basics.errors import SourceError

SPACE, NEWLINE, NAME, NUMBER, STRING, OTHER = "space", "newline", "name", "number", "string", "other"

QUOTE = "quote"
"""A quotation mark may never be closed in text that is left out, such as the apostrophe of an #error."""

# A backslash at a line's end is white space here: no kernel splits a name with one.
_TOKEN = re.compile(
    r"""(?P<space>(?:[ \t\f\v\r]|\\\r?\n|/\*.*?\*/|//(?:[^\n\\]|\\.)*)+)
    |(?P<newline>\n)
    |(?P<name>[A-Za-z_]\w*)
    |(?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)
    |(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<open_comment>/\*)
    |(?P<quote>["'])
    |(?P<other>\#\#|\.\.\.|<<=|>>=|<<|>>|&&|\|\||[-+*/%&|^<>=!]=|\+\+|--|->|.)""",
    re.DOTALL | re.VERBOSE,
)

# A line of which nothing but a comment at its end needs a closer look.
_PLAIN = re.compile(r"""(?:[^#"'\\/\n]|/(?![/*]))*+(?=$|//[^\\\n]*+$)""", re.MULTILINE)
_NAME = re.compile(r"[A-Za-z_]\w*")

LINE = "line"
"""This kind is a whole line in which there is nothing to expand."""

NOWHERE: frozenset[str] = frozenset()


class Token(NamedTuple):
    """A token has its place; `hidden` are the macros that it came from and that may not expand it again."""

    kind: str
    text: str
    file: str
    line: int
    column: int
    hidden: frozenset[str] = NOWHERE


def fault(reason: str, token: Token) -> SourceError:
    return SourceError(reason, token.file, token.line, token.column)


def tokens_of(text: str, file: str, line: int = 1, start: int = 0) -> Iterator[Token]:
    """Iterates over the tokens from `start`, the beginning of a line, on."""
    line_start = start
    for match in _TOKEN.finditer(text, start):
        kind, value, start = match.lastgroup or OTHER, match.group(), match.start()
        yield Token(kind=kind, text=value, file=file, line=line, column=start - line_start + 1)
        if kind == NEWLINE or "\n" in value:
            line += value.count("\n")
            line_start = start + value.rfind("\n") + 1
        elif kind == "open_comment":
            raise SourceError("the comment is never closed: end it with */", file, line, start - line_start + 1)


def lines_of(text: str, file: str, special: Container[str]) -> Iterator[list[Token]]:
    """Iterates over lines as tokens; a line without any of the `special` names is one token, of kind `LINE`.

    Names are looked up when a line is asked for, so that those that earlier lines make special count.
    """
    line, at = 1, 0
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        plain = _PLAIN.match(text, at, end)
        if plain and not any(name in special for name in _NAME.findall(text, at, plain.end())):
            yield [Token(kind=LINE, text=f"{plain.group()}\n", file=file, line=line, column=1)]
            line, at = line + 1, end + 1
            continue
        tokens: list[Token] = []
        for token in tokens_of(text, file, line, at):
            tokens.append(token)
            if token.kind == NEWLINE:
                break
        yield tokens
        line = tokens[-1].line + 1
        at += sum(len(token.text) for token in tokens)


def without_spaces(tokens: list[Token]) -> list[Token]:
    return [token for token in tokens if token.kind not in (SPACE, NEWLINE)]


def stripped(tokens: list[Token]) -> list[Token]:
    """Returns tokens without white space at either end."""
    first, last = 0, len(tokens)
    while first < last and tokens[first].kind in (SPACE, NEWLINE):
        first += 1
    while last > first and tokens[last - 1].kind in (SPACE, NEWLINE):
        last -= 1
    return tokens[first:last]
