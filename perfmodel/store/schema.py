"""The tables of a store, and how a file of an earlier schema becomes one of the present."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

from perfmodel.store.documents import put_document
from perfmodel.store.rows import COLUMNS, Measurement, checksum

APPLICATION_ID = 0x706D6F64  # "pmod": tells a store from other programs' SQLite files
SHARED = ("device", "protocol", "versions")
"""Fields that are kept as a document's number."""

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
    """Documents by number, conditions, failures, and a checksum, which damaged text does not get."""
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


def _sound_text(value: Any) -> Any:
    """The value without bytes that are no text."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


# Step i takes a file of schema version i to i + 1; files of every published version are kept in the tests.
MIGRATIONS: tuple[Callable[[sqlite3.Connection], None], ...] = (_create, _share_documents)
SCHEMA_VERSION = len(MIGRATIONS)


def migrate(connection: sqlite3.Connection, version: int) -> None:
    """Brings a file of that version to the present one, within the caller's transaction."""
    for step in MIGRATIONS[version:]:
        step(connection)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def is_as_made(connection: sqlite3.Connection, version: int) -> bool:
    """Whether a file has the tables that its version has, and nothing that SQLite would run by itself."""
    made = connection.execute("SELECT type, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'")
    found = made.fetchall()
    if version == SCHEMA_VERSION:
        return sorted(str(sql) for _, sql in found) == sorted(TABLES)
    return all(kind in ("table", "index") for kind, _ in found) and bool(found) == bool(version)
