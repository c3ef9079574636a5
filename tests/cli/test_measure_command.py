"""`perfmodel measure` as a user meets it: plans, summaries, exit statuses, and errors of one sentence."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import perfmodel as pm
from perfmodel.cli.command_line import main
from perfmodel.device import Device
from perfmodel.measuring.isolation import bench
from perfmodel.measuring.isolation.locks import FOLDER_VARIABLE

TROUBLE = str(Path(pm.__file__).parents[1] / "examples" / "troublesome_kernels.py")
Ran = tuple[int, str, str]


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Returns a function that runs ``perfmodel measure … --store``, and gives status, output and errors."""
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "locks"))
    monkeypatch.setattr(bench, "_benches", {})

    def run(*arguments: str) -> Ran:
        store = [] if "--store" in arguments else ["--store", str(tmp_path / "times.sqlite")]
        status = main(["measure", *arguments, *store, "--device", "cpu", "--protocol", "quick"])
        return (status, *capsys.readouterr())

    return run


def test_plan_then_measure_then_nothing_left(ran: Callable[..., Ran], cpu: Device, tmp_path: Path) -> None:
    tags = ("matmul_sq", "n:64,128")
    status, out, _ = ran(*tags, "--dry-run")
    assert status == 0
    assert f"{cpu.key}: 2 kernels: 0 known from the store, 2 to measure" in out
    assert "  memory: up to 192 KiB of " in out
    status, out, _ = ran(*tags)
    assert (status, out.splitlines()[0]) == (0, f"{cpu.key}: 2 kernels: 2 measured, 0 known from the store")
    status, out, _ = ran("matmul_sq", "n:64,128,192", "--dry-run", "--json")
    (share,) = json.loads(out)["devices"]
    assert (share["device"], share["known"], share["missing"], share["like"]) == (cpu.key, 2, 1, 1)
    assert share["seconds"] > 0
    status, out, _ = ran(*tags, "--json")
    found = json.loads(out)
    assert (status, found["complete"], found["devices"][0]["measured"], found["devices"][0]["known"]) == (0, True, 0, 2)
    with pm.Store(tmp_path / "times.sqlite") as store:
        assert len(store) == 2


def test_what_failed_is_summed_up_with_reasons(ran: Callable[..., Ran]) -> None:
    status, out, _ = ran(f"{TROUBLE}:is_not_c", f"{TROUBLE}:fine", f"{TROUBLE}:crashes")
    assert status == 0
    assert "3 kernels: 1 measured, 0 known from the store, 2 failed" in out
    assert "failed: crashes n=1024: kernel 'crashes' ended its process" in out
    assert "failed: is_not_c n=1024: kernel 'is_not_c' does not compile" in out
    status, out, _ = ran(f"{TROUBLE}:is_not_c", f"{TROUBLE}:fine")
    assert "2 kernels: 0 measured, 2 known from the store, 1 failed" in out
    status, out, _ = ran(f"{TROUBLE}:is_not_c", "--dry-run")
    assert "1 kernel: 0 known from the store, 0 to measure, 1 failed before" in out
    status, out, _ = ran(f"{TROUBLE}:is_not_c", "--dry-run", "--retry")
    assert "1 kernel: 0 known from the store, 1 to measure" in out


def test_a_budget_that_reaches_not_everything_is_status_1(ran: Callable[..., Ran]) -> None:
    status, out, _ = ran("matmul_sq", "n:64,128", "--budget", "0")
    assert status == 1
    assert "2 kernels: 0 measured, 0 known from the store, 2 not measured" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("matmul_sq", "n:64", "--time-limit", "0"), "a time limit of 0 s leaves no time; give more seconds"),
        (
            ("matmul_sq", "n:64", "--memory-limit", "-1"),
            "a memory limit of -1 GiB is none; give --memory-limit above 0",
        ),
        (("matmul_sq", "n:64", "--budget", "-3"), "a budget of -3 s is none"),
        (("matmul_sq", "n:64", "--protocol", "unifeid"), "no protocol 'unifeid'; did you mean 'unified'?"),
        (("matmul_sq", "n:64", "--device", "abacus"), "no device is called 'abacus'"),
        (("matmul_sq", "n:64", "--store", "/nowhere/at/all.sqlite"), "its folder is not there"),
        (("matmul_sq", "n:64", "--scheduler", "a b"), "'a b' is no Dask scheduler's address"),
        (("matmul_qs", "n:64"), "did you mean"),
        ((f"{TROUBLE}:absent",), "defines no kernel 'absent'"),
    ],
)
def test_errors_are_one_sentence_and_status_2(
    arguments: tuple[str, ...], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = () if "--store" in arguments else ("--store", str(tmp_path / "times.sqlite"))
    devices = () if "--device" in arguments else ("--device", "cpu")
    assert main(["measure", *arguments, *store, *devices]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert words in err
    assert len(err.splitlines()) == 1


def test_help_shows_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("measure", "worker"):
        with pytest.raises(SystemExit) as ended:
            main([command, "--help"])
        assert ended.value.code == 0
        assert f"example: perfmodel {command} " in capsys.readouterr().out
