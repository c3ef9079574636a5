"""The measurement store: nothing lost, nothing doubled, and no file spoilt."""

from __future__ import annotations

import lzma
import math
import multiprocessing
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import perfmodel
from perfmodel.basics.errors import StoreError
from perfmodel.measuring.protocol import PROTOCOLS, Timing
from perfmodel.measuring.store import Counts, Failure, Measurement, Store, measurement_key

ROOT = Path(perfmodel.__file__).parents[1]
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


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "measurements.sqlite"


def filled(path: Path, count: int = 40) -> Path:
    with Store(path) as store:
        for index in range(count):
            store.put(measurement(f"k{index}", 1e-3 + index * 1e-6))
    return path


# --- compressed files


def test_a_compressed_store_is_read_and_not_written(path: Path, tmp_path: Path) -> None:
    packed = tmp_path / "measurements.sqlite.xz"
    packed.write_bytes(lzma.compress(filled(path).read_bytes()))
    before = packed.read_bytes()
    with Store(path) as plain, Store(packed) as store:
        assert list(store) == list(plain)
        assert store.check() == []
        with pytest.raises(StoreError, match=r"measurements\.sqlite\.xz is compressed and only read: unpack it"):
            store.put(measurement())
    assert packed.read_bytes() == before
    assert sorted(file.name for file in tmp_path.iterdir()) == [path.name, packed.name]


@pytest.mark.parametrize(
    "spoilt", [lambda data: data[:-20], lambda data: b"nothing packed", lambda data: lzma.compress(b"no database")]
)
def test_a_damaged_compressed_store_is_one_sentence(
    spoilt: Callable[[bytes], bytes], path: Path, tmp_path: Path
) -> None:
    packed = tmp_path / "measurements.sqlite.xz"
    packed.write_bytes(spoilt(lzma.compress(filled(path).read_bytes())))
    with pytest.raises(StoreError, match=r"measurements\.sqlite\.xz is (damaged|no SQLite file)") as raised:
        Store(packed)
    assert "\n" not in str(raised.value)
    with pytest.raises(StoreError, match="nowhere"):
        Store(tmp_path / "nowhere.sqlite.xz")


def test_devices_without_a_whole_fingerprint_are_passed_over(path: Path) -> None:
    with Store(filled(path, 3)) as store:
        assert store.devices() == []


# --- what is put is what is got

texts = st.text(max_size=8)
times = st.floats(1e-12, 1e6)
measurements = st.builds(
    Measurement,
    key=st.text(min_size=1, max_size=8),
    kernel=texts,
    content=texts,
    sizes=st.dictionaries(texts, st.integers(-(2**70), 2**70), max_size=3),
    tags=st.dictionaries(texts, texts, max_size=3),
    device=st.dictionaries(
        texts, st.none() | st.booleans() | st.integers() | texts | st.lists(st.integers()), max_size=3
    ),
    protocol=st.dictionaries(texts, st.none() | times, max_size=2),
    trials=st.lists(times, min_size=3, max_size=5).map(tuple),
    dropped=st.integers(0, 2),
    statistic=st.sampled_from(["min", "mean", "median"]),
    flags=st.lists(texts, max_size=2).map(tuple),
    created=texts,
    versions=st.dictionaries(texts, texts, max_size=2),
    conditions=st.dictionaries(texts, times | texts | st.lists(st.integers(), max_size=2), max_size=2),
)


@given(st.lists(measurements, max_size=6))
@settings(deadline=None)
def test_a_store_is_an_ordered_mapping_by_key(written: list[Measurement]) -> None:
    expected: dict[str, Measurement] = {}
    with Store() as store:
        for one in written:
            store.put(one)
            expected[one.key] = one
        assert list(store) == list(expected.values())
        assert len(store) == len(expected)
        assert store.get_many([*expected, "absent key"]) == expected
        assert all(store.get(key) == one for key, one in expected.items())
        assert store.check() == []


def test_measurements_outlive_the_process_and_come_in_order(path: Path) -> None:
    filled(path, count=3)
    with Store(path) as store:
        store.put(measurement("k1", 5.0))
        assert [(one.key, one.seconds) for one in store] == [("k0", 1e-3), ("k1", 5.0), ("k2", 1e-3 + 2e-6)]
        assert store.get("k9") is None


