"""Keeps a store that somebody else wrote from being run, from being anything but files, and from taking much more than
it holds.

As SQLite advises for files of unknown origin (https://sqlite.org/security.html), as far as this Python has it.
"""

from __future__ import annotations

import lzma
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from perfmodel.basics.errors import StoreError
from perfmodel.basics.files import other_than_file

MAGIC = b"SQLite format 3\0"
LONGEST_VALUE = 2**24
"""Bytes that a value, and a row, may have."""
LONGEST_UNPACKED, DENSEST, ALWAYS_UNPACKED = 2**30, 100, 2**24
"""Bytes that a compressed store may unpack to: in all, for each of its own (measured stores have 5 to 13), and however
few it has."""
XZ_MEMORY = 2**27
"""Bytes that unpacking may take: xz itself wants half of it at most, for files that it made."""
JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
OPENING_SECONDS, OPENING_BYTES_PER_SECOND = 2.0, 2e7
"""Processor time that looking through a file may take: so long for any, and for its size."""
_CREATED = {
    sqlite3.SQLITE_CREATE_TRIGGER,
    sqlite3.SQLITE_CREATE_TEMP_TRIGGER,
    sqlite3.SQLITE_CREATE_VIEW,
    sqlite3.SQLITE_CREATE_TEMP_VIEW,
    sqlite3.SQLITE_CREATE_VTABLE,
}


def check_files(path: Path, name: str) -> None:
    """Refuses a store of which a part is no file, or whose journal would have SQLite delete another file.

    Raises:
        StoreError: one of these.
    """
    for part in (path, *(Path(f"{path}{end}") for end in ("-wal", "-shm", "-journal"))):
        if what := other_than_file(part):
            which = "" if part == path else f"its {part.name} "
            raise StoreError(f"{name} cannot be opened, {which}is {what}: give the path of a file")
    journal = Path(f"{path}-journal")
    if journal.exists():
        with journal.open("rb") as file:
            file.seek(max(0, journal.stat().st_size - len(JOURNAL_MAGIC)))
            # Behind this, the name of a file that SQLite takes for a journal of several stores, and deletes.
            if file.read() == JOURNAL_MAGIC and journal.stat().st_size > 512:
                raise StoreError(f"{name} cannot be opened, its journal names another file: remove {journal}")


def unpack(path: Path, into: Any) -> None:
    """Writes what xz has compressed to a file, if it is a database of the size that it says itself.

    Raises:
        ValueError: it is not.
        lzma.LZMAError, EOFError: it is damaged.
    """
    limit = min(LONGEST_UNPACKED, max(ALWAYS_UNPACKED, DENSEST * path.stat().st_size))
    written = size = 0
    for part in _parts(path):
        if not written:
            size = _size(part, limit)
        written += len(part)
        if written > size:
            raise ValueError("more follows than its first page says")
        into.write(part)
    if written < size:
        raise EOFError("its end is missing")
    into.flush()


def _parts(path: Path) -> Iterator[bytes]:
    decompressor = lzma.LZMADecompressor(lzma.FORMAT_XZ, XZ_MEMORY)
    with path.open("rb") as packed:
        while not decompressor.eof:
            given = packed.read(2**16) if decompressor.needs_input else b""
            if decompressor.needs_input and not given:
                raise EOFError("its end is missing")
            if part := decompressor.decompress(given, 2**20):
                yield part


def _size(beginning: bytes, limit: int) -> int:
    """Returns the bytes that a database has, by its first ones."""
    if not beginning.startswith(MAGIC):
        raise ValueError("file is not a database")
    page = int.from_bytes(beginning[16:18], "big")
    size = (2**16 if page == 1 else page) * int.from_bytes(beginning[28:32], "big")
    if size > limit:
        raise ValueError(f"it would unpack to {size} bytes, and at most {limit} are taken: unpack it by 'xz -dk'")
    return size


def distrust(connection: sqlite3.Connection) -> None:
    """Makes a connection run nothing that is in the file, believe no byte of it, and take no value that is too long."""
    for pragma in ("trusted_schema = OFF", "cell_size_check = ON", "mmap_size = 0"):
        connection.execute(f"PRAGMA {pragma}")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_VALUE)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 1)  # which VACUUM needs
    connection.setlimit(sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH, 1)
    if configure := getattr(connection, "setconfig", None):  # since Python 3.12
        configure(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)  # type: ignore[attr-defined,unused-ignore]
        configure(sqlite3.SQLITE_DBCONFIG_ENABLE_TRIGGER, False)  # type: ignore[attr-defined,unused-ignore]
        configure(sqlite3.SQLITE_DBCONFIG_ENABLE_VIEW, False)  # type: ignore[attr-defined,unused-ignore]
    connection.set_authorizer(_allowed)
    # A damaged byte must not hide which row it is in, and not pass for text.
    connection.text_factory = lambda text: text.decode("utf-8", "surrogateescape")


@contextmanager
def bounded(connection: sqlite3.Connection, n_bytes: int) -> Iterator[None]:
    """Ends statements within that take much longer than looking at so many bytes; SQLite then says "interrupted"."""
    end = time.thread_time() + OPENING_SECONDS + n_bytes / OPENING_BYTES_PER_SECOND
    connection.set_progress_handler(lambda: time.thread_time() > end, 10_000)
    try:
        yield
    finally:
        connection.set_progress_handler(None, 0)


def _allowed(action: int, first: str | None, second: str | None, database: str | None, cause: str | None) -> int:
    """Allows nothing that triggers or views ask for, nor that they are made, nor other files."""
    is_other_file = action == sqlite3.SQLITE_ATTACH and bool(first)
    if cause is not None or action in _CREATED or is_other_file or second == "load_extension":
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK
