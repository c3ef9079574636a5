"""``perfmodel store``: what is printed, what is written, and what is refused in one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perfmodel.cli.command_line import main
from perfmodel.measuring.store import Store
from tests.measuring.test_store_exchange import failure, measurement


@pytest.fixture
def path(tmp_path: Path) -> str:
    with Store(tmp_path / "times.sqlite") as store:
        store.put_many([measurement(7), measurement(8, 0.5)], [failure(9), failure(10), failure(11, "no compiler")])
    return str(tmp_path / "times.sqlite")


Shown = pytest.CaptureFixture[str]


def run(capsys: Shown, *arguments: str) -> str:
    """Returns what a successful command prints."""
    assert main(["store", *arguments]) == 0
    return capsys.readouterr().out


def refused(capsys: Shown, *arguments: str) -> str:
    """Returns the one sentence that a refused command prints."""
    assert main(["store", *arguments]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    return shown.err


def test_without_a_subcommand_there_is_help(capsys: Shown) -> None:
    assert main(["store"]) == 2
    shown = capsys.readouterr().out
    for name in ("ls", "show", "export", "import", "merge", "check", "vacuum"):
        assert f"\n    {name} " in shown


@pytest.mark.parametrize("name", ["ls", "show", "export", "import", "merge", "check", "vacuum"])
def test_each_subcommand_has_an_example_that_parses(name: str, capsys: Shown) -> None:
    with pytest.raises(SystemExit):
        main(["store", name, "--help"])
    assert f"example: perfmodel store {name} " in capsys.readouterr().out


def test_ls(path: str, capsys: Shown) -> None:
    shown = run(capsys, "ls", path)
    assert shown.startswith(f"store {path}: 2 measurements, 3 failures, ")
    assert "schema 3" in shown
    lines = [line.split() for line in shown.splitlines()]
    assert ["h200-abcdef:", "H200,", "driver", "1.0", "2", "3"] in lines
    assert ["matmul_sq", "2", "3"] in lines
    assert ["needs", "9", "GB", "2"] in lines
    assert ["no", "compiler", "1"] in lines
    found = json.loads(run(capsys, "ls", path, "--json"))
    assert (found["measurements"], found["failures"], found["schema"]) == (2, 3, 3)
    assert found["bytes"] == Path(path).stat().st_size
    assert [group["count"] for group in found["groups"]] == [2, 2, 1]
    assert json.loads(run(capsys, "ls", path, "--json", "--device", "H200", "--kernel", "MATMUL"))["measurements"] == 2
    assert json.loads(run(capsys, "ls", path, "--json", "--device", "amd"))["groups"] == []
    assert json.loads(run(capsys, "ls", path, "--json", "--kernel", "copy"))["groups"] == []


def test_show(path: str, capsys: Shown) -> None:
    row = measurement(8, 0.5)
    shown = run(capsys, "show", path, row.key[:12])
    for text in (row.key, "500 ms, the min of 2 trials", "variant=tiled", "noisy", "host=node1", "9 s", "1 s"):
        assert text in shown
    assert json.loads(run(capsys, "show", path, row.key, "--json"))["seconds"] == 0.5
    assert "needs 9 GB" in run(capsys, "show", path, failure(9).key)
    assert "several rows of" in refused(capsys, "show", path, "")
    assert "has no row whose key begins with 'xyz'" in refused(capsys, "show", path, "xyz")
    assert "has no row whose key begins with '%'" in refused(capsys, "show", path, "%")


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_export_and_import(path: str, ending: str, tmp_path: Path, capsys: Shown) -> None:
    file, target = str(tmp_path / f"rows.{ending}"), str(tmp_path / "other.sqlite")
    assert run(capsys, "export", path, file) == f"5 rows written to {file}\n"
    assert "is there already" in refused(capsys, "export", path, file)
    run(capsys, "export", path, file, "--force")
    assert "2 measurements and 3 failures added, 0 rows were there" in run(capsys, "import", target, file)
    assert json.loads(run(capsys, "import", target, file, "--json")) == {"added": 0, "failures": 0, "known": 5}


def test_merge(path: str, tmp_path: Path, capsys: Shown) -> None:
    target = str(tmp_path / "all.sqlite")
    assert json.loads(run(capsys, "merge", target, path, "--json")) == {"added": 2, "failures": 3, "known": 0}
    assert "0 measurements and 0 failures added, 5 rows were there" in run(capsys, "merge", target, path)


def test_check(path: str, capsys: Shown) -> None:
    assert "is sound: 2 measurements" in run(capsys, "check", path)
    assert json.loads(run(capsys, "check", path, "--json"))["problems"] == []
    file = Path(path)
    file.write_bytes(file.read_bytes().replace(b"[9.0, 1.0, 0.5]", b"[9.0, 1.0, 0.4]").replace(b"no comp", b"mo comp"))
    assert main(["store", "check", path]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert all("is damaged (its checksum is that of other values): measure it again" in line for line in lines)
    assert main(["store", "check", path, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["problems"] == lines
    assert "is damaged" in refused(capsys, "show", path, measurement(8).key)
    assert "is damaged" in refused(capsys, "export", path, str(file.parent / "rows.csv"))
    file.write_bytes(file.read_bytes()[:5000])
    assert main(["store", "check", path]) == 1
    assert capsys.readouterr().out.count("\n") == 1


def test_vacuum(path: str, capsys: Shown) -> None:
    size = Path(path).stat().st_size
    shown = run(capsys, "vacuum", path)
    assert "before" in shown
    assert "now" in shown
    assert Path(path).stat().st_size <= size
    with Store(path) as store:
        assert list(store) == [measurement(7), measurement(8, 0.5)]


@pytest.mark.parametrize("name", ["ls", "show", "export", "check", "vacuum"])
def test_a_missing_store_is_not_made(name: str, tmp_path: Path, capsys: Shown) -> None:
    more = {"show": ["00"], "export": [str(tmp_path / "rows.csv")]}.get(name, [])
    assert "is not there" in refused(capsys, name, str(tmp_path / "none.sqlite"), *more)
    assert "is not there" in refused(capsys, "merge", str(tmp_path / "new.sqlite"), str(tmp_path / "none.sqlite"))
    assert list(tmp_path.iterdir()) == []


def test_an_import_that_is_refused_leaves_no_store(tmp_path: Path, capsys: Shown) -> None:
    for file in ("rows.csv", "rows.json", "rows.txt"):
        (tmp_path / file).write_text("nothing of ours")
        assert file in refused(capsys, "import", str(tmp_path / "new.sqlite"), str(tmp_path / file))
    assert sorted(file.name for file in tmp_path.iterdir()) == ["rows.csv", "rows.json", "rows.txt"]
