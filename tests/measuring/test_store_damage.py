"""Damage to a store's file: every row is as it was put, or it is said that it is not."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfmodel.basics.errors import StoreError
from perfmodel.measuring.store import Failure, Measurement, Store, StoreWarning
from tests.covering import examples

DEVICE = {"key": "h200-abcdef", "driver": "1.0", "name": "H200", "compute_units": 132}
PROTOCOL = {"name": "unified", "trials": 30, "dropped": 4, "statistic": "min", "budget_s": None, "min_trials": 1}
COMMON: dict[str, Any] = {
    "content": "c" * 64,
    "sizes": {"n": 1024},
    "tags": {"variant": "tiled"},
    "device": DEVICE,
    "protocol": PROTOCOL,
    "created": "2026-11-20T12:00:00+00:00",
    "versions": {"perfmodel": "0.1.0"},
    "conditions": {"host": "node1", "cost_s": 0.25},
}


def measurement(index: int) -> Measurement:
    trials = (9.0, 2e-3 + index * 1.7e-6, 1e-3 + index * 1e-6)
    return Measurement(
        key=f"{index:064x}", kernel="sq", trials=trials, dropped=1, statistic="min", flags=("noisy",), **COMMON
    )


def failure(index: int) -> Failure:
    return Failure(key=f"{index:064x}", kernel="huge", reason="needs 9 GB", **COMMON)


MEASUREMENTS = {row.key: row for row in map(measurement, range(30))}
FAILURES = {row.key: row for row in map(failure, range(100, 105))}


@dataclass(frozen=True)
class Files:
    """A store's file, and its log if it was not closed."""

    main: bytes
    log: bytes | None = None


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Files:
    path = tmp_path_factory.mktemp("closed") / "store.sqlite"
    with Store(path) as store:
        store.put_many(MEASUREMENTS.values(), FAILURES.values())
    return Files(path.read_bytes())


