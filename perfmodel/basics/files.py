"""Tells what stands at a path that somebody named, and writes whole files or leaves what was there."""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def other_than_file(path: str | os.PathLike[str]) -> str:
    """Returns what is at the path instead of a file, such as "a folder" or "a pipe"; empty for a file, and for nothing.

    Opening a pipe waits until somebody writes to it, and reading a device may never end.
    """
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116, which paths that can't be one must not spoil
    except (OSError, ValueError):
        return ""
    return "" if stat.S_ISREG(mode) else _KINDS.get(stat.S_IFMT(mode), "no file")


def check_file(path: str | os.PathLike[str]) -> None:
    """Raises OSError where reading might never begin or end; what is no pipe, socket or device, opening tells."""
    if (what := other_than_file(path)) not in ("", "a folder"):
        raise OSError(errno.EINVAL, f"it is {what} and no file")


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Gives a file to write to, which takes the path when all is written; without a whole one, the path stays as it is.

    What is a link stays one, and a pipe or device is written to as it stands.

    Raises:
        OSError: the file cannot be written.
    """
    target = Path(path).resolve()
    if other_than_file(target):
        with target.open("wb") as file:
            yield file
        return
    partial = target.with_name(f".{target.name}.{os.getpid()}-{threading.get_ident()}")
    try:
        with partial.open("xb") as file:
            yield file
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def write(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Writes a whole file, texts as UTF-8, instead of what was there; see `replacing`."""
    with replacing(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)
