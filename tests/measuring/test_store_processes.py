"""A store in several processes, of several users, on a full disk."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import perfmodel
from perfmodel.basics.errors import StoreError
from perfmodel.measuring.store import Store
from tests.measuring.stores import failure, filled, measurement

ROOT = Path(perfmodel.__file__).parents[1]


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
