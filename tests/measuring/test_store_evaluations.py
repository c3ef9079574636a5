"""Stores keep a history of evaluations, beside measurements."""

from __future__ import annotations

import lzma
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from perfmodel.basics.errors import StoreError
from perfmodel.measuring.store import Store, StoredEvaluation, merge
from perfmodel.measuring.store.evaluations import by_series, digest_of
from tests.measuring.stores import filled

FIRST = StoredEvaluation(
    created="2026-11-20T12:00:00+00:00",
    version="0.1.0",
    calibration="madd.json",
    digest="0123456789ab",
    device="h200-abcdef",
    device_name="H200",
    protocol="unified",
    kernels="matmul_sq n:384",
    count=2,
    geometric_mean=0.1,
    mean=0.12,
    maximum=0.2,
    within_30_percent=1.0,
    limit=0.15,
)
SECOND = replace(FIRST, created="2026-11-21T12:00:00+00:00", geometric_mean=0.2)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return filled(tmp_path / "times.sqlite", 2)


def of_schema_2(path: Path) -> Path:
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE evaluation")
        connection.execute("PRAGMA user_version = 2")
    connection.close()
    return path


def test_evaluations_are_kept_in_their_order(path: Path) -> None:
    with Store(path) as store:
        assert store.evaluations() == []
        store.put_evaluations([FIRST])
        store.put_evaluations([SECOND, FIRST])
        assert store.evaluations() == [FIRST, SECOND]
        store.vacuum()
    with Store(path, read_only=True) as store:
        assert store.evaluations() == [FIRST, SECOND]
        assert (len(store), store.check()) == (2, [])
    assert (FIRST.fails, SECOND.fails) == (False, True)


def test_series_are_of_one_calibration_device_and_selection() -> None:
    other = replace(SECOND, kernels="matmul_sq n:640")
    later = replace(FIRST, digest="ba9876543210", created="2026-12-01T00:00:00+00:00")
    assert list(by_series([later, other, SECOND, FIRST]).values()) == [[FIRST, SECOND, later], [other]]
    assert digest_of({"a": 1, "b": 2.5}) == digest_of({"b": 2.5, "a": 1}) != digest_of({"a": 1, "b": 2.6})


def test_a_file_of_schema_version_2_is_read_as_it_is_and_written_anew(path: Path, tmp_path: Path) -> None:
    before = of_schema_2(path).read_bytes()
    packed = tmp_path / "packed.sqlite.xz"
    packed.write_bytes(lzma.compress(before))
    for file in (path, packed):
        with Store(file, read_only=True) as store:
            assert (store.schema, len(store), store.evaluations(), store.check()) == (2, 2, [], [])
            with pytest.raises(StoreError, match="only"):
                store.put_evaluations([FIRST])
    assert path.read_bytes() == before
    with Store(path) as store:
        store.put_evaluations([FIRST])
    with Store(path) as store:
        assert (store.schema, len(store), store.evaluations()) == (3, 2, [FIRST])


def test_damaged_ones_are_left_out_and_named(path: Path) -> None:
    with Store(path) as store:
        store.put_evaluations([FIRST, SECOND])
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE evaluation SET content = replace(content, '0.1', '0.3') WHERE number = 1")
    connection.close()
    with Store(path) as store:
        assert store.evaluations() == [SECOND]
        assert store.check() == [f"an evaluation of store {path} is damaged (its checksum is that of other values)"]


def test_what_is_none_is_refused(path: Path) -> None:
    with Store(path) as store:
        with pytest.raises(StoreError, match="geometric_mean is no finite number"):
            store.put_evaluations([FIRST, replace(FIRST, geometric_mean=float("nan"))])
        with pytest.raises(StoreError, match="count is not of type int"):
            store.put_evaluations([replace(FIRST, count=1.5)])  # type: ignore[arg-type]
        assert store.evaluations() == []


def test_merging_takes_them_along(path: Path, tmp_path: Path) -> None:
    with Store(path) as store:
        store.put_evaluations([FIRST])
    with Store(tmp_path / "all.sqlite") as target:
        target.put_evaluations([SECOND])
        merge(target, path)
        merge(target, path)
        assert sorted(target.evaluations(), key=lambda each: each.created) == [FIRST, SECOND]