def test_more_keys_than_one_query_takes() -> None:
    with Store() as store:
        for index in range(1203):
            store.put(measurement(f"k{index}"))
        keys = [f"k{index}" for index in range(1300)] + ["k0", "k0"]
        assert set(store.get_many(iter(keys))) == {f"k{index}" for index in range(1203)}
        assert store.get_many([]) == {}


def test_the_time_is_the_one_that_the_timing_had() -> None:
    trials = (5.0, 3.0, 2.0, 4.0)
    for statistic in ("min", "mean", "median"):
        stored = replace(measurement(), trials=trials, dropped=1, statistic=statistic)
        assert stored.seconds == Timing(trials, 1, statistic).seconds


def test_numpy_numbers_are_stored_as_numbers() -> None:
    sizes: dict[str, Any] = {"n": np.int64(7)}
    with Store() as store:
        store.put(replace(measurement(), sizes=sizes, trials=(np.float64(2.0), np.float64(1.0))))
        assert store.get("k0") == replace(measurement(), sizes={"n": 7}, trials=(2.0, 1.0))


@pytest.mark.parametrize("trials", [(), (1.0,), (1.0, math.nan), (1.0, 0.0), (math.inf, 1.0), (-1.0, 1.0)])
def test_times_that_mean_nothing_are_not_stored(trials: tuple[float, ...]) -> None:
    with Store() as store:
        with pytest.raises(StoreError, match="kernel 'matmul_sq' cannot be put into the store in memory"):
            store.put(replace(measurement(), trials=trials))
        assert len(store) == 0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sizes": {"n": 1.5}}, "sizes: not all are of type int"),
        ({"tags": {"n": 1}}, "tags: not all are of type str"),
        ({"flags": (1,)}, "flags: not all are texts"),
        ({"trials": ("1.0", 2.0)}, "trials: not all are numbers"),
        ({"dropped": 1.5}, "dropped: "),
        ({"dropped": -1}, "dropped: less than none"),
        ({"kernel": "\ud800"}, "kernel: "),
        ({"kernel": None}, "kernel: not a str"),
        ({"conditions": {"host": object()}}, "conditions: a object cannot be stored"),
        ({"device": {"name": 5}}, "device: its name is not of type str"),
    ],
)
def test_what_is_no_measurement_is_not_stored(changes: dict[str, Any], words: str) -> None:
    with Store() as store:
        with pytest.raises(StoreError, match=words):
            store.put_many([measurement("k1"), replace(measurement(), **changes)])
        assert len(store) == 0


# --- failures, and several rows at once


def failure(key: str = "k0", reason: str = "needs 9 GB") -> Failure:
    row = measurement(key)
    common = {name: getattr(row, name) for name in ("key", "kernel", "content", "sizes", "tags", "device", "protocol")}
    return Failure(**common, reason=reason, created=row.created, versions=row.versions, conditions={"host": "node1"})


def test_failures_give_way_to_measurements_and_not_the_other_way(path: Path) -> None:
    with Store(path) as store:
        store.put_many([measurement("k1")], [failure("k0"), failure("k1"), failure("k2")])
        assert store.failures() == {"k0": failure("k0"), "k2": failure("k2")}
        store.put_many([], [failure("k0", "needs 8 GB")])
        assert store.failures(["k0", "k1", "k9"]) == {"k0": failure("k0", "needs 8 GB")}
        store.put(measurement("k0"))
    with Store(path) as store:
        assert store.failures() == {"k2": failure("k2")}
        assert set(store.get_many(["k0", "k1", "k2"])) == {"k0", "k1"}
        assert store.keys() == ["k1", "k0"]


def test_a_failure_says_why() -> None:
    with Store() as store, pytest.raises(StoreError, match="a failure says why"):
        store.put_many([], [failure(reason="")])


def test_all_are_put_or_none(path: Path) -> None:
    with Store(filled(path, 2)) as store:
        before = list(store)
        with pytest.raises(StoreError, match="cannot be put"):
            store.put_many([measurement("k0", 5.0), replace(measurement("k7"), trials=())], [failure("k8")])
        assert list(store) == before
        assert store.failures() == {}


def test_what_is_there_is_not_added(path: Path) -> None:
    with Store(filled(path, 2)) as store:
        before = list(store)
        store.put_many([], [failure("k2")])
        rows = [measurement("k0", 5.0), measurement("k2"), measurement("k3"), measurement("k3", 5.0)]
        assert store.add(rows, [failure("k1"), failure("k4"), failure("k2")]) == Counts(added=2, failures=1, known=4)
        assert list(store) == [*before, measurement("k2"), measurement("k3")]
        assert store.failures() == {"k4": failure("k4")}


