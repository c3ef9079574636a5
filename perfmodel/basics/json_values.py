"""Makes values such as JSON can hold, and reads JSON that others may have written."""

from __future__ import annotations

import json
import math
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

MAX_BYTES = 2**25
MAX_VALUES = 2_000_000
MAX_DEPTH = 64
"""Limits of a document; each is many times what perfmodel writes."""


def plain(data: Any) -> Any:
    """Returns the same as dictionaries by text, lists, texts and numbers that JSON has; None for other numbers.

    Whatever is called `as_json` gives such values.
    """
    if hasattr(data, "tolist"):  # of numpy
        return plain(data.tolist())
    if isinstance(data, float):
        return data if math.isfinite(data) else None
    if isinstance(data, Mapping):
        return {str(key): plain(value) for key, value in data.items()}
    if isinstance(data, bytes):
        return data.hex()
    if isinstance(data, Sequence) and not isinstance(data, str):
        return [plain(value) for value in data]
    return data


def document(value: Any) -> str:
    """Returns a value as the text of a file that people may look into, too.

    Raises:
        ValueError: for numbers that JSON has not; `plain` takes them out.
    """
    return json.dumps(value, indent=1, allow_nan=False) + "\n"


def reason(error: Exception) -> str:
    """Returns what is wrong with a document in a few words of one line, however long its values are."""
    kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
    words = " ".join(f"{kind}{error}".split())
    return words if len(words) <= 200 else f"{words[:199]}…"


def read(path: Path) -> Any:
    """Returns the document that a file holds, or one ending in ``.gz``.

    Raises:
        OSError: it can't be read.
        ValueError: as `parse`, and for what is no regular file or too large.
    """
    return parse(read_bytes(path))


def parse(document: bytes | str) -> Any:
    """Returns a document's value: numbers are finite, and texts can be printed.

    Raises:
        ValueError: for no JSON of this kind, or of more values or levels than is sane.
    """
    text = document if isinstance(document, str) else document.decode("utf-8-sig")
    if sum(map(text.count, ",[{")) > MAX_VALUES:
        raise ValueError(f"it holds more than {MAX_VALUES} values")
    try:
        value = json.loads(text, parse_constant=_refused, parse_float=_float, parse_int=_int)
    except RecursionError:
        raise ValueError(f"it is nested more than {MAX_DEPTH} deep") from None
    _check(value)
    return value


def read_bytes(path: Path, max_bytes: int = MAX_BYTES) -> bytes:
    """Returns the content of a regular file, unpacked where its name ends in ``.gz``.

    Raises:
        OSError: it can't be read.
        ValueError: it is no regular file, is no whole gzip file, or holds more bytes than that.
    """
    import gzip  # keeps start-up quick
    import zlib

    if not path.is_dir() and not stat.S_ISREG(path.stat().st_mode):  # a folder fails to open, with a reason
        raise ValueError("it is no regular file")
    with path.open("rb") as file:
        packed = gzip.GzipFile(fileobj=file) if path.suffix == ".gz" else file
        try:
            content = packed.read(max_bytes + 1)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise ValueError(str(error)) from error
    if len(content) > max_bytes:
        raise ValueError(f"it holds more than {max_bytes} bytes")
    return content


def _refused(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number of JSON")


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]} is beyond all numbers")
    return value


def _int(text: str) -> int:
    value = int(text) if len(text) <= 20 else 2**64
    if not -(2**63) <= value < 2**64:
        raise ValueError(f"{text[:40]} has more than 64 bits")
    return value


def _check(value: Any) -> None:
    """Raises ValueError for what is nested too deep, and for texts that no file and no terminal takes."""
    level = [value]
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                below.extend(each)
                below.extend(each.values())
            elif isinstance(each, list):
                below.extend(each)
            elif isinstance(each, str) and not each.isascii():
                each.encode()
        if not below:
            return
        level = below
    raise ValueError(f"it is nested more than {MAX_DEPTH} deep")
