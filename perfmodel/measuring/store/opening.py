"""Opens a store's file: it is never spoilt, is read where it may not be written, and has the present schema."""

from __future__ import annotations

import lzma
import os
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from perfmodel.basics.errors import StoreError
from perfmodel.measuring.store.schema import APPLICATION_ID, READ_AS_IT_IS, SCHEMA_VERSION, is_as_made, migrate
from perfmodel.measuring.store.untrusted import LONGEST_VALUE, MAGIC, bounded, check_files, distrust, unpack

BUSY_SECONDS = 60.0
DAMAGED = "is damaged: restore it from a copy, or move it away to begin a new one"


@dataclass
class Opened:
    """A connection to a store, and what it stands for.

    Attributes:
        refusal: what is said to who would write; empty where that may be done.
        n_bytes: size of the file, with its log.
        schema: the version of the file, also where only a copy of it was brought to the present one.
        unpacked: the file of a compressed store, gone once it is closed.
    """

    connection: sqlite3.Connection
    refusal: str
    n_bytes: int = 0
    schema: int = SCHEMA_VERSION
    unpacked: Any = None

    def close(self) -> None:
        self.connection.close()
        if self.unpacked is not None:
            self.unpacked.close()


def opened(path: Path | None, name: str, read_only: bool) -> Opened:
    """Opens the store in a file, or one in memory.

    Args:
        name: what errors call it.

    Raises:
        StoreError: for what is no store, or a newer one, or can't be opened.
    """
    with explained(name):
        found = _connected(path, name, read_only)
        try:
            _prepare(found, name)
        except BaseException:
            found.close()
            raise
        return found


@contextmanager
def explained(name: str) -> Iterator[None]:
    """Turns SQLite's errors into a StoreError that says what to do."""
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(f"{name} {_explanation(str(error))}") from error
    except UnicodeDecodeError as error:  # from a damaged schema, whose text SQLite quotes
        raise StoreError(f"{name} {_explanation('malformed text')}") from error
    except UnicodeEncodeError as error:
        raise StoreError(f"{name} keeps nothing that is called {error.object!r}: give a text") from error
    except OSError as error:
        raise StoreError(f"{name} {_explanation(f'unable to open, {error.strerror}')}") from error


def _connected(path: Path | None, name: str, read_only: bool) -> Opened:
    if path is None:
        return Opened(sqlite3.connect(":memory:", isolation_level=None), "")
    if path.is_dir():
        raise StoreError(f"{name} is a folder: give the path of a file in it")
    check_files(path, name)
    if read_only and not path.exists():
        raise StoreError(f"{name} is not there: give the path of a store that measuring made")
    if not path.parent.is_dir():
        raise StoreError(f"{name} cannot be made, its folder is not there: make the folder first")
    if path.suffix == ".xz":
        return _decompressed(path, name)
    mode, refusal = "mode=rwc", "was opened to be read only: open it for writing" if read_only else ""
    if path.exists():
        has_log = Path(f"{path}-wal").exists()
        if not has_log:
            _check_whole(path, name)
        if not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
            # Without a writer's log beside it, the file is read as it lies.
            mode = "mode=ro" if has_log else "immutable=1"
            refusal = "may not be written: copy it to a folder that you may write"
    size = sum(part.stat().st_size for part in (path, Path(f"{path}-wal")) if part.exists())
    connection = _at(path, mode)
    if refusal:
        connection.execute("PRAGMA query_only = ON")
    return Opened(connection=connection, refusal=refusal, n_bytes=size)


def _at(path: Path, mode: str) -> sqlite3.Connection:
    address = f"file:{quote(str(path.absolute()))}?{mode}"
    return sqlite3.connect(address, uri=True, isolation_level=None, timeout=BUSY_SECONDS)


def _decompressed(path: Path, name: str) -> Opened:
    """Opens a decompressed copy that is only read, and gone when the store is closed."""
    unpacked = tempfile.NamedTemporaryFile(suffix=".sqlite")  # noqa: SIM115, closed with the store
    try:
        unpack(path, unpacked)
    except (lzma.LZMAError, EOFError, ValueError) as error:
        unpacked.close()
        raise StoreError(f"{name} {_explanation(f'malformed, {error}')}") from error
    refusal = "is compressed and only read: unpack it by 'xz -dk' and give that file"
    return Opened(
        connection=_at(Path(unpacked.name), "immutable=1"), refusal=refusal, n_bytes=unpacked.tell(), unpacked=unpacked
    )