def test_what_rows_share_is_kept_once(path: Path) -> None:
    """A device's fingerprint of 100,000 characters, in 200 rows, is in the file once."""
    device = DEVICE | {"vendor": "v" * 100_000}
    with Store(path) as store:
        store.put_many(replace(measurement(f"k{index}"), device=device) for index in range(200))
    assert path.stat().st_size < 400_000
    with Store(path) as store:
        assert all(row.device == device for row in store)


def test_a_vacuum_leaves_every_row_and_no_gaps(path: Path) -> None:
    with Store(path) as store:
        store.put_many([replace(measurement(f"k{i}"), device=DEVICE | {"vendor": "v" * 9999}) for i in range(9)])
        store.put_many([measurement(f"k{i}") for i in range(9)], [failure("k99")])
        expected = list(store)
        before, after = store.vacuum()
        assert after < before
        assert list(store) == expected
        assert store.failures() == {"k99": failure("k99")}
        assert store.check() == []
    assert path.stat().st_size == after


# --- keys


@given(st.permutations(["n", "m", "k"]), st.permutations(list(DEVICE)))
def test_a_key_does_not_depend_on_order_or_on_how_numbers_are_held(sizes: list[str], device: list[str]) -> None:
    values = {"n": 1, "m": 2, "k": 3}
    expected = measurement_key("c", values, DEVICE, PROTOCOLS["unified"])
    shuffled: dict[str, Any] = {name: np.int32(values[name]) for name in sizes}
    assert measurement_key("c", shuffled, {name: DEVICE[name] for name in device}, PROTOCOLS["unified"]) == expected


def test_a_key_tells_apart_what_changes_a_time_and_nothing_else() -> None:
    protocol = PROTOCOLS["unified"]
    keys = [
        measurement_key("c", {"n": 1}, DEVICE, protocol),
        measurement_key("d", {"n": 1}, DEVICE, protocol),
        measurement_key("c", {"n": 2}, DEVICE, protocol),
        measurement_key("c", {"m": 1}, DEVICE, protocol),
        measurement_key("c", {"n": 1}, DEVICE | {"key": "other"}, protocol),
        measurement_key("c", {"n": 1}, DEVICE | {"driver": "1.1"}, protocol),
        measurement_key("c", {"n": 1}, DEVICE, replace(protocol, trials=31)),
    ]
    assert len(set(keys)) == len(keys)
    assert measurement_key("c", {"n": 1}, DEVICE | {"compute_units": 1}, replace(protocol, name="mine")) == keys[0]


def test_keys_of_earlier_versions_stay_valid() -> None:
    key = measurement_key("c", {"n": 1024}, DEVICE, PROTOCOLS["unified"])
    assert key == "9599609512309be1dc3660faf0a9b5c339f8f657c31ef5e23aff60eef7bf32bc"


# --- several processes, crashes


def write_many(path: Path, first: int) -> None:
    with Store(path) as store:
        for index in range(first, first + 30):
            if index % 3:
                store.put(measurement(f"k{index}"))
            else:
                store.put_many([measurement(f"k{index}")], [failure(f"k{index}"), failure(f"f{index}")])


def write_and_die(path: Path) -> None:
    store = Store(path)
    store.put(measurement("last words"))
    os.kill(os.getpid(), signal.SIGKILL)


def test_processes_that_write_at_once_lose_and_double_nothing(path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    writers = [spawn.Process(target=write_many, args=(path, first)) for first in (0, 0, 15, 30)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0] * 4
    with Store(path) as store:
        assert {one.key for one in store} == {f"k{index}" for index in range(60)}
        assert len(store) == 60
        assert set(store.failures()) == {f"f{index}" for index in range(0, 60, 3)}
        assert store.check() == []


def test_a_killed_process_loses_nothing(path: Path) -> None:
    process = multiprocessing.get_context("spawn").Process(target=write_and_die, args=(path,))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    with Store(path) as store:
        assert store.get("last words") == measurement("last words")


def test_a_reader_sees_what_another_has_put(path: Path) -> None:
    with Store(path) as writer, Store(path) as reader:
        writer.put(measurement())
        assert reader.get("k0") == measurement()


def test_a_closed_store_is_a_single_file(path: Path) -> None:
    filled(path)
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_closed_store_says_so(path: Path) -> None:
    store = Store(path)
    store.close()
    store.close()
    with pytest.raises(StoreError, match="is closed: open it again"):
        store.get("k0")


# --- files that cannot be used, and are left as they are


def test_a_folder_and_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is a folder: give the path of a file in it"):
        Store(tmp_path)
    with pytest.raises(StoreError, match="its folder is not there: make the folder first"):
        Store(tmp_path / "none" / "store.sqlite")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"x", b"recipe,seconds\nmatmul,1.5\n" * 200, os.urandom(9000)])
