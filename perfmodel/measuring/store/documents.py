"""Stores JSON texts that many rows share, such as a device's fingerprint, once each, under a number made of it."""

from __future__ import annotations

import hashlib
import sqlite3

from perfmodel.basics.errors import StoreError


def document_number(text: str) -> int:
    """Returns 48 bits of the text's hash: SQLite stores so many in six bytes."""
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "replace")).digest()[:6], "big")


def put_document(connection: sqlite3.Connection, text: str) -> int:
    """Returns the number under which the text is kept, now if it was not.

    A text that was damaged is mended by this, and with it all rows that share it.

    Raises:
        StoreError: another text has the same number, which does not happen by chance.
    """
    number = document_number(text)
    found = connection.execute("SELECT text FROM document WHERE number = ?", (number,)).fetchone()
    if found is None:
        connection.execute("INSERT INTO document (number, text) VALUES (?, ?)", (number, text))
    elif found[0] != text:
        if isinstance(found[0], str) and document_number(found[0]) == number:
            raise StoreError(f"document {number} of the store is another one: put {text[:60]!r} into a new store")
        connection.execute("UPDATE document SET text = ? WHERE number = ?", (text, number))
    return number