def _check_whole(path: Path, name: str) -> None:
    """Refuses a file that SQLite would take for sound and write to: a single byte, or a last page that was cut off."""
    with path.open("rb") as file:
        header = file.read(18)
    page_size = int.from_bytes(header[16:18], "big")
    if header and not header.startswith(MAGIC):
        raise StoreError(f"{name} {_explanation('file is not a database')}")
    if page_size > 1 and path.stat().st_size % page_size:
        raise StoreError(f"{name} {_explanation('malformed, its end is missing')}")


def _prepare(found: Opened, name: str) -> None:
    """Brings the file to the present schema, one step after the other, or says why it cannot be used."""
    connection = found.connection
    distrust(connection)
    with bounded(connection, found.n_bytes):
        connection.execute("BEGIN")  # one view of a file that another process may just be making
        found.schema = _version(connection, name)
        answer = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])  # 60 ms for 100,000 rows
        if answer != "ok":
            raise StoreError(f"{name} {_explanation('malformed, ' + answer.splitlines()[-1])}")
        connection.execute("COMMIT")
    if found.schema < (READ_AS_IT_IS if found.refusal else SCHEMA_VERSION):
        if found.refusal:
            _take_a_copy(found)
        _migrate(found.connection, name)
    if not found.refusal:
        found.schema = SCHEMA_VERSION
        _use_write_ahead_log(connection)
        # What was put outlives a power cut, since each commit waits until the disk has the log. With NORMAL, it would
        # outlive only the process.
        connection.execute("PRAGMA synchronous = FULL")


def _take_a_copy(found: Opened) -> None:
    """Brings a store that may not be written to the present schema in a temporary copy, which SQLite deletes."""
    copy = sqlite3.connect("", isolation_level=None)
    found.connection.backup(copy)
    found.connection.close()
    found.connection = copy
    distrust(copy)


def _migrate(connection: sqlite3.Connection, name: str) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        migrate(connection, _version(connection, name))  # asked again: another process may have done it meanwhile
        connection.execute("COMMIT")
    except BaseException:
        connection.rollback()
        raise


def _version(connection: sqlite3.Connection, name: str) -> int:
    """Returns the file's schema version, zero for an empty file; errors for what is no store of ours."""
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    owner = int(connection.execute("PRAGMA application_id").fetchone()[0])
    is_empty = connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None
    if owner != APPLICATION_ID and not (is_empty and owner == version == 0):
        raise StoreError(f"{name} is another program's SQLite file: give another path")
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"{name} has schema version {version} and this perfmodel knows {SCHEMA_VERSION}: "
            "install a newer perfmodel to read it, or give another path"
        )
    if version < 0 or not is_as_made(connection, version):
        raise StoreError(f"{name} {_explanation('malformed, its tables are not those of a store')}")
    return version


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Lets readers and a writer work side by side; a file system that cannot do it keeps SQLite's ordinary journal."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:  # SQLite does not wait by itself for this change
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def _explanation(text: str) -> str:
    remedies = {
        "not a database": "is no SQLite file: give another path, it was left as it is",
        "malformed": DAMAGED,
        "disk I/O": "could not be read or written: free space on its disk and check the disk's health",
        "full": "could not be written, its disk is full: free space and run again, what was measured before is kept",
        "locked": "is locked by another process for too long: wait for that process or end it",
        "readonly": "may not be written: copy it to a folder that you may write",
        "unable to open": "cannot be opened: check that you may read it and write its folder",
        "interrupted": DAMAGED,
        "not authorized": DAMAGED,
        "too big": f"takes no value of more than {LONGEST_VALUE} bytes: measure with fewer trials",
        "closed": "is closed: open it again",
    }
    unknown = "cannot be used: restore it from a copy, or move it away to begin a new one"
    return next((remedy for sign, remedy in remedies.items() if sign in text), unknown) + f" ({shown(text)})"


def shown(value: object) -> str:
    """Returns a value as text that can be printed, in one line, and that tells a terminal nothing."""
    text = " ".join(str(value).encode("utf-8", "replace").decode().splitlines())
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)
