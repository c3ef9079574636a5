"""Rows out of stores and into them: exact round trips, and files that are not believed."""

from __future__ import annotations

import json
import math
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import perfmodel
from perfmodel.basics.errors import StoreError
from perfmodel.measuring.store import (
    Counts,
    Failure,
    Measurement,
    Store,
    StoreWarning,
    export,
    import_file,
    measurement_key,
    merge,
    to_frame,
)
from tests.covering import examples
from tests.measuring import stores

ROOT = Path(perfmodel.__file__).parents[1]
ENDINGS = [".csv", ".jsonl", ".parquet"]

texts = st.text(max_size=8) | st.sampled_from(
    ["", "\r", "a\r\nb", '"', "'=1+1", ",", "\0", "NaN", "null", "ü😀", " x "]
)
times = st.floats(1e-12, 1e6)
sizes = st.dictionaries(texts, st.integers(-(2**70), 2**70), max_size=3)
devices = st.fixed_dictionaries(
    {"key": texts, "driver": texts},
    optional={"compute_units": st.integers(0, 200), "sub_group_size": st.none() | st.integers(1, 64), "other": times},
)
common = {
    "key": st.just(""),
    "kernel": texts,
    "content": texts,
    "sizes": sizes,
    "tags": st.dictionaries(texts, texts, max_size=3),
    "device": devices,
    "protocol": st.dictionaries(texts, st.none() | times | st.integers() | texts, max_size=3),
    "created": texts,
    "versions": st.dictionaries(texts, texts, max_size=2),
    "conditions": st.dictionaries(texts, times | texts | st.lists(times, max_size=2), max_size=2),
}


def keyed(row: Any) -> Any:
    return replace(row, key=measurement_key(row.content, row.sizes, row.device, row.protocol))


measurements = st.builds(
    Measurement,
    **common,
    trials=st.lists(times, min_size=3, max_size=5).map(tuple),
    dropped=st.integers(0, 2),
    statistic=st.sampled_from(["min", "mean", "median"]),
    flags=st.lists(texts, max_size=2).map(tuple),
).map(keyed)
failures = st.builds(Failure, **common, reason=texts.filter(bool)).map(keyed)


def measurement(n: int = 1024, seconds: float = 1e-3) -> Measurement:
    row = replace(stores.measurement(seconds=seconds), sizes={"n": n}, conditions={"host": "node1"})
    return keyed(row)  # type: ignore[no-any-return]


def failure(n: int, reason: str = "needs 9 GB") -> Failure:
    return keyed(replace(stores.failure(reason=reason), sizes={"n": n}))  # type: ignore[no-any-return]


def contents(store: Store) -> tuple[list[Measurement], dict[str, Failure]]:
    return list(store), store.failures()


# --- round trips


@given(st.lists(measurements, max_size=4), st.lists(failures, max_size=3), st.sampled_from(ENDINGS))
@settings(deadline=None)
def test_what_is_exported_is_imported_exactly(written: list[Measurement], failed: list[Failure], ending: str) -> None:
    with tempfile.TemporaryDirectory() as folder, Store() as source, Store() as target:
        source.put_many(written, failed)
        path = Path(folder, f"rows{ending}")
        number = export(source, path)
        assert number == len(source) + len(source.failures())
        assert import_file(target, path) == Counts(len(source), len(source.failures()), 0)
        assert contents(target) == contents(source)
        assert import_file(target, path) == Counts(0, 0, number)
        assert contents(target) == contents(source)
        assert [file.name for file in Path(folder).iterdir()] == [path.name]