def test_a_file_that_is_no_database(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"is no SQLite file: give another path, it was left as it is") as error:
        Store(path)
    assert str(path) in str(error.value)
    assert path.read_bytes() == content


def test_another_programs_database(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE measurement (key TEXT)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="is another program's SQLite file: give another path"):
        Store(path)
    assert path.read_bytes() == before


def test_a_newer_schema(path: Path) -> None:
    filled(path)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"schema version 99 and this perfmodel knows 2: install a newer perfmodel"):
        Store(path)
    assert path.read_bytes() == before


def test_a_file_of_schema_version_1_is_read(path: Path) -> None:
    with Store(of_schema_1(path)) as store:
        (one,) = store
        assert (one.kernel, one.sizes, one.seconds, one.conditions) == ("copy", {"n": 5}, 1.0, {})
        store.put(measurement("k1"))
        assert len(store) == 2
        assert store.check() == []
    with Store(path) as store:
        assert (store.schema, len(store)) == (2, 2)


def test_a_file_of_schema_version_1_that_is_only_read_stays_as_it_is(path: Path, tmp_path: Path) -> None:
    before = of_schema_1(path).read_bytes()
    packed = tmp_path / "packed.sqlite.xz"
    packed.write_bytes(lzma.compress(before))
    for file in (path, packed):
        with Store(file, read_only=True) as store:
            assert store.schema == 1
            assert [(one.kernel, one.seconds) for one in store] == [("copy", 1.0)]
            assert store.check() == []
            with pytest.raises(StoreError, match=r"opened to be read only|compressed and only read"):
                store.put(measurement())
    assert path.read_bytes() == before
    assert sorted(file.name for file in tmp_path.iterdir()) == [path.name, packed.name]


def test_text_that_was_damaged_in_schema_version_1_stays_damaged(path: Path) -> None:
    """Schema 1 had no checksums; bytes that are no text are damage all the same."""
    damaged = of_schema_1(path).read_bytes().replace(b"copy", b"co\xffy")
    path.write_bytes(damaged)
    with Store(path) as store:
        (problem,) = store.check()
        assert "row k0 of" in problem


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


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return filled(tmp_path_factory.mktemp("sound") / "sound.sqlite")


def use(path: Path) -> list[Measurement]:
    with Store(path) as store:
        return list(store)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_truncated_file_is_refused_and_left_as_it_is(sound: Path, data: st.DataObject) -> None:
    whole = sound.read_bytes()
    length = data.draw(st.integers(1, len(whole) - 1))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "store.sqlite")
        path.write_bytes(whole[:length])
        with pytest.raises(StoreError, match=r"is damaged: restore it from a copy|is no SQLite file"):
            use(path)
        assert path.read_bytes() == whole[:length]


def spoilt(content: bytes, place: str) -> bytes:
    if place == "schema":
        return content.replace(b"tablemeasurement", b"tablem\xcb\xffsurement").replace(
            b"CREATE TABLE", b"CREATE T\xffBLE"
        )
    start = {"page header": 3 * 4096, "cells of a page": 3 * 4096 + 8}[place]
    return content[:start] + b"\xff" * 8 + content[start + 8 :]


