"""The preprocessor computes integer constant expressions: ``#if``, ``#pragma unroll N``, sizes in attributes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from perfmodel.basics.errors import SourceError
from perfmodel.opencl_c.arithmetic import BINDING, COMPARISONS, Number, combined
from perfmodel.opencl_c.reading.tokens import NAME, NUMBER, STRING, Token, fault
from perfmodel.opencl_c.types import LONG

DEPTH = 100
_ESCAPES = {"n": 10, "t": 9, "r": 13, "0": 0, "a": 7, "b": 8, "f": 12, "v": 11, "\\": 92, "'": 39, '"': 34, "?": 63}


def evaluate(tokens: Sequence[Token], place: Token) -> int:
    """Returns the value of `tokens` (without spaces, macros expanded); names left over are 0, as C has it."""
    return _Evaluation(tokens, place).run()


def character(text: str) -> int:
    """Returns the value of a character literal such as ``'a'`` or ``'\\x1f'``."""
    body = text[1:-1]
    if len(body) == 1:
        value = ord(body)
    elif body[:1] != "\\":
        raise ValueError(text)
    elif body[1] == "x":
        value = int(body[2:], 16)
    elif body[1] in "01234567":
        value = int(body[1:], 8)
    else:
        value = _ESCAPES[body[1]] if len(body) == 2 and body[1] in _ESCAPES else -1
    if not 0 <= value < 256:
        raise ValueError(text)
    return value - 256 if value > 127 else value


_LITERAL = r'"((?:[^"\\\n]|\\.)*)"'
_LETTER = r"\\x[0-9a-fA-F]+|\\[0-7]{1,3}|\\.|[^\\]"


def characters(text: str) -> list[int]:
    """Returns the values of a string literal's characters, or of several side by side, without the zero at the end.

    Raises:
        ValueError: for what is no such literal.
    """
    if not re.fullmatch(rf"(?:{_LITERAL}\s*)+", text):
        raise ValueError(text)
    return [character(f"'{each}'") for literal in re.findall(_LITERAL, text) for each in re.findall(_LETTER, literal)]


def integer(text: str) -> int:
    """Returns the value of an integer literal with or without a suffix."""
    digits = text.lower().rstrip("ul")
    if digits.startswith("0x"):
        return int(digits[2:], 16)
    if digits.startswith("0b"):
        return int(digits[2:], 2)
    return int(digits, 8) if digits.startswith("0") and digits != "0" else int(digits)


class _Evaluation:
    def __init__(self, tokens: Sequence[Token], place: Token) -> None:
        self.tokens, self.place, self.at, self.depth = tokens, place, 0, 0

    def run(self) -> int:
        if not self.tokens:
            raise self.fault("a value is missing")
        value = self.conditional()
        if self.at < len(self.tokens):
            raise self.fault(f"{self.tokens[self.at].text!r} is out of place")
        return value

    def fault(self, what: str) -> SourceError:
        text = " ".join(token.text for token in self.tokens)
        shown = text if len(text) <= 60 else f"{text[:57]}..."
        return fault(f"in the condition {shown!r}, {what}", self.place)

    def peek(self) -> str:
        return self.tokens[self.at].text if self.at < len(self.tokens) else ""

    def conditional(self) -> int:
        self.depth += 1
        if self.depth > DEPTH:
            raise self.fault(f"parentheses and operators are nested more than {DEPTH} deep")
        value = self.binary(0)
        if self.peek() == "?":
            self.at += 1
            then = self.conditional()
            if self.peek() != ":":
                raise self.fault("the ':' of a '?' is missing")
            self.at += 1
            otherwise = self.conditional()
            value = then if value else otherwise
        self.depth -= 1
        return value

    def binary(self, level: int) -> int:
        value = self.unary()
        while (priority := BINDING.get(self.peek(), -1)) >= level:
            sign = self.peek()
            self.at += 1
            right = self.binary(priority + 1)
            found = _computed(sign, value, right)
            if found is None:
                raise self.fault("the divisor is 0")
            value = int(found)
        return value

    def unary(self) -> int:
        signs = []
        while self.peek() in ("-", "+", "!", "~"):
            signs.append(self.peek())
            self.at += 1
        value = self.primary()
        for sign in reversed(signs):
            value = {"-": -value, "+": value, "!": int(not value), "~": ~value}[sign]
        return value

    def primary(self) -> int:
        if self.at == len(self.tokens):
            raise self.fault("a value is missing")
        token = self.tokens[self.at]
        self.at += 1
        if token.text == "(":
            value = self.conditional()
            if self.peek() != ")":
                raise self.fault("a ')' is missing")
            self.at += 1
            return value
        if token.kind == NAME:
            return 0
        try:
            if token.kind == NUMBER:
                return integer(token.text)
            if token.kind == STRING and token.text[0] == "'":
                return character(token.text)
        except ValueError:
            pass
        raise self.fault(f"{token.text!r} is no integer")


def _computed(sign: str, left: int, right: int) -> Number | None:
    """Returns what an operator makes of two numbers of 64 bits; None for a division by zero."""
    if sign in ("||", "&&"):
        return int(bool(left or right) if sign == "||" else bool(left and right))
    if sign in COMPARISONS:
        return int(COMPARISONS[sign](left, right))
    return combined(sign, left, right, LONG)
