"""The history of evaluations in a store: how well calibrations predicted its kernels, from version to version."""

from __future__ import annotations

import hashlib
import json
import math
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from typing import Any

MOST_EVALUATIONS = 10_000
"""The latest so many are read."""


@dataclass(frozen=True)
class StoredEvaluation:
    """One evaluation of a calibration, as ``perfmodel evaluate --fail-above`` keeps it.

    Attributes:
        created: UTC, ISO 8601.
        version: of perfmodel.
        calibration: how the calibration was named.
        digest: of what the calibration says: 12 hexadecimal digits that change with any of it.
        device, device_name: that the times are of.
        protocol: its name.
        kernels: the words that select the kernels.
        count: kernels that take part in the errors.
        geometric_mean, mean, maximum: of the relative errors.
        within_30_percent: the share of kernels.
        limit: of the geometric mean, above which the evaluation fails.
    """

    created: str
    version: str
    calibration: str
    digest: str
    device: str
    device_name: str
    protocol: str
    kernels: str
    count: int
    geometric_mean: float
    mean: float
    maximum: float
    within_30_percent: float
    limit: float

    @property
    def fails(self) -> bool:
        """True if the error was larger than the limit."""
        return self.geometric_mean > self.limit

    @property
    def series(self) -> tuple[str, str, str]:
        """Calibration, device and kernels, which are the same in evaluations that are compared with each other."""
        return self.calibration, self.device, self.kernels


def digest_of(content: Any) -> str:
    """Returns twelve hexadecimal digits of values as JSON has them."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]


def by_series(evaluations: Iterable[StoredEvaluation]) -> dict[tuple[str, str, str], list[StoredEvaluation]]:
    """Returns the evaluations that are compared with each other together, each in the order of time."""
    found: dict[tuple[str, str, str], list[StoredEvaluation]] = {}
    for each in sorted(evaluations, key=lambda each: each.created):
        found.setdefault(each.series, []).append(each)
    return found


def insert(connection: sqlite3.Connection, evaluation: StoredEvaluation) -> None:
    """Writes an evaluation, within the caller's transaction; one that is there already is not written twice.

    Raises:
        ValueError: for what `read` would refuse.
    """
    text = json.dumps(asdict(evaluation), sort_keys=True)
    _decoded(text)
    known = connection.execute("SELECT 1 FROM evaluation WHERE content = ?", (text,)).fetchone()
    if not known:
        connection.execute(
            "INSERT INTO evaluation (created, content, checksum) VALUES (?, ?, ?)",
            (evaluation.created, text, _checksum(text)),
        )


def read(connection: sqlite3.Connection) -> Iterator[StoredEvaluation | ValueError]:
    """Yields the evaluations of a store in the order of their writing, an error for each that is damaged; none where a
    file is of an earlier schema."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'evaluation'").fetchone():
        return
    rows = connection.execute(
        f"SELECT content, checksum FROM evaluation ORDER BY number DESC LIMIT {MOST_EVALUATIONS}"
    ).fetchall()
    for text, checksum in reversed(rows):
        try:
            if not isinstance(text, str) or _checksum(text) != checksum:
                raise ValueError("its checksum is that of other values")
            yield _decoded(text)
        except (ValueError, TypeError, RecursionError) as error:
            yield ValueError(str(error))


def _decoded(text: str) -> StoredEvaluation:
    content = json.loads(text)
    kinds = {"str": (str,), "int": (int,), "float": (int, float)}
    for each in fields(StoredEvaluation):
        value = content[each.name] if isinstance(content, dict) and each.name in content else None
        if type(value) not in kinds[str(each.type)]:
            raise ValueError(f"{each.name} is not of type {each.type}")
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{each.name} is no finite number")
    return StoredEvaluation(**{each.name: content[each.name] for each in fields(StoredEvaluation)})


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