@pytest.mark.parametrize("place", ["schema", "page header", "cells of a page"])
def test_a_spoilt_file_is_refused_and_left_as_it_is(sound: Path, path: Path, place: str) -> None:
    content = spoilt(sound.read_bytes(), place)
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"is damaged: restore it from a copy, or move it away"):
        Store(path)
    assert path.read_bytes() == content


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_flipped_bytes_never_give_another_kind_of_error(sound: Path, data: st.DataObject) -> None:
    content = bytearray(sound.read_bytes())
    for position in data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=20)):
        content[position] ^= data.draw(st.integers(1, 255))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "store.sqlite")
        path.write_bytes(content)
        with suppress(StoreError), Store(path) as store:
            if not store.check():
                assert all(one.seconds > 0 for one in store)


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("sizes", "{", r"row k7 of store .* is damaged \(sizes: .*\): measure it again"),
        ("tags", "[]", r"row k7 of .*tags: not a dict"),
        ("trials", "[1.0, null]", r"row k7 of .*trials: "),
        ("trials", "[1.0]", r"row k7 of .*no time"),
        ("trials", "[-1.0, -2.0]", r"row k7 of .*not all positive times"),
        ("statistic", "mode", r"row k7 of .*'mode' of"),
        ("device", b"\xff\xfe{", r"row k7 of .*device: "),
    ],
)
def test_a_damaged_row_is_named_and_can_be_measured_again(path: Path, column: str, value: Any, words: str) -> None:
    filled(path, count=10)
    connection = sqlite3.connect(path)
    text = "CAST(? AS TEXT)" if isinstance(value, bytes) else "?"
    connection.execute(f"UPDATE measurement SET {column} = {text} WHERE key = 'k7'", [value])
    connection.commit()
    connection.close()
    with Store(path) as store:
        (problem,) = store.check()
        with pytest.raises(StoreError, match=words) as error:
            store.get("k7")
        assert str(error.value) == problem
        assert store.get("k6") is not None
        store.put(measurement("k7"))
        assert store.check() == []


def test_an_index_that_misses_a_row_is_found(sound: Path, path: Path) -> None:
    content, count = re.subn(rb"k39(?!matmul)", b"k3z", sound.read_bytes())
    assert count == 1
    path.write_bytes(content)
    with Store(path) as store:
        problems = store.check()
    assert problems
    assert all(str(path) in problem and "is damaged: row" in problem for problem in problems)


# --- disks and permissions


@pytest.fixture
def readable() -> Iterator[Path]:
    """Yields a folder that any user may read, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def as_somebody(code: str, *arguments: object) -> str:
    """Returns what a process that owns nothing prints: of another user where the tests run as root."""
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        env={"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


READ_THEN_WRITE = """
import os, sys
from dataclasses import replace
from perfmodel.basics.errors import StoreError
from perfmodel.measuring.store import Store
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
try:
    store = Store(sys.argv[1])
    row = next(iter(store))
    print(len(store), store.check(), row.kernel)
    store.put(replace(row, key="new"))
except StoreError as error:
    print(error)
"""


@pytest.mark.parametrize(("folder_mode", "file_mode"), [(0o555, 0o444), (0o555, 0o644), (0o755, 0o444)])
def test_a_store_that_may_not_be_written_is_read(readable: Path, folder_mode: int, file_mode: int) -> None:
    path = filled(readable / "store.sqlite", count=5)
    path.chmod(file_mode)
    readable.chmod(folder_mode)
    read, refused = as_somebody(READ_THEN_WRITE, path).splitlines()
    assert read == "5 [] matmul_sq"
    assert refused == f"store {path} may not be written: copy it to a folder that you may write"


def test_a_store_that_may_not_be_read(readable: Path) -> None:
    path = filled(readable / "store.sqlite", count=1)
    path.chmod(0)
    assert "cannot be opened: check that you may read it" in as_somebody(READ_THEN_WRITE, path)


def test_a_new_store_in_a_folder_that_may_not_be_written(readable: Path) -> None:
    readable.chmod(0o555)
    shown = as_somebody(READ_THEN_WRITE, readable / "store.sqlite")
    assert "cannot be opened: check that you may read it and write its folder" in shown


FILL_THE_DISK = """
import resource, sys
from dataclasses import replace
from perfmodel.basics.errors import StoreError
from perfmodel.measuring.store import Store
with Store(sys.argv[1]) as store:
    row = next(iter(store))
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
    count = len(store)
    try:
        for count in range(count, 5000):
            store.put(replace(row, key=f"k{count}"))
    except StoreError as error:
        print(error)
    print(count)
"""


def test_a_full_disk_keeps_what_was_measured(path: Path) -> None:
    filled(path, count=1)
    done = subprocess.run(
        [sys.executable, "-c", FILL_THE_DISK, path],
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    error, count = done.stdout.splitlines()
    assert error.startswith(f"store {path} could not be")
    assert "free space" in error
    with Store(path) as store:
        assert len(store) == int(count) < 5000
        assert store.check() == []
