"""perfmodel.toml: where it is looked for, what it may say, and what comes before it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import perfmodel as pm
from perfmodel.basics.errors import PerfmodelError, PerfmodelWarning
from perfmodel.cli import project_file
from perfmodel.cli.command_line import main

DRY = ["measure", "matmul_sq", "n:64", "--dry-run", "--json"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a project's folder, whose folder ``deep/er`` is the working one."""
    deep = tmp_path / "deep" / "er"
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)
    monkeypatch.delenv("PERFMODEL_DEVICE", raising=False)
    return tmp_path


def write(folder: Path, text: str) -> Path:
    path = folder / project_file.NAME
    path.write_text(text)
    return path


def test_the_nearest_file_above_counts(folder: Path) -> None:
    above = write(folder, "")
    assert project_file.found(Path.cwd()) == above
    nearer = write(folder / "deep", "")
    assert project_file.found(Path.cwd()) == nearer


def test_no_file_is_taken_from_beyond_the_repository_or_the_home(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder, "")
    (folder / "deep" / ".git").mkdir()
    assert project_file.found(Path.cwd()) is None
    (folder / "deep" / ".git").rmdir()
    monkeypatch.setenv("HOME", str(folder / "deep"))
    assert project_file.found(Path.cwd()) is None


def test_values_are_read_and_the_store_lies_beside_the_file(folder: Path) -> None:
    path = write(folder, '[defaults]\ndevice = "gpu"\nprotocol = "quick"\nstore = "times.sqlite"\n')
    assert project_file.read(path) == {
        "device": "gpu",
        "protocol": "quick",
        "store": os.path.join("..", "..", "times.sqlite"),  # noqa: PTH118
    }
    assert project_file.read(write(folder, "")) == {}


WRONG = {
    "key": (
        '[defaults]\ndevise = "gpu"',
        ["no key 'devise'", "did you mean 'device'?", "known: calibration, device, load, protocol, store"],
    ),
    "type": ("[defaults]\nstore = 3", ["store is 3", 'store = "times.sqlite"']),
    "empty": ('[defaults]\ndevice = ""', ["device is ''"]),
    "list": ('[defaults]\ndevice = ["gpu"]', ["device is ['gpu']"]),
    "protocol": ('[defaults]\nprotocol = "quik"', ["no protocol 'quik'", "'quick'"]),
    "section": ('[default]\ndevice = "gpu"', ["'default'", "did you mean 'defaults'?"]),
    "no section": ('device = "gpu"', ["'device'", "under [defaults]"]),
    "no table": ("defaults = 3", ["'defaults' is no section"]),
    "syntax": ("[defaults\n", ["is no TOML", "line 1"]),
    "bytes": ("\udcff", ["is no TOML"]),
}


@pytest.mark.parametrize(("text", "words"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_one_sentence_with_the_file(
    text: str, words: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / project_file.NAME).write_bytes(text.encode("utf-8", "surrogateescape"))
    assert main([*DRY, "--store", "here.sqlite"]) == 2
    message = capsys.readouterr().err
    assert message.startswith(f"perfmodel: {os.path.join('..', '..', 'perfmodel.toml')}")  # noqa: PTH118
    assert message.count("\n") == 1
    for word in words:
        assert word in message


def test_a_file_that_cannot_be_read_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(folder, "")

    def refuse(*_: object, **__: object) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(PerfmodelError, match=r"perfmodel\.toml cannot be read \(Permission denied\)"):
        project_file.read(path)


def test_options_come_first_then_the_environment_then_the_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder, '[defaults]\ndevice = "abacus"\nstore = "times.sqlite"\n')
    assert main(DRY) == 2
    assert "'abacus'" in capsys.readouterr().err
    assert main([*DRY, "--device", "cpu"]) == 0
    json.loads(capsys.readouterr().out)
    monkeypatch.setenv("PERFMODEL_DEVICE", "slide rule")
    assert main(DRY) == 2
    assert "'slide rule'" in capsys.readouterr().err
    (folder / "times.sqlite").write_bytes(b"no store at all")
    assert main([*DRY, "--device", "cpu"]) == 2
    assert "times.sqlite" in capsys.readouterr().err
    assert main([*DRY, "--device", "cpu", "--store", "mine.sqlite"]) == 0


def test_a_calibration_of_the_project_predicts_where_none_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel = ["matmul_sq", "n:512", "--json"]

    def device(*words: str) -> str:
        assert main(["predict", *words, *kernel]) == 0
        return str(json.loads(capsys.readouterr().out)["device"])

    pm.Calibration.shipped(device="h200").save(folder / "mine.json")
    write(folder, '[defaults]\ncalibration = "mine.json"\n')
    assert device() == "nvidia-h200-e38dd1"
    assert device("--device", "a100") == "a100"  # options come first
    assert device("gpu@k20") == "k20"
    write(folder, '[defaults]\ncalibration = "@v100"\n')
    assert device() == "v100"
    assert main(["rank"]) == 2
    assert "@v100 of perfmodel.toml predicts kernels, and none is named" in capsys.readouterr().err
    write(folder, '[defaults]\ncalibration = "gone.json"\n')
    assert main(["explain", *kernel]) == 2
    assert "gone.json cannot be read" in capsys.readouterr().err


def test_kernels_are_listed_although_the_device_of_the_project_is_elsewhere(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder, '[defaults]\ndevice = "abacus"\n')
    assert main(["kernels", "matmul_sq", "n:64"]) == 0
    assert capsys.readouterr().out.endswith("n=64\n")
    assert main(["kernels", "matmul_sq", "n:auto"]) == 2
    assert "'abacus'" in capsys.readouterr().err


def test_commands_that_take_no_defaults_do_not_read_the_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, "[nonsense]\n")
    assert main(["devices"]) == 0
    assert main(["verify", "empty"]) == 2
    assert "'nonsense'" in capsys.readouterr().err


@pytest.mark.parametrize("strange", ["file", "folder"])
def test_a_strangers_file_is_passed_over_with_a_sentence(
    strange: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(folder, '[defaults]\nstore = "theirs.sqlite"\n')
    others = {path} if strange == "file" else {folder}
    real = Path.stat

    def stat(self: Path, **options: bool) -> os.stat_result:
        found = real(self, **options)
        return os.stat_result([*found[:4], os.geteuid() + 1, *found[5:]]) if self in others else found

    monkeypatch.setattr(Path, "stat", stat)
    what = "it" if strange == "file" else "its folder"
    with pytest.warns(
        PerfmodelWarning, match=f"perfmodel.toml is passed over, as {what} belongs to another user; copy it"
    ):
        assert project_file.found(Path.cwd()) is None


def test_who_became_root_by_sudo_keeps_their_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(folder, "")
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("SUDO_UID", str(owner))
    assert project_file.found(Path.cwd()) == path


@pytest.mark.parametrize("text", ["a = " + "[" * 10_000, "a = " + "9" * 5000, "#" * 2**17])
def test_a_file_that_is_a_bomb_is_refused(text: str, folder: Path) -> None:
    path = write(folder, text)
    with pytest.raises(PerfmodelError, match="is no TOML"):
        project_file.read(path)