@pytest.fixture(scope="module")
def left_open(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """Returns the files as a process leaves them that is killed after its last `put`."""
    path = tmp_path_factory.mktemp("open") / "store.sqlite"
    with Store(path) as store:
        for row in MEASUREMENTS.values():
            store.put(row)
        store.put_many([], FAILURES.values())
        return Files(path.read_bytes(), Path(f"{path}-wal").read_bytes())


def looked_at(files: Files) -> tuple[list[str], dict[str, Measurement], dict[str, Failure]] | None:
    """Returns what `check` says, and the rows that are found; None where the store is refused, by a StoreError.

    Whatever is not found, is reported; each row that is found is as it was put.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "store.sqlite")
        path.write_bytes(files.main)
        if files.log is not None:
            Path(f"{path}-wal").write_bytes(files.log)
        try:
            with Store(path) as store:
                problems = store.check()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", StoreWarning)
                    found, failed = store.get_many(MEASUREMENTS), store.failures(FAILURES)
                    every = store.get_many(store.keys())
                store.devices()
                if not problems:
                    assert list(store) == list(every.values())
        except StoreError as error:
            refusal = str(error)
        else:
            refusal = ""
    if refusal:
        assert "\n" not in refusal
        return None
    for key, row in [*found.items(), *every.items()]:
        assert row == MEASUREMENTS[key]
    assert all(row == FAILURES[key] for key, row in failed.items())
    assert all("\n" not in problem for problem in problems)
    return problems, found, failed


def flipped(content: bytes, position: int) -> bytes:
    spoilt = bytearray(content)
    spoilt[position // 8] ^= 1 << position % 8
    return bytes(spoilt)


@given(st.data())
@settings(max_examples=examples(50), deadline=None)
def test_a_flipped_bit_is_refused_or_reported_or_changes_nothing(closed: Files, data: st.DataObject) -> None:
    position = data.draw(st.integers(0, 8 * len(closed.main) - 1))
    seen = looked_at(Files(flipped(closed.main, position)))
    if seen is not None and not seen[0]:
        assert seen[1:] == (MEASUREMENTS, FAILURES)


@given(st.data())
@settings(max_examples=examples(30), deadline=None)
def test_a_flipped_bit_under_a_log_never_gives_another_value(left_open: Files, data: st.DataObject) -> None:
    """Everything behind the flipped bit in the log counts as not written, as after a power cut in the midst of it."""
    assert left_open.log is not None
    total = 8 * (len(left_open.main) + len(left_open.log))
    position = data.draw(st.integers(0, total - 1))
    if position < 8 * len(left_open.main):
        looked_at(Files(flipped(left_open.main, position), left_open.log))
    else:
        spoilt = flipped(left_open.log, position - 8 * len(left_open.main))
        seen = looked_at(Files(left_open.main, spoilt))
        if seen is not None and not seen[0]:
            present = list(seen[1])
            assert present == list(MEASUREMENTS)[: len(present)]


@given(st.data())
@settings(max_examples=examples(20), deadline=None)
def test_a_truncated_log_loses_no_more_than_its_end(left_open: Files, data: st.DataObject) -> None:
    assert left_open.log is not None
    length = data.draw(st.integers(0, len(left_open.log)))
    seen = looked_at(Files(left_open.main, left_open.log[:length]))
    assert seen is not None
    problems, found, _ = seen
    assert problems == []
    assert list(found) == list(MEASUREMENTS)[: len(found)]


@given(st.data())
@settings(max_examples=examples(20), deadline=None)
def test_a_truncated_store_is_refused(closed: Files, data: st.DataObject) -> None:
    length = data.draw(st.integers(1, len(closed.main) - 1))
    assert looked_at(Files(closed.main[:length])) is None


@given(st.data())
@settings(max_examples=examples(20), deadline=None)
def test_a_truncated_store_under_its_log(left_open: Files, data: st.DataObject) -> None:
    length = data.draw(st.integers(0, len(left_open.main) - 1))
    looked_at(Files(left_open.main[:length], left_open.log))


def test_each_bit_of_a_rows_values_counts(closed: Files) -> None:
    """A bit is flipped in every byte of one stored row: the row is never taken for sound, and the others are."""
    key = f"{7:064x}"
    text = b"[9.0, 0.0020119"
    start = closed.main.index(text, closed.main.index(b"c" * 64))
    for offset in range(len(text)):
        seen = looked_at(Files(flipped(closed.main, 8 * (start + offset) + offset % 8)))
        assert seen is not None
        problems, found, _ = seen
        assert len(problems) == 1
        assert f"row {key} of" in problems[0]
        assert set(found) == set(MEASUREMENTS) - {key}


# --- healing


def damage(path: Path, change: Callable[[bytes], bytes]) -> None:
    path.write_bytes(change(path.read_bytes()))


@pytest.fixture
def path(tmp_path: Path, closed: Files) -> Path:
    path = tmp_path / "store.sqlite"
    path.write_bytes(closed.main)
    return path


def test_damaged_rows_are_left_out_with_a_warning_and_heal_when_put(path: Path) -> None:
    damage(path, lambda content: content.replace(b"[9.0, 0.0020119,", b"[9.0, 0.0020118,"))
    key = f"{7:064x}"
    with Store(path) as store:
        with pytest.raises(StoreError, match=rf"row {key} of .* is damaged \(its checksum .*\): measure it again"):
            store.get(key)
        with pytest.raises(StoreError, match="is damaged"):
            list(store)
        with pytest.warns(StoreWarning, match=f"row {key} of .* is damaged"):
            assert set(store.get_many(MEASUREMENTS)) == set(MEASUREMENTS) - {key}
        with pytest.warns(StoreWarning):
            assert store.add([MEASUREMENTS[key], measurement(8)]).added == 1
        assert store.check() == []
        assert list(store) == list(MEASUREMENTS.values())


def test_a_damaged_failure_is_left_out_and_heals(path: Path) -> None:
    key = f"{100:064x}"
    damage(path, lambda content: content.replace(b"needs 9 GB", b"needs 8 GB", 1))
    with Store(path) as store:
        with pytest.warns(StoreWarning, match="is damaged"):
            found = store.failures()
        (missing,) = FAILURES.keys() - found.keys()
        store.put_many([], [FAILURES[missing]])
        assert store.failures() == FAILURES
        assert store.check() == []
        assert key in FAILURES


def test_a_damaged_document_is_mended_by_one_row_that_shares_it(path: Path) -> None:
    """All rows are of one device: a flipped bit in its text spoils all of them, and the next `put` mends all."""
    damage(path, lambda content: content.replace(b'"name": "H200"', b'"name": "H300"'))
    with Store(path) as store:
        assert len(store.check()) == len(MEASUREMENTS) + len(FAILURES)
        assert store.devices() == []
        with pytest.warns(StoreWarning):
            assert store.get_many(MEASUREMENTS) == {}
        store.put(measurement(0))
        assert store.check() == []
        assert list(store) == list(MEASUREMENTS.values())


def test_what_is_sound_is_merged_out_of_a_damaged_store(path: Path, tmp_path: Path) -> None:
    damage(path, lambda content: content.replace(b"[9.0, 0.0020119,", b"[9.0, 0.0020118,"))
    before = path.read_bytes()
    from perfmodel.measuring.store import merge

    with Store(tmp_path / "new.sqlite") as store:
        with pytest.warns(StoreWarning, match="is damaged"):
            counts = merge(store, path)
        assert (counts.added, counts.failures) == (29, 5)
        assert store.check() == []
    assert path.read_bytes() == before


# --- files that want to be run


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER t AFTER INSERT ON measurement BEGIN DELETE FROM measurement; END",
        "CREATE VIEW v AS SELECT * FROM measurement",
        "CREATE TABLE other (x)",
        "DROP INDEX measurement_device",
    ],
)
def test_a_file_with_other_tables_than_a_stores_is_refused(path: Path, statement: str) -> None:
    import sqlite3

    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()
    with pytest.raises(StoreError, match=r"is damaged: restore it from a copy.*not those of a store"):
        Store(path)


def test_a_file_is_no_temporary_one(closed: Files, tmp_path: Path) -> None:
    """Nothing is left beside a store that is read only, whatever its state."""
    path = tmp_path / "store.sqlite"
    path.write_bytes(closed.main)
    with Store(path, read_only=True) as store:
        assert len(store) == len(MEASUREMENTS)
        with pytest.raises(StoreError, match="was opened to be read only"):
            store.put(measurement(0))
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    assert path.read_bytes() == closed.main
    shutil.rmtree(tmp_path)
