"""Rows and files of stores for tests."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from perfmodel.measuring.store import Failure, Measurement, Store

DEVICE = {"key": "h200-abcdef", "driver": "1.0", "name": "H200", "compute_units": 132}


def measurement(key: str = "k0", seconds: float = 1e-3) -> Measurement:
    return Measurement(
        key=key,
        kernel="matmul_sq",
        content="c" * 64,
        sizes={"n": 1024},
        tags={"variant": "tiled"},
        device=DEVICE,
        protocol={"name": "unified", "trials": 30, "dropped": 4, "statistic": "min", "budget_s": None, "min_trials": 1},
        trials=(9.0, seconds * 2, seconds),
        dropped=1,
        statistic="min",
        flags=("noisy",),
        created="2026-11-20T12:00:00+00:00",
        versions={"perfmodel": "0.1.0"},
    )


def failure(key: str = "k0", reason: str = "needs 9 GB") -> Failure:
    row = measurement(key)
    common = {name: getattr(row, name) for name in ("key", "kernel", "content", "sizes", "tags", "device", "protocol")}
    return Failure(**common, reason=reason, created=row.created, versions=row.versions, conditions={"host": "node1"})


def filled(path: Path, count: int = 40) -> Path:
    with Store(path) as store:
        for index in range(count):
            store.put(measurement(f"k{index}", 1e-3 + index * 1e-6))
    return path


def of_schema_1(path: Path) -> Path:
    connection = sqlite3.connect(path)
    connection.executescript(
        """CREATE TABLE measurement (number INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, kernel TEXT NOT NULL,
        content TEXT NOT NULL, sizes TEXT NOT NULL, tags TEXT NOT NULL, device TEXT NOT NULL, protocol TEXT NOT NULL,
        trials TEXT NOT NULL, dropped INTEGER NOT NULL, statistic TEXT NOT NULL, flags TEXT NOT NULL,
        created TEXT NOT NULL, versions TEXT NOT NULL);
        PRAGMA application_id = 1886220132; PRAGMA user_version = 1;
        INSERT INTO measurement VALUES (1, 'k0', 'copy', 'cc', '{"n": 5}', '{}', '{"key": "cpu"}', '{}', '[2.0, 1.0]',
        0, 'min', '[]', '2026-11-20T12:00:00+00:00', '{}');"""
    )
    connection.close()
    return path
