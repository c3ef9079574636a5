"""Counts kept on disk: found again by whoever counts the same, by nobody else, and never in the way."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import perfmodel as pm
from perfmodel.basics.errors import CountingError, DecidedByDataError, OutOfBudgetError
from perfmodel.counting import cache
from perfmodel.counting.cache import cached_counts, loopy_key
from perfmodel.counting.counts import KernelCounts
from perfmodel.counting.loopy import target
from perfmodel.counting.loopy.counts import count_loopy
from tests.counting_kernels import make


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("PERFMODEL_NO_CACHE", raising=False)
    monkeypatch.setattr(cache.ENTRIES, "folder", lambda: tmp_path / "counts")
    return tmp_path / "counts"


def program(instruction: str = "o[i] = 2*a$near[i] + 1", **options: Any) -> Any:
    return make("{[i]: 0 <= i < n}", instruction, {"a, o": "n"}, **options)


class Counter:
    """Counts a program, and the number of times that it was asked to."""

    def __init__(self, translation_unit: Any) -> None:
        self.translation_unit = translation_unit
        self.asked = 0

    def __call__(self) -> KernelCounts:
        self.asked += 1
        return count_loopy(self.translation_unit, {}, 32)


def computes(translation_unit: Any, statistics: dict[str, float] | None = None, subgroup_size: int = 32) -> bool:
    """Returns True if the counts had to be computed; checks that they are the right ones anyway."""
    counter = Counter(translation_unit)
    assert cached_counts(partial(loopy_key, translation_unit), statistics or {}, subgroup_size, counter) == counter()
    return counter.asked == 2


@pytest.mark.parametrize("kind", [CountingError, OutOfBudgetError, DecidedByDataError])
def test_a_refusal_is_found_again(kind: type[CountingError]) -> None:
    asked = []

    def refuse() -> KernelCounts:
        asked.append(1)
        raise kind("data decide")

    for _ in range(2):
        with pytest.raises(CountingError, match=r"^data decide$") as found:
            cached_counts(lambda: "a program", {}, 32, refuse)
        assert type(found.value) is kind
    assert len(asked) == 1


def test_counts_are_found_again_by_an_equal_program(folder: Path) -> None:
    assert computes(program())
    assert not computes(program())
    assert len(list(folder.iterdir())) == 1


@pytest.mark.parametrize(
    "other",
    [
        program("o[i] = 2*a$far[i] + 1"),
        program("o[i] = 2*a[i] + 1"),
        program("o[i] = 3*a$near[i] + 1"),
        program("o[i] = 2.0*a$near[i] + 1"),
        program(assumptions="n mod 2 = 0"),
        program(name="other"),
    ],
    ids=["tag", "no tag", "number", "type of a number", "assumption", "name"],
)
def test_another_program_has_counts_of_its_own(other: Any) -> None:
    assert computes(program())
    assert computes(other)
    assert not computes(program())


def test_other_statistics_sub_groups_and_versions_have_counts_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    assert computes(program())
    assert computes(program(), {"i": 3.0})
    assert computes(program(), {"i": 4.0})
    assert not computes(program(), {"i": 3.0})
    assert computes(program(), subgroup_size=64)
    monkeypatch.setattr(cache, "VERSIONS", ["another version"])
    assert computes(program())


def test_the_order_of_statistics_does_not_matter() -> None:
    assert computes(program(), {"i": 3.0, "j": 4.0})
    assert not computes(program(), {"j": 4.0, "i": 3.0})


def halved(entry: bytes) -> bytes:
    return entry[: len(entry) // 2]


def foreign(entry: bytes) -> bytes:
    return hashlib.sha256(b"{}").hexdigest().encode() + b"\n{}"


def deep(entry: bytes) -> bytes:
    text = b"[" * 100_000
    return hashlib.sha256(text).hexdigest().encode() + b"\n" + text


@pytest.mark.parametrize(
    "damage",
    [
        halved,
        foreign,
        deep,
        lambda entry: b"",
        lambda entry: b"\xff\xfe" + entry,
        lambda entry: entry.replace(b"float32", b"float64"),
        lambda entry: entry[:-1] + b"]",
    ],
    ids=["truncated", "foreign", "deep", "empty", "not text", "changed word", "changed bracket"],
)
def test_a_damaged_entry_is_replaced(folder: Path, damage: Callable[[bytes], bytes]) -> None:
    assert computes(program())
    (entry,) = folder.iterdir()
    whole = entry.read_bytes()
    entry.write_bytes(damage(whole))
    assert computes(program())
    assert entry.read_bytes() == whole
    assert not computes(program())


def test_a_folder_that_cannot_be_written_is_no_error(folder: Path) -> None:
    folder.write_text("a file where the folder should be")
    assert computes(program())
    assert computes(program())


def test_an_entry_that_cannot_be_written_leaves_nothing_behind(folder: Path) -> None:
    assert computes(program())
    (entry,) = folder.iterdir()
    entry.unlink()
    (entry / "in the way").mkdir(parents=True)
    assert computes(program())
    assert list(folder.iterdir()) == [entry]


def test_a_program_that_loopy_cannot_hash_is_counted_each_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(program: object) -> str:
        raise TypeError(f"unsupported type for persistent hash keying: {type(program)}")

    monkeypatch.setattr("perfmodel.counting.cache._ordered", refuse)
    assert computes(program())
    assert computes(program())
    assert not folder.exists()


def test_the_cache_can_be_switched_off(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERFMODEL_NO_CACHE", "1")
    assert computes(program())
    assert computes(program())
    assert not folder.exists()


def test_an_error_is_not_kept(folder: Path) -> None:
    def fail() -> KernelCounts:
        raise pm.PerfmodelError("cannot be counted")

    for _ in range(2):
        with pytest.raises(pm.PerfmodelError, match="cannot be counted"):
            cached_counts(partial(loopy_key, program()), {}, 32, fail)
    assert not folder.exists()
    assert computes(program())


RACE = """
import sys
from perfmodel.counting import cache
from perfmodel.counting.loopy import target
from perfmodel.counting.loopy.counts import count_loopy
from pathlib import Path
from tests.counting_kernels import make
cache.ENTRIES.folder = lambda: Path(sys.argv[1])
for number in range(30):
    program = make("{[i]: 0 <= i < n}", f"o[i] = a[i] + {number % 2}", {"a, o": "n"})
    computed = []
    known = lambda: cache.loopy_key(program)
    counts = cache.cached_counts(known, {}, 32, lambda: computed.append(1) or count_loopy(program, {}, 32))
    assert counts == count_loopy(program, {}, 32)
    for entry in Path(sys.argv[1]).glob("*.json"):
        entry.unlink(missing_ok=True)
