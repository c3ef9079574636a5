"""Tables of docs/results follow from the measurements beside them, on a machine without their device."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.recompute import RESULTS, Entry, differences, entries, measured_only, recompute, text_differences

SECONDS = 4
"""Entries that take longer are left to `python -m benchmarks.recompute`, which .ci/run calls."""
QUICK = [entry for entry in entries() if entry.seconds <= SECONDS]


@pytest.mark.parametrize("entry", QUICK, ids=[entry.name for entry in QUICK])
def test_committed_tables_follow_from_committed_times(entry: Entry) -> None:
    assert recompute(entry).differences == ()


def test_every_committed_file_is_a_store_or_computed_from_one_or_named_as_measured() -> None:
    computed = {file for entry in entries() for file in entry.committed}
    others = {RESULTS / name for name in measured_only()}
    given = {RESULTS / "recompute.toml", RESULTS / "pruning-intel-xeon-processor-0b3c4a" / "unified-plus.json"}
    for file in RESULTS.rglob("*"):
        assert file.is_dir() or file.name.endswith(".sqlite.xz") or file in computed | others | given, file
    assert all(file.exists() for file in computed | others)


def test_numbers_are_compared_to_three_digits_and_words_as_they_are() -> None:
    committed = "kernel     error\n--------  ------\nmatmul    12.3%\nother  1.234 ms\n"
    same = "kernel  error\n-----  ------\nmatmul  12.4%\nother  1.235 ms\n"
    assert list(text_differences(committed, same)) == []
    (found,) = text_differences(committed, committed.replace("12.3", "12.5"))
    assert found == "line 3 is 'matmul 12.5%' instead of 'matmul 12.3%'"
    assert list(text_differences(committed, committed.replace("matmul", "nbody"))) != []
    assert list(text_differences(committed, committed + "note: x\n"))[1:] == ["new is 'note: x'"]
    assert list(text_differences("a 5", "a 6")) != []
    assert list(text_differences("a  3 ms", "a  9 ms", [" +\\d+ ms$"])) == []


def test_documents_are_compared_but_for_what_is_of_the_run() -> None:
    committed = {"command": "a", "rows": [{"measured_s": 1.0, "flags": []}], "steps_s": 3}
    assert list(differences(committed, {**committed, "command": "b", "steps_s": 4})) == []
    assert list(differences(committed, {**committed, "rows": [{"measured_s": 1.0005, "flags": []}]})) == []
    others: list[dict[str, Any]] = [
        {"measured_s": 1.01, "flags": []},
        {"measured_s": None, "flags": []},
        {"measured_s": 1.0},
    ]
    for row in others:
        assert list(differences(committed, {**committed, "rows": [row]})) != []
    assert list(differences(committed, {**committed, "rows": []})) != []