@pytest.mark.parametrize("ending", ENDINGS)
def test_rows_that_are_there_stay_and_measurements_replace_failures(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"rows{ending}"
    with Store() as source:
        source.put_many([measurement(1), measurement(2), measurement(3)], [failure(4), failure(5)])
        export(source, path)
    with Store() as target:
        target.put_many([measurement(1, 5.0), measurement(5, 6.0)], [failure(2), failure(4, "another reason")])
        assert import_file(target, path) == Counts(added=2, failures=0, known=3)
        assert list(target) == [measurement(1, 5.0), measurement(5, 6.0), measurement(2), measurement(3)]
        assert target.failures() == {failure(4).key: failure(4, "another reason")}


def test_a_frame_has_a_row_each_and_what_follows_from_it(tmp_path: Path) -> None:
    with Store() as store:
        store.put_many([measurement(7), measurement(8, 0.5)], [failure(9)])
        frame = to_frame(store)
        assert list(frame["seconds"][:2]) == [1e-3, 0.5]
        assert math.isnan(frame["seconds"][2])
        assert list(frame["failure"]) == ["", "", "needs 9 GB"]
        assert list(frame["size_n"]) == [7, 8, 9]
        assert set(frame["device_key"]) == {"h200-abcdef"}
        assert set(frame["driver"]) == {"1.0"}
        assert frame["trials"][0] == measurement(7).trials
        assert frame["sizes"][0] == {"n": 7}
        export(store, tmp_path / "rows.parquet")
        export(store, tmp_path / "rows.csv")
    for read in (pd.read_parquet(tmp_path / "rows.parquet"), pd.read_csv(tmp_path / "rows.csv")):
        assert list(read.columns) == list(frame.columns)
        assert list(read["seconds"][:2]) == [1e-3, 0.5]
        assert list(read["size_n"]) == [7, 8, 9]
        assert [json.loads(text) for text in read["trials"]] == [list(trials) for trials in frame["trials"]]
    with Store() as empty:
        assert len(to_frame(empty)) == 0


def test_derived_columns_are_not_believed(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    line = exported(path)
    path.write_text(json.dumps(line | {"seconds": "rm -rf", "size_n": -1, "device_key": 5, "new": [[]]}) + "\n")
    with Store() as store:
        import_file(store, path)
        assert list(store) == [measurement()]


# --- writing


def test_no_file_is_overwritten_unasked(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("mine")
    with Store() as store:
        store.put(measurement())
        with pytest.raises(StoreError, match=r"rows\.csv is there already: give another name, or --force"):
            export(store, path)
        assert path.read_text() == "mine"
        export(store, path, force=True)
        assert path.read_text().startswith("key,")


def test_unknown_endings_and_folders_that_are_not_there(tmp_path: Path) -> None:
    with Store() as store:
        with pytest.raises(StoreError, match=r"'\.cvs', which is no kind of table file; did you mean '\.csv'\?"):
            export(store, tmp_path / "rows.cvs")
        with pytest.raises(StoreError, match="cannot be written"):
            export(store, tmp_path / "none" / "rows.csv")
        with pytest.raises(StoreError, match="cannot be read"):
            import_file(store, tmp_path / "none.csv")
        (tmp_path / "folder.csv").mkdir()
        with pytest.raises(StoreError, match="cannot be read"):
            import_file(store, tmp_path / "folder.csv")


EXPORT_TO_A_FULL_DISK = """
import resource, sys
from perfmodel.basics.errors import StoreError
from perfmodel.measuring.store import Store, export
with Store(sys.argv[1], read_only=True) as store:
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
    try:
        export(store, sys.argv[2])
    except StoreError as error:
        print(error)
"""


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_full_disk_leaves_no_half_file(ending: str, tmp_path: Path) -> None:
    with Store(tmp_path / "store.sqlite") as store:
        store.put_many(measurement(n) for n in range(1, 2000))
    target = tmp_path / f"rows{ending}"
    arguments = [sys.executable, "-c", EXPORT_TO_A_FULL_DISK, str(tmp_path / "store.sqlite"), str(target)]
    done = subprocess.run(arguments, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True)
    assert "cannot be written" in done.stdout
    assert [file.name for file in tmp_path.iterdir()] == ["store.sqlite"]


def test_without_pyarrow_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with Store() as store, pytest.raises(StoreError, match=r"pip install perfmodel\[parquet\]"):
        export(store, tmp_path / "rows.parquet")
    assert list(tmp_path.iterdir()) == []


# --- files that are wrong


def exported(path: Path) -> dict[str, Any]:
    """Returns the one row of a file of lines."""
    with Store() as store:
        store.put(measurement())
        export(store, path, force=True)
    line: dict[str, Any] = json.loads(path.read_text())
    return line


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"key": "0" * 64}, "key: not that of its content"),
    ({"key": 5}, "key: not a str"),
    ({"kernel": None}, "kernel: not a str"),
    ({"content": "d" * 64}, "key: not that of its content"),
    ({"sizes": {"n": 1025}}, "key: not that of its content"),
    ({"sizes": {"n": "1024"}}, "sizes: not all are of type int"),
    ({"sizes": {"n": True}}, "sizes: not all are of type int"),
    ({"sizes": []}, "sizes: not a dict"),
    ({"tags": "x"}, "tags: not a dict"),
    ({"device": {"key": "h200-abcdef"}}, "device: it has to have a key and a driver"),
    ({"device": {"key": "h200-abcdef", "driver": "1.0", "name": 7}}, "device: its name is not of type str"),
    ({"trials": [1.0, "2.0"]}, "trials: not all are numbers"),
    ({"trials": [9.0, -1.0]}, "trials: not all positive"),
    ({"trials": [9.0, math.nan]}, "trials: not all positive"),
    ({"trials": [9.0, math.inf]}, "trials: not all positive"),
    ({"trials": [9.0, 0]}, "trials: not all positive"),
    ({"trials": [1.0]}, "is no time"),
    ({"trials": {}}, "trials: not a list"),
    ({"dropped": 1.5}, "dropped: "),
    ({"dropped": -1}, "dropped: less than none"),
    ({"statistic": "mode"}, "'mode'"),
    ({"statistic": ["min"]}, "statistic: not a str"),
    ({"flags": [1]}, "flags: not all are texts"),
    ({"versions": {"loopy": 2025}}, "versions: not all are of type str"),
    ({"conditions": "none"}, "conditions: not a dict"),
    ({"failure": 5}, "failure: no text"),
    ({"failure": "it failed"}, "failure: a row with times has none"),
    ({"kernel": "\ud800"}, "kernel: "),
    ({"conditions": {"x": "y" * 2**22}}, "longer than"),
]


