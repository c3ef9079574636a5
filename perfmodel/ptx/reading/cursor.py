"""Goes through tokens one by one, and says what is wrong where they are not what they have to be."""

from __future__ import annotations

import struct
from typing import NoReturn

from perfmodel.basics.errors import SourceError
from perfmodel.ptx.reading.tokens import Token, tokens_of
from perfmodel.ptx.syntax import Immediate


class Cursor:
    """A cursor stands at one token of a text."""

    def __init__(self, text: str) -> None:
        self._tokens = tokens_of(text)
        self._place = 0

    @property
    def now(self) -> Token:
        return self._tokens[self._place]

    def next(self) -> Token:
        """Returns this token, and goes on to the next one."""
        found = self._tokens[self._place]
        if found.kind != "end":
            self._place += 1
        return found

    def back(self) -> None:
        """Goes back by one token."""
        self._place -= 1

    def sees(self, *texts: str) -> bool:
        return self.now.text in texts and self.now.kind in ("mark", "word")

    def takes(self, text: str) -> bool:
        """Returns whether the token is this text, and if so, goes beyond it."""
        if self.sees(text):
            self.next()
            return True
        return False

    def expects(self, text: str) -> None:
        if not self.takes(text):
            self.fail(f"{self.now.text or 'the end of the text'!r} stands where {text!r} should")

    def word(self, what: str) -> str:
        """Returns a word that has to be here."""
        if self.now.kind != "word":
            self.fail(f"{self.now.text or 'the end of the text'!r} stands where {what} should")
        return self.next().text

    def whole(self, what: str) -> int:
        """Returns a whole number that has to be here."""
        sign = -1 if self.takes("-") else 1
        number = self.number(what)
        if not isinstance(number.value, int) or number.bits:
            self.fail(f"{number.value} stands where {what}, a whole number, should")
        return sign * int(number.value)

    def number(self, what: str) -> Immediate:
        if self.now.kind != "number":
            self.fail(f"{self.now.text or 'the end of the text'!r} stands where {what} should")
        return number_of(self.next().text)

    def skip_statement(self) -> None:
        """Goes beyond the next semicolon."""
        while self.now.kind != "end" and not self.takes(";"):
            self.next()

    def skip_braces(self) -> None:
        """Goes beyond the braces that open here."""
        depth = 0
        while self.now.kind != "end":
            text = self.next().text
            depth += (text == "{") - (text == "}")
            if depth == 0:
                return

    def fail(self, reason: str, line: int = 0) -> NoReturn:
        raise SourceError(f"{reason}, in PTX", "", line or self.now.line, 1)


def number_of(text: str) -> Immediate:
    """Returns what a number's token means."""
    lower = text.lower().removesuffix("u")
    if lower.startswith("0f"):
        return Immediate(struct.unpack(">f", bytes.fromhex(lower[2:]))[0], 32)
    if lower.startswith("0d"):
        return Immediate(struct.unpack(">d", bytes.fromhex(lower[2:]))[0], 64)
    if lower.startswith("0x"):
        return Immediate(int(lower, 16))
    if "." in lower:
        return Immediate(float(lower), 64)
    is_octal = lower.startswith("0") and not set(lower) - set("01234567")
    return Immediate(int(lower, 8 if is_octal else 10))