"""


def test_processes_do_not_disturb_each_other(folder: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    environment.pop("PERFMODEL_NO_CACHE", None)
    command = [sys.executable, "-W", "ignore", "-c", RACE, str(folder)]
    racing = [
        subprocess.Popen(command, env={**environment, "PYTHONHASHSEED": seed}, stderr=subprocess.PIPE, text=True)
        for seed in "12"
    ]
    for process in racing:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    assert list(folder.iterdir()) == []


def test_another_process_finds_the_entry(folder: Path) -> None:
    script = """
import sys
from pathlib import Path
from perfmodel.counting import cache
from tests.counting_kernels import make
cache.ENTRIES.folder = lambda: Path(sys.argv[1])
space = "{[i, j]: 0 <= i < n and 0 <= j < m and l > 0}"
program = make(space, "o[i] = 2*a[i, j]", {"a": "n, m", "o": "n"}, sizes="nml")
known = lambda: cache.loopy_key(program)
print(cache.cached_counts(known, {}, 32, lambda: sys.exit("not found")).operations[0].executions.workitem)
"""
    space = "{[i, j]: 0 <= i < n and 0 <= j < m and l > 0}"
    several = make(space, "o[i] = 2*a[i, j]", {"a": "n, m", "o": "n"}, sizes="nml")
    assert computes(several)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    environment.pop("PERFMODEL_NO_CACHE", None)
    command = [sys.executable, "-W", "ignore", "-c", script, str(folder)]
    for seed in "1234":  # Loopy orders sizes by their hashes
        seeded = {**environment, "PYTHONHASHSEED": seed}
        found = subprocess.run(command, env=seeded, capture_output=True, text=True, check=False)
        assert found.returncode == 0, found.stderr
        assert found.stdout.strip() == str(count_loopy(several, {}, 32).operations[0].executions.workitem)


def test_old_entries_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five programs are counted one after the other, with room for four: the oldest two go when the fifth comes."""
    monkeypatch.setattr(cache.ENTRIES, "most", 4)
    for size in range(1, 6):
        assert computes(program(), subgroup_size=size)
        os.utime(max(cache.ENTRIES.folder().glob("*.json"), key=lambda p: p.stat().st_mtime), (size, size))
    assert len(list(cache.ENTRIES.folder().glob("*.json"))) == 3
    assert not computes(program(), subgroup_size=5)
    assert computes(program(), subgroup_size=1)


def test_programs_that_another_layout_of_perfmodel_kept_are_not_read_back(tmp_path: Path) -> None:
    """Loopy keeps pickled programs, our target in them; another perfmodel may have had it in another module."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "earlier_target.py").write_text(Path(target.__file__).read_text(encoding="utf-8"), encoding="utf-8")
    counts = "from tests.counting_kernels import make\nfrom perfmodel.counting.loopy.counts import count_loopy\n" + (
        "count_loopy(make('{[i]: 0 <= i < n}', 'o[i] = 2*a[i] + 1', {'a, o': 'n'}).copy(target=OpenCLTarget()))\n"
    )
    kept: list[int] = []
    for module, path in [("earlier_target", [str(elsewhere)]), (target.__name__, [])]:
        environment = os.environ | {
            "XDG_CACHE_HOME": str(tmp_path / "kept"),
            "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *path]),
        }
        command = [sys.executable, "-c", f"from {module} import OpenCLTarget\n{counts}"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        kept.append(sum(file.stat().st_size for file in (tmp_path / "kept").rglob("*") if file.is_file()))
    assert 0 < kept[0] < kept[1]
