"""Makes the tables of a store, and brings a file of an earlier schema to the present one."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import cache
from typing import Any

from perfmodel.measuring.store.documents import put_document
from perfmodel.measuring.store.rows import COLUMNS, SHARED, Measurement, checksum

APPLICATION_ID = 0x706D6F64  # "pmod": tells a store from other programs' SQLite files
MOST_PARTS = 100
"""No more parts of a schema than these are looked at; no version has as many."""

TABLES = (
    "CREATE TABLE document (number INTEGER PRIMARY KEY, text TEXT NOT NULL)",
    "CREATE TABLE measurement (number INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, kernel TEXT NOT NULL, "
    "content TEXT NOT NULL, sizes TEXT NOT NULL, tags TEXT NOT NULL, device INTEGER NOT NULL, "
    "protocol INTEGER NOT NULL, trials TEXT NOT NULL, dropped INTEGER NOT NULL, statistic TEXT NOT NULL, "
    "flags TEXT NOT NULL, created TEXT NOT NULL, versions INTEGER NOT NULL, conditions TEXT NOT NULL, "
    "checksum TEXT NOT NULL)",
    "CREATE TABLE failure (number INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, kernel TEXT NOT NULL, "
    "content TEXT NOT NULL, sizes TEXT NOT NULL, tags TEXT NOT NULL, device INTEGER NOT NULL, "
    "protocol INTEGER NOT NULL, reason TEXT NOT NULL, created TEXT NOT NULL, versions INTEGER NOT NULL, "
    "conditions TEXT NOT NULL, checksum TEXT NOT NULL)",
    "CREATE INDEX measurement_device ON measurement (device)",
)


def _create(connection: sqlite3.Connection) -> None:
    connection.execute(
        """CREATE TABLE measurement (
            number INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, kernel TEXT NOT NULL, content TEXT NOT NULL,
            sizes TEXT NOT NULL, tags TEXT NOT NULL, device TEXT NOT NULL, protocol TEXT NOT NULL,
            trials TEXT NOT NULL, dropped INTEGER NOT NULL, statistic TEXT NOT NULL, flags TEXT NOT NULL,
            created TEXT NOT NULL, versions TEXT NOT NULL)"""
    )
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")


def _share_documents(connection: sqlite3.Connection) -> None:
    """Migrates to documents by number, conditions, failures, and a checksum, which damaged text does not get."""
    connection.execute("ALTER TABLE measurement RENAME TO measurement_1")
    for statement in TABLES:
        connection.execute(statement)
    names = COLUMNS[Measurement]
    old = connection.execute(
        f"SELECT number, {', '.join(names[:-1])}, '{{}}' FROM measurement_1 ORDER BY number"  # no conditions so far
    )
    for number, *stored in old:
        texts = [_sound_text(value) for value in stored]
        digest = checksum(Measurement, texts) if texts == stored else ""
        row = dict(zip(names, texts, strict=True))
        row |= {name: put_document(connection, str(row[name])) for name in SHARED}
        connection.execute(
            f"INSERT INTO measurement (number, {', '.join(names)}, checksum) VALUES (?, {', '.join('?' * len(names))}, "
            "?) ON CONFLICT DO NOTHING",
            [number, *row.values(), digest],
        )
    connection.execute("DROP TABLE measurement_1")


def _keep_evaluations(connection: sqlite3.Connection) -> None:
    connection.execute(
        "CREATE TABLE evaluation (number INTEGER PRIMARY KEY, created TEXT NOT NULL, content TEXT NOT NULL, "
        "checksum TEXT NOT NULL)"
    )


def _sound_text(value: Any) -> Any:
    """Returns the value without bytes that are no text."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


# Step i takes a file of schema version i to i + 1; files of every published version are kept in the tests.
MIGRATIONS: tuple[Callable[[sqlite3.Connection], None], ...] = (_create, _share_documents, _keep_evaluations)
SCHEMA_VERSION = len(MIGRATIONS)
READ_AS_IT_IS = 2
"""A file of this version or a later one is read without bringing it to the present one."""


def migrate(connection: sqlite3.Connection, version: int) -> None:
    """Brings a file of that version to the present one, within the caller's transaction."""
    for step in MIGRATIONS[version:]:
        step(connection)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def is_as_made(connection: sqlite3.Connection, version: int) -> bool:
    """Returns True if a file has what perfmodel makes for its version, and nothing else; whatever its names claim."""
    return _parts(connection) == _made(version)


@cache
def _made(version: int) -> list[tuple[str, ...]]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for step in MIGRATIONS[:version]:
            step(connection)
        return _parts(connection)


def _parts(connection: sqlite3.Connection) -> list[tuple[str, ...]]:
    """Returns tables, indices and all else that a schema holds, each with its statement, whatever blanks that has."""
    found = connection.execute(f"SELECT type, name, tbl_name, sql FROM sqlite_master LIMIT {MOST_PARTS}")
    return sorted(tuple(" ".join(re.sub(r"([(),])", r" \1 ", str(value)).split()) for value in row) for row in found)
