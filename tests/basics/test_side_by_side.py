"""Functions called in several processes give what they give in one, whatever becomes of the processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from perfmodel.basics.errors import PerfmodelError
from perfmodel.basics.side_by_side import Deadline, side_by_side


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_things_are_done_side_by_side_in_their_order(workers: int) -> None:
    offset = 5
    assert side_by_side(lambda number: number + offset, range(7), workers) == list(range(5, 12))
    with pytest.raises(ZeroDivisionError):
        side_by_side(lambda number: 1 / number, [1, 0], workers)


def test_what_follows_something_quick_is_done_here_and_all_else_beside_it() -> None:
    def process(seconds: float) -> int:
        time.sleep(seconds)
        return os.getpid()

    here, slow = os.getpid(), Deadline(600)
    for _ in range(2):
        beside = slow.done(process, [0.4, 0.5])
        assert [item for item, _ in beside] == [0.4, 0.5]
        assert here not in {found for _, found in beside}
    with pytest.raises(ZeroDivisionError):
        slow.done(lambda number: 1 / number, [1, 1, 0])
    quick = Deadline(600)
    while here not in {found for _, found in quick.done(process, [0.0, 0.0])}:
        pass


def test_what_is_not_done_in_time_is_stopped_and_tidied_up(tmp_path: Path) -> None:
    def done(number: int) -> int:
        if number % 2:
            try:
                time.sleep(600)
            finally:
                (tmp_path / str(number)).touch()
        return number

    deadline = Deadline(2)
    assert deadline.done(done, range(4)) == [(0, 0), (2, 2)]
    assert {path.name for path in tmp_path.iterdir()} <= {"1", "3"}
    assert (tmp_path / "1").exists()
    assert deadline.done(done, range(4)) == []


@pytest.mark.parametrize("ways", [[], ["fork"]])
def test_where_nothing_can_be_forked_the_last_thing_is_done_to_its_end(
    ways: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(multiprocessing, "get_all_start_methods", lambda: ways)
    deadline = Deadline(1.0)
    done = deadline.done(lambda _: time.sleep(0.3), range(100))
    assert 0 < len(done) < 100
    assert deadline.done(str, [1]) == []
    assert Deadline(1.0).done(str, []) == []


@pytest.mark.parametrize("workers", [1, 2])
def test_it_is_told_what_is_done(workers: int) -> None:
    told: list[tuple[int, int]] = []
    side_by_side(str, [1, 2, 3], workers, lambda done, of: told.append((done, of)))
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_no_workers_are_too_few() -> None:
    with pytest.raises(PerfmodelError, match="give 1 or more"):
        side_by_side(str, [1], 0)


def test_where_a_process_dies_this_one_does_it_all() -> None:
    here = os.getpid()

    def done(number: int) -> int:
        if number == 3 and os.getpid() != here:
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    assert side_by_side(done, range(6), 2) == list(range(6))


SLEEPERS = """
import os, sys, time
from pathlib import Path
from perfmodel.basics.side_by_side import side_by_side
def sleep(number):
    Path(sys.argv[1], f"{os.getpid()}-{number}").touch()
    time.sleep(float(sys.argv[2]))
side_by_side(sleep, range(100), 2)
"""


def sleepers(folder: Path, seconds: float) -> tuple[subprocess.Popen[bytes], list[int]]:
    """Returns a process whose two forked ones are at their items, and the ids of these."""
    command = [sys.executable, "-c", SLEEPERS, str(folder), str(seconds)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True)
    while len(pids := {int(path.name.partition("-")[0]) for path in folder.iterdir()}) < 2:
        assert process.poll() is None
        time.sleep(0.05)
    return process, sorted(pids)


def wait_for_the_end_of(pids: list[int]) -> None:
    end = time.monotonic() + 30
    while any(Path(f"/proc/{pid}/cmdline").exists() and is_running(pid) for pid in pids):
        assert time.monotonic() < end, f"{pids} go on"
        time.sleep(0.05)


def is_running(pid: int) -> bool:
    """Returns False for what is gone, or only waits to be asked how it ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_processes_end_with_the_one_that_forked_them(tmp_path: Path) -> None:
    process, pids = sleepers(tmp_path, 600)
    process.kill()
    process.wait(30)
    wait_for_the_end_of(pids)


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_ctrl_c_ends_them_after_their_items_and_only_the_first_process_says_so(tmp_path: Path) -> None:
    process, pids = sleepers(tmp_path, 0.5)
    os.killpg(process.pid, signal.SIGINT)
    said = process.communicate(timeout=60)[1].decode()
    assert process.returncode != 0
    assert said.count("KeyboardInterrupt") == 1
    assert len(list(tmp_path.iterdir())) < 50
    wait_for_the_end_of(pids)
