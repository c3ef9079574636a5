"""Reads declarations: registers, and variables with what they hold at first."""

from __future__ import annotations

import math
import struct

import numpy as np

from perfmodel.ptx.reading.cursor import Cursor
from perfmodel.ptx.syntax import Symbol, Variable
from perfmodel.ptx.types import TYPES, Type

MOST_REGISTERS = 1_000_000
SPACES = (".global", ".const", ".shared", ".local", ".param", ".tex")
_VECTORS = {".v2": 2, ".v4": 4}


def read_registers(cursor: Cursor, word: str = "") -> dict[str, Type]:
    """Reads ``.reg .b32 %r<5>, %x;`` behind its first word, which may hold the type."""
    type_ = _type_named(cursor, word) if word else read_type(cursor)
    found: dict[str, Type] = {}
    while True:
        name = cursor.word("a register's name")
        if cursor.takes("<"):
            count = cursor.whole("the number of registers")
            cursor.expects(">")
            if not 0 <= count + len(found) <= MOST_REGISTERS:
                cursor.fail(f"{count} registers are declared, more than {MOST_REGISTERS}")
            found |= {f"{name}{number}": type_ for number in range(count)}
        else:
            found[name] = type_
        if not cursor.takes(","):
            break
    cursor.expects(";")
    return found


def read_type(cursor: Cursor) -> Type:
    return _type_named(cursor, cursor.word("a type"))


def _type_named(cursor: Cursor, word: str) -> Type:
    if word.removeprefix(".") not in TYPES:
        cursor.fail(f"type {word!r} is not understood")
    return TYPES[word.removeprefix(".")]


def read_variable(cursor: Cursor, space: str, default: str = "") -> Variable:
    """Reads a variable behind the word of its space, without the semicolon.

    Args:
        default: its name, where none is written.
    """
    align, times = 0, 1
    while cursor.now.text in (".align", ".ptr", ".attribute", *_VECTORS, *SPACES):
        word = cursor.next().text
        if word == ".align":
            align = cursor.whole("an alignment")
        elif word == ".attribute":  # such as .managed: where a variable lies at times
            cursor.expects("(")
            cursor.word("an attribute")
            cursor.expects(")")
        times *= _VECTORS.get(word, 1)
    type_ = read_type(cursor)
    while cursor.now.text in (".ptr", ".align", *SPACES):  # what a pointer among the parameters points to
        if cursor.next().text == ".align":
            cursor.whole("an alignment")
    name = cursor.word("a name") if cursor.now.kind == "word" or not default else default
    extents: list[int] = []
    while cursor.takes("["):
        extents.append(0 if cursor.sees("]") else cursor.whole("a number of elements"))
        cursor.expects("]")
    contents: bytes | None = None
    addresses: dict[int, Symbol] = {}
    n_bytes = max(type_.bytes, 1) * times * math.prod(extents)
    if n_bytes < 0 or n_bytes >= 2**40:
        cursor.fail(f"variable {name!r} has {n_bytes} bytes, which no memory has")
    if cursor.takes("="):
        contents, addresses = _contents(cursor, type_)
        n_bytes = max(n_bytes, len(contents))
        contents = contents.ljust(n_bytes, b"\0") if n_bytes < 2**28 else contents
    align = max(align, type_.bytes * times, 1)
    return Variable(
        name=name,
        space=space.removeprefix("."),
        type=type_,
        n_bytes=n_bytes,
        align=align,
        contents=contents,
        addresses=addresses,
        is_array=bool(extents),
    )


def _contents(cursor: Cursor, type_: Type) -> tuple[bytes, dict[int, Symbol]]:
    """Returns what a variable holds: its bytes, and the symbols whose addresses are among them."""
    found = bytearray()
    addresses: dict[int, Symbol] = {}
    while True:
        while cursor.takes("{"):
            pass
        if cursor.now.kind == "list":
            found += _packed_list(cursor.next().text, type_)
        elif not cursor.sees("}"):
            if cursor.now.kind == "word":
                name = cursor.word("a value")
                if name == "generic" and cursor.takes("("):
                    name = cursor.word("a variable")
                    cursor.expects(")")
                offset = cursor.whole("an offset") if cursor.takes("+") else 0
                addresses[len(found)] = Symbol(name, offset)
                found += bytes(type_.bytes)
            else:
                sign = -1 if cursor.takes("-") else 1
                value = sign * cursor.number("a value").value
                found += _packed(value, type_)
        while cursor.takes("}"):
            pass
        if not cursor.takes(","):
            return bytes(found), addresses


def _packed_list(text: str, type_: Type) -> bytes:
    """Returns the bytes of whole numbers with commas between them, in braces."""
    values = [int(each) for each in text[1:-1].split(",")]
    if type_.is_float or type_.bytes > 8 or max(values) >= 2**64:
        return b"".join(_packed(each, type_) for each in values)
    return np.array(values, np.uint64).astype(f"<u{type_.bytes}").tobytes()


def _packed(value: int | float, type_: Type) -> bytes:
    if type_.is_float:
        letter = {16: "<e", 32: "<f", 64: "<d"}.get(type_.bits, "<f")
        return bytes(struct.pack(letter, value))
    bits: int = int(value) & (2**type_.bits - 1)
    return bits.to_bytes(type_.bytes, "little")
