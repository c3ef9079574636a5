"""A model string's tokens, each with its span."""

from __future__ import annotations

import enum
import math
import re
from dataclasses import dataclass

from perfmodel.basics.errors import ModelStringError

MAX_LENGTH = 30_000
MAX_NAME = 500


class Kind(enum.Enum):
    NUMBER = "number"
    PARAMETER = "parameter"
    FEATURE = "feature"
    NAME = "name"
    SYMBOL = "symbol"
    NEWLINE = "end of line"
    END = "end of the model string"


@dataclass(frozen=True, slots=True)
class Token:
    """A token; `text` is its canonical form, `source[start:end]` what was written."""

    kind: Kind
    text: str
    start: int
    end: int

    def describe(self) -> str:
        return self.kind.value if self.kind in (Kind.NEWLINE, Kind.END) else repr(self.text)


_FORBIDDEN = re.compile(r"[^\t\r\n\x20-\x7e]|\r(?!\n)")
_SKIPPED = re.compile(r"(?:[ \t\r]|#[^\n]*)+")
_LINE_ENDS = re.compile(r"\n(?:[ \t\r\n]|#[^\n]*)*")
_NUMBER = re.compile(r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SYMBOL = re.compile(r"\*\*|[-+*/(),=]")
_CONDITION = re.compile(r"(?:<=|>=|<|>)?[A-Za-z0-9_.]+")
_NOT_IN_BRACES = re.compile(r"[^0-9A-Za-z_:;<>=., +*/-]|\Z")
_CONTINUATION = re.compile(r"_[A-Za-z0-9_]*")
_SIGNED_EXPONENT = re.compile(r"(?:<=|>=|<|>)?(?:[0-9.]*\.\.)?[0-9]+\.?[0-9]*[eE]$")
_JOINING = frozenset({"+", "-", "*", "/", "**"})
_EXPECTING = _JOINING | {"=", ","}


def tokenize(source: str) -> list[Token]:
    """Returns the tokens of a model string, ended by an END token.

    A NEWLINE token stands only where a line really ends a statement: not inside parentheses, and not next to an
    operator, so that a sum may be continued on the next line with or without parentheses.

    Raises:
        ModelStringError: a character, number or feature name that is not in the language, or a string that is too long.
    """
    if not isinstance(source, str):
        raise ModelStringError(f"a model string is text, not {type(source).__name__}")
    if len(source) > MAX_LENGTH:
        raise ModelStringError(f"the model string is longer than {MAX_LENGTH} characters", source, MAX_LENGTH)
    forbidden = _FORBIDDEN.search(source)
    if forbidden:
        code = ord(forbidden.group()[0])
        raise ModelStringError(
            f"character U+{code:04X} is not allowed: use printable ASCII only", source, forbidden.start()
        )
    return _joined(_scan(source))


def _scan(source: str) -> list[Token]:
    tokens: list[Token] = []
    position = 0
    while True:
        skipped = _SKIPPED.match(source, position)
        position = skipped.end() if skipped else position
        if position == len(source):
            return [*tokens, Token(Kind.END, "", position, position)]
        token = _token_at(source, position)
        tokens.append(token)
        position = token.end


def _token_at(source: str, start: int) -> Token:
    if match := _LINE_ENDS.match(source, start):
        return Token(Kind.NEWLINE, "\n", start, match.end())
    if match := _NUMBER.match(source, start):
        _check_number(source, match)
        return Token(Kind.NUMBER, match.group(), start, match.end())
    if match := _NAME.match(source, start):
        return _name(source, match)
    if match := _SYMBOL.match(source, start):
        return Token(Kind.SYMBOL, match.group(), start, match.end())
    hint = {"^": ": write ** for a power", "%": ": there is no remainder", "{": ": braces belong into feature names"}
    raise ModelStringError(f"unexpected character {source[start]!r}{hint.get(source[start], '')}", source, start)


def _check_number(source: str, match: re.Match[str]) -> None:
    text = match.group() if len(match.group()) <= 40 else f"{match.group()[:40]}…"
    value = float(match.group())
    if not math.isfinite(value):
        raise ModelStringError(f"number {text} is too large: at most 1.8e308", source, match.start())
    if value == 0 and re.search("[1-9]", re.split("[eE]", match.group())[0]):
        raise ModelStringError(f"number {text} is too small: it would become 0", source, match.start())
    following = source[match.end() : match.end() + 1]
    if following.isalnum() or following == "_":
        raise ModelStringError(f"number {text} runs into a name: write an operator between", source, match.end())


def _name(source: str, match: re.Match[str]) -> Token:
    name, start, end = match.group(), match.start(), match.end()
    if name in ("p_", "f_"):
        raise ModelStringError(f"name {name!r} has nothing after its prefix", source, start)
    kind = {"p_": Kind.PARAMETER, "f_": Kind.FEATURE}.get(name[:2], Kind.NAME)
    if kind is Kind.FEATURE:
        name, end = _conditions(source, name, end)
    if len(name) > MAX_NAME:
        raise ModelStringError(f"name '{name[:40]}…' is longer than {MAX_NAME} characters", source, start)
    return Token(kind, name, start, end)


def _conditions(source: str, name: str, position: int) -> tuple[str, int]:
    """Returns a feature's canonical name and its end: ``:condition`` or ``:{…}``, each of which may be followed by
    ``_…``."""
    while source.startswith(":", position):
        if source.startswith("{", position + 1):
            text, position = _braces(source, position + 1)
        else:
            text, position = _condition(source, position + 1)
        name += ":" + text
        if more := _CONTINUATION.match(source, position):
            name += more.group()
            position = more.end()
    return name, position


def _condition(source: str, start: int) -> tuple[str, int]:
    match = _CONDITION.match(source, start)
    signed = "a sign is allowed only inside braces: write ':{…}'"
    if not match:
        message = (
            signed if source[start : start + 1] in ("+", "-") else "a feature's ':' needs a condition right after it"
        )
        raise ModelStringError(f"{message}, as in ':4', ':<=4', ':1..4' or ':{{0:1}}'", source, start)
    if _SIGNED_EXPONENT.match(match.group()) and re.match("[+-][0-9]", source[match.end() : match.end() + 2]):
        raise ModelStringError(signed, source, match.end())
    return match.group(), match.end()


def _braces(source: str, start: int) -> tuple[str, int]:
    ending = _NOT_IN_BRACES.search(source, start + 1)
    end = ending.start() if ending else len(source)
    if source[end : end + 1] not in ("}", "", "\r", "\n"):
        culprit = source[end]
        message = "braces cannot be nested" if culprit == "{" else f"unexpected character {culprit!r} inside braces"
        raise ModelStringError(message, source, end)
    if not source.startswith("}", end):
        raise ModelStringError("this '{' is not closed on its line", source, start)
    inside = source[start + 1 : end].replace(" ", "")
    if not inside:
        raise ModelStringError("these braces are empty: write a condition, as in '{0:1}'", source, start)
    return f"{{{inside}}}", end + 1


def _joined(tokens: list[Token]) -> list[Token]:
    """Returns the tokens without the ends of lines that do not end a statement."""
    joined: list[Token] = []
    depth = 0
    for index, token in enumerate(tokens):
        depth += (token.text == "(") - (token.text == ")")
        if token.kind is Kind.NEWLINE and (depth > 0 or tokens[index + 1].text in _JOINING):
            continue
        if token.kind is Kind.NEWLINE and (not joined or joined[-1].text in _EXPECTING):
            continue
        joined.append(token)
    if len(joined) > 1 and joined[-2].kind is Kind.NEWLINE:
        del joined[-2]
    return joined