@pytest.mark.parametrize(("changes", "words"), WRONG)
def test_a_wrong_row_is_named_and_nothing_is_imported(changes: dict[str, Any], words: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    good = exported(path)
    path.write_text(f"{path.read_text()}\n{json.dumps(good | changes)}\n")
    with Store() as store:
        with pytest.raises(StoreError) as error:
            import_file(store, path)
        assert len(store) == 0
    assert words in str(error.value)
    assert "line 3 of" in str(error.value)
    assert "nothing was imported" in str(error.value)
    assert "\n" not in str(error.value)


NO_FILES: list[tuple[str, bytes]] = [
    (".jsonl", b"{"),
    (".jsonl", b"[]\n"),
    (".jsonl", b"[" * 100_000),
    (".jsonl", b'{"key": "' + b"1" * 9_000_000),
    (".jsonl", b'{"dropped": ' + b"1" * 5000 + b"}"),
    (".jsonl", b"\xff\xfe"),
    (".jsonl", pickle.dumps({"key": "x"})),
    (".csv", b""),
    (".csv", b"key,kernel\n1,2\n"),
    (".csv", b"\xff\xfe\x00"),
    (".csv", b'"' * 5_000_001),
    (".parquet", b""),
    (".parquet", b"PAR1" + b"\0" * 100 + b"PAR1"),
    (".parquet", pickle.dumps({"key": "x"})),
]


@pytest.mark.parametrize(("ending", "content"), NO_FILES, ids=range(len(NO_FILES)))
def test_what_is_no_file_of_rows_is_one_sentence(ending: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / f"rows{ending}"
    path.write_bytes(content)
    with Store() as store:
        with pytest.raises(StoreError, match=r"rows\.\w+ cannot be imported") as error:
            import_file(store, path)
        assert len(store) == 0
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 800


@pytest.fixture(scope="module", params=ENDINGS)
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("whole") / f"rows{request.param}"
    with Store() as store:
        store.put_many([measurement(1), measurement(2)], [failure(3)])
        export(store, path)
    return path


@given(st.data())
@settings(max_examples=examples(30), deadline=None)
def test_spoilt_files_give_sound_rows_or_one_sentence(whole: Path, data: st.DataObject) -> None:
    ending, content = whole.suffix, whole.read_bytes()
    spoilt = bytearray(content)
    for position in data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=4)):
        spoilt[position] = data.draw(st.integers(0, 255))
    length = data.draw(st.integers(len(content) // 2, len(content)) | st.just(len(content)))
    with tempfile.TemporaryDirectory() as folder, Store() as store:
        path = Path(folder, f"rows{ending}")
        path.write_bytes(spoilt[:length])
        try:
            import_file(store, path)
        except StoreError as error:
            refusal = str(error)
        else:
            refusal = ""
        assert "\n" not in refusal
        if refusal:
            assert len(store) == len(store.failures()) == 0
        assert store.check() == []


def test_a_path_in_the_data_is_a_text(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    path = tmp_path / "rows.jsonl"
    line = exported(path)
    path.write_text(json.dumps(line | {"kernel": str(secret), "conditions": {"file": f"file://{secret}"}}))
    with Store() as store:
        import_file(store, path)
        (row,) = store
    assert row.kernel == str(secret)
    assert secret.read_text() == "secret"


def test_a_column_that_is_missing_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    line = exported(path)
    for ending, write in columns_writers().items():
        target = tmp_path / f"less{ending}"
        write({name: value for name, value in line.items() if name != "content"}, target)
        with Store() as store, pytest.raises(StoreError, match="it has no column content"):
            import_file(store, target)


def columns_writers() -> dict[str, Callable[[dict[str, Any], Path], object]]:
    return {
        ".jsonl": lambda line, path: path.write_text(json.dumps(line)),
        ".csv": lambda line, path: pd.DataFrame([line]).to_csv(path, index=False),
        ".parquet": lambda line, path: pd.DataFrame([line]).to_parquet(path),
    }


# --- merging


def test_a_merge_takes_what_is_new_and_leaves_the_source_as_it_is(tmp_path: Path) -> None:
    source = tmp_path / "source.sqlite"
    with Store(source) as store:
        store.put_many([measurement(1), measurement(2), measurement(3)], [failure(4), failure(5)])
    before = source.read_bytes()
    with Store(tmp_path / "target.sqlite") as target:
        target.put_many([measurement(1, 5.0), measurement(5, 6.0)], [failure(2)])
        assert merge(target, source) == Counts(added=2, failures=1, known=2)
        assert list(target) == [measurement(1, 5.0), measurement(5, 6.0), measurement(2), measurement(3)]
        assert target.failures() == {failure(4).key: failure(4)}
        assert merge(target, source) == Counts(0, 0, 5)
        with pytest.raises(StoreError, match="is not there"):
            merge(target, tmp_path / "nowhere.sqlite")
    assert source.read_bytes() == before
    assert sorted(file.name for file in tmp_path.iterdir()) == ["source.sqlite", "target.sqlite"]


def test_a_merge_mends_a_damaged_row(tmp_path: Path) -> None:
    path, copy = tmp_path / "store.sqlite", tmp_path / "copy.sqlite"
    with Store(path) as store:
        store.put_many([measurement(1), measurement(2)])
    copy.write_bytes(path.read_bytes())
    path.write_bytes(path.read_bytes().replace(b"[9.0, 0.002, 0.001]", b"[9.0, 0.003, 0.001]", 1))
    with Store(path) as store:
        with pytest.warns(StoreWarning):
            assert merge(store, copy) == Counts(1, 0, 1)
        assert store.check() == []
        assert list(store) == [measurement(1), measurement(2)]
