"""A store's file: none is spoilt, whatever it is, and whatever became of it."""

from __future__ import annotations

import lzma
import os
import re
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfmodel.basics.errors import StoreError
from perfmodel.measuring.store import Measurement, Store
from tests.measuring.stores import filled, measurement, of_schema_1

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
    with pytest.raises(StoreError, match=r"schema version 99 and this perfmodel knows 3: install a newer perfmodel"):
        Store(path)
    assert path.read_bytes() == before


# --- files of schema version 1


def test_a_file_of_schema_version_1_is_read(path: Path) -> None:
    with Store(of_schema_1(path)) as store:
        (one,) = store
        assert (one.kernel, one.sizes, one.seconds, one.conditions) == ("copy", {"n": 5}, 1.0, {})
        store.put(measurement("k1"))
        assert len(store) == 2
        assert store.check() == []
    with Store(path) as store:
        assert (store.schema, len(store)) == (3, 2)


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


# --- spoilt files


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
