"""Stores that somebody else wrote: nothing in them is run, and no more is taken than they hold."""

from __future__ import annotations

import lzma
import os
import socket
import sqlite3
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from perfmodel.basics.errors import PerfmodelError, StoreError
from perfmodel.basics.files import other_than_file
from perfmodel.cli.command_line import command_parser
from perfmodel.measuring.store import Store, import_file, untrusted
from perfmodel.measuring.store.untrusted import JOURNAL_MAGIC, LONGEST_VALUE, bounded
from perfmodel.tuning.kernel_tuner_files import import_kernel_tuner
from tests.measuring.stores import measurement, of_schema_1

REFUSED = r"is damaged: restore it from a copy"
TRIGGER = "CREATE TRIGGER {} AFTER INSERT ON measurement BEGIN DELETE FROM measurement; END"
ENDLESS = (
    "CREATE TRIGGER {} AFTER INSERT ON measurement BEGIN INSERT INTO document (text) WITH RECURSIVE c(x) AS "
    "(SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c; END"
)


@pytest.fixture(params=[1, 2])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "times.sqlite"
    if request.param == 1:
        return of_schema_1(path)
    with Store(path) as store:
        store.put(measurement())
    return path


def edited(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA writable_schema = ON")
    for statement in statements:
        connection.execute(statement)
    connection.close()


def refused(path: Path) -> None:
    """Asserts that a store is refused in one sentence, opened for writing or not, also as a compressed one, and left as
    it is."""
    before = path.read_bytes()
    packed = path.with_name(f"{path.name}.xz")
    packed.write_bytes(lzma.compress(before))
    for given, read_only in ((path, False), (path, True), (packed, True)):
        with pytest.raises(StoreError, match=REFUSED) as error:
            Store(given, read_only)
        assert "\n" not in str(error.value)
    assert path.read_bytes() == before


@pytest.mark.parametrize("statement", [TRIGGER, ENDLESS])
@pytest.mark.parametrize("name", ["sqlite_autoindex_document_1", "sqlite_stat1", "sqlite_sequence", "measurement_2"])
def test_a_trigger_is_refused_whatever_it_is_called(path: Path, statement: str, name: str) -> None:
    if "document" in statement:
        edited(path, "CREATE TABLE IF NOT EXISTS document (number INTEGER PRIMARY KEY, text TEXT NOT NULL)")
    edited(
        path,
        statement.format("plain"),
        f"UPDATE sqlite_master SET name = '{name}', sql = replace(sql, 'plain', '{name}') WHERE name = 'plain'",
    )
    refused(path)


@pytest.mark.parametrize(
    "statements",
    [
        ("CREATE VIEW v AS SELECT 1", "UPDATE sqlite_master SET name = 'sqlite_v' WHERE name = 'v'"),
        ("CREATE TABLE other (x)",),
        ("CREATE TABLE other (x)", "UPDATE sqlite_master SET name = 'sqlite_other' WHERE name = 'other'"),
        ("CREATE INDEX other ON measurement (abs(number))",),
        ("ALTER TABLE measurement ADD COLUMN other",),
        ("ALTER TABLE measurement ADD COLUMN other TEXT AS (upper(kernel))",),
        (
            "UPDATE sqlite_master SET sql = replace(sql, 'dropped INTEGER', 'dropped INTEGER CHECK (dropped < 9)') "
            "WHERE name = 'measurement'",
        ),
        (
            "UPDATE sqlite_master SET sql = replace(sql, 'kernel TEXT', 'kernel TEXT COLLATE NOCASE') "
            "WHERE name = 'measurement'",
        ),
        ("CREATE VIRTUAL TABLE other USING fts5(x)",),
    ],
)
def test_a_schema_that_perfmodel_did_not_make_is_refused(path: Path, statements: tuple[str, ...]) -> None:
    edited(path, *statements)
    refused(path)


@pytest.mark.parametrize("statement", [TRIGGER.format("t"), ENDLESS.format("t")])
def test_a_trigger_that_comes_while_a_store_is_open_is_not_run(tmp_path: Path, statement: str) -> None:
    """A trigger is as if it were not there from Python 3.12 on; before, nothing is put that would run it."""
    with Store(tmp_path / "times.sqlite") as store:
        store.put(measurement("k0"))
        edited(tmp_path / "times.sqlite", statement)
        if sys.version_info >= (3, 12):
            store.put(measurement("k1"))
            assert store.keys() == ["k0", "k1"]
        else:
            with pytest.raises(StoreError, match=r"is damaged: .*not authorized"):
                store.put(measurement("k1"))
            assert store.keys() == ["k0"]


def test_statements_have_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(untrusted, "OPENING_SECONDS", 0.1)
    connection = sqlite3.connect(":memory:")
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"
    with bounded(connection, 0), pytest.raises(sqlite3.OperationalError, match="interrupted"):
        connection.execute(endless)


def test_a_row_that_is_too_long_is_not_put_and_the_store_goes_on(tmp_path: Path) -> None:
    with Store(tmp_path / "times.sqlite") as store:
        long = measurement("k1")
        long.tags["variant"] = "x" * LONGEST_VALUE
        with pytest.raises(StoreError, match=f"takes no value of more than {LONGEST_VALUE} bytes"):
            store.put(long)
        store.put(measurement("k2"))
        assert store.check() == []


def test_rows_share_what_they_share_in_the_file(tmp_path: Path) -> None:
    """Else a store of a megabyte could take gigabytes of memory, by one long text that all rows name."""
    with Store(tmp_path / "times.sqlite") as store:
        store.put_many(measurement(f"k{number}") for number in range(5))
        first, *others = store
        assert all(each.device is first.device and each.versions is first.versions for each in others)


def test_what_is_said_of_a_damaged_row_tells_a_terminal_nothing(tmp_path: Path) -> None:
    path = tmp_path / "times.sqlite"
    with Store(path) as store:
        store.put(measurement("k\x1b[2J\x7f\nk"))
    edited(path, "UPDATE measurement SET trials = '[1.0]', device = 'x'")
    with Store(path) as store:
        (problem,) = store.check()
    assert problem.startswith("row k\N{REPLACEMENT CHARACTER}[2J\N{REPLACEMENT CHARACTER} k of store ")
    assert problem.isprintable()


def test_half_a_character_is_not_stored_nor_read(tmp_path: Path) -> None:
    """JSON can hold it, but tables, files and terminals can't."""
    path = tmp_path / "times.sqlite"
    with Store(path) as store:
        store.put(replace(measurement("k0"), tags={"variant": "\N{GRINNING FACE}"}))
        with pytest.raises(StoreError, match=r"cannot be put into .*tags: .*surrogates not allowed"):
            store.put(replace(measurement("k1"), tags={"variant": "\ud83d"}))
        assert store.check() == []
    edited(path, r"""UPDATE measurement SET tags = '{"variant": "\uD83D"}'""")
    with Store(path) as store:
        (problem,) = store.check()
    assert "tags: " in problem


# --- what is no file


def pipe(path: Path) -> str:
    os.mkfifo(path)
    return "a pipe"


def endpoint(path: Path) -> str:
    socket.socket(socket.AF_UNIX).bind(str(path))
    return "a socket"


def device(path: Path) -> str:
    path.symlink_to("/dev/zero")
    return "a device"


def folder(path: Path) -> str:
    path.mkdir()
    return "a folder"


KINDS = pytest.mark.parametrize("make", [pipe, endpoint, device, folder])


@KINDS
def test_what_is_no_file_has_a_name(
    make: Callable[[Path], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # names of sockets are short
    assert other_than_file("there") == ""
    assert make(Path("there")) == other_than_file("there")
    Path("file").touch()
    assert other_than_file("file") == other_than_file("a\0b") == ""


@KINDS
@pytest.mark.parametrize("name", ["times.sqlite", "times.sqlite.xz"])
@pytest.mark.parametrize("read_only", [False, True])
def test_what_is_no_file_is_no_store(
    make: Callable[[Path], str], name: str, read_only: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    what = make(Path(name))
    with pytest.raises(StoreError, match=f"store {name} .*is {what}: give the path of a file"):
        Store(name, read_only)


@KINDS
@pytest.mark.parametrize("end", ["-journal", "-wal", "-shm"])
def test_what_belongs_to_a_store_are_files(
    make: Callable[[Path], str], end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with Store("times.sqlite") as store:
        store.put(measurement())
    what = make(Path(f"times.sqlite{end}"))
    with pytest.raises(StoreError, match=f"its times.sqlite{end} is {what}: give the path of a file"):
        Store("times.sqlite")


def as_command(*arguments: str) -> None:
    parsed = command_parser().parse_args(arguments)
    parsed.run(parsed)


@pytest.mark.parametrize(
    "use",
    [
        lambda name: import_file(Store(), f"{name}.jsonl"),
        lambda name: import_file(Store(), f"{name}.csv"),
        lambda name: import_file(Store(), f"{name}.parquet"),
        lambda name: import_kernel_tuner(Store(), f"{name}.json"),
        lambda name: as_command("count", f"{name}.cl"),
        lambda name: as_command("count", f"{name}.py:kernel"),
        lambda name: as_command("run", f"{name}.py"),
        lambda name: as_command("calibrate", f"@{name}.txt", "--tags", "matmul_sq"),
    ],
)
@pytest.mark.parametrize("make", [pipe, endpoint, device])
def test_what_is_no_file_is_not_read(
    use: Callable[[str], object],
    make: Callable[[Path], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    for end in ("jsonl", "csv", "parquet", "json", "cl", "py", "txt"):
        what = make(Path(f"there.{end}"))
    with pytest.raises(PerfmodelError, match=rf"there\.\w+'? cannot be (read|imported).*it is {what} and no file"):
        use("there")


def test_a_journal_that_names_another_file_is_not_followed(tmp_path: Path) -> None:
    """SQLite would delete that file, which it takes for a journal of several databases that is done with."""
    path, precious = tmp_path / "times.sqlite", tmp_path / "precious"
    with Store(path) as store:
        store.put(measurement())
    name = str(precious).encode()
    header = JOURNAL_MAGIC + bytes(4) * 2 + (path.stat().st_size // 4096).to_bytes(4, "big")
    header += (512).to_bytes(4, "big") + (4096).to_bytes(4, "big") + bytes(512 - 28)
    tail = (2**30 // 4096 + 1).to_bytes(4, "big") + name + len(name).to_bytes(4, "big")
    Path(f"{path}-journal").write_bytes(header + tail + sum(name).to_bytes(4, "big") + JOURNAL_MAGIC)
    precious.write_bytes(b"nothing that SQLite knows")
    with pytest.raises(StoreError, match="its journal names another file: remove"):
        Store(path)
    assert precious.exists()


# --- compressed ones


def packed(tmp_path: Path, content: bytes, **how: object) -> Path:
    path = tmp_path / "times.sqlite.xz"
    path.write_bytes(lzma.compress(content, **how))  # type: ignore[arg-type]
    return path


def sound(tmp_path: Path) -> bytes:
    path = tmp_path / "sound.sqlite"
    with Store(path) as store:
        store.put(measurement())
    return path.read_bytes()


def claiming(content: bytes, pages: int) -> bytes:
    return content[:28] + pages.to_bytes(4, "big") + content[32:]


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda content: bytes(2**26), "file is not a database"),
        (lambda content: claiming(content, 2**20), r"it would unpack to 4294967296 bytes, and at most 16777216 are"),
        (lambda content: content + bytes(2**26), "more follows than its first page says"),
        (lambda content: content[:-100], "its end is missing"),
        (lambda content: content[:50], "its end is missing"),
    ],
)
def test_no_more_is_unpacked_than_a_store_holds(
    spoil: Callable[[bytes], bytes], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No byte is written of 64 MB of zeros, whose packed form has 10 kB."""
    path = packed(tmp_path, spoil(sound(tmp_path)), preset=0)  # quickly
    (tmp_path / "unpacked").mkdir()
    written: list[int] = []
    unpack = untrusted.unpack

    def watched(path: Path, into: object) -> None:
        try:
            unpack(path, into)
        finally:
            written.append(into.tell())  # type: ignore[attr-defined]

    monkeypatch.setattr("perfmodel.measuring.store.opening.unpack", watched)
    with pytest.raises(StoreError, match=words):
        Store(path)
    assert sum(written) < 2**20


def test_a_compressed_store_of_which_unpacking_takes_gigabytes_is_refused(tmp_path: Path) -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 2**20}]
    content = bytearray(lzma.compress(sound(tmp_path), filters=filters))
    # The dictionary's size is a byte of the block's header, which a check sum follows.
    start = 12
    size = (content[start] + 1) * 4
    place = content.index(bytes([0x21, 1]), start) + 2
    content[place] = 40  # 4 GB
    import zlib

    content[start + size - 4 : start + size] = zlib.crc32(content[start : start + size - 4]).to_bytes(4, "little")
    path = tmp_path / "times.sqlite.xz"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"[Mm]emory usage limit"):
        Store(path)
