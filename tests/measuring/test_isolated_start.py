"""The processes that perfmodel starts run nothing that lies in the working folder."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from distributed import Client, LocalCluster

import perfmodel
from perfmodel.cli.command_line import main
from perfmodel.device import Device, devices
from perfmodel.measuring.isolation import start
from perfmodel.measuring.isolation.process import MeasuringProcess, ProcessLimits
from perfmodel.measuring.protocol import Protocol
from tests.simulated_kernels import kernel

ROOT = Path(perfmodel.__file__).resolve().parents[1]
SHADOWED = ("pyopencl", "numpy", "json", "perfmodel", "tests", "socket", "sitecustomize", "runpy", "distributed")


@pytest.fixture
def marker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a file that exists once a module of the working folder was run; the folder has one for whatever is looked
    for."""
    folder, marker = tmp_path / "downloads", tmp_path / "was-run"
    folder.mkdir()
    for name in SHADOWED:
        (folder / f"{name}.py").write_text(f"open({str(marker)!r}, 'a').write(__file__ + '\\n')\n", encoding="utf-8")
    monkeypatch.chdir(folder)
    return marker


PATHS = pytest.mark.parametrize("path", [None, "", os.pathsep, f"{os.pathsep}/nowhere", f"x{os.pathsep * 2}y", "."])


def set_path(path: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if path is None:
        monkeypatch.delenv("PYTHONPATH", raising=False)
    else:
        monkeypatch.setenv("PYTHONPATH", path)
        # as Python itself takes each entry that is empty or relative
        here = [str(Path.cwd()) for entry in path.split(os.pathsep) if entry in ("", ".")]
        monkeypatch.setattr(sys, "path", [*here, *sys.path])


@PATHS
def test_a_measuring_process_runs_nothing_of_the_working_folder(
    path: str | None, marker: Path, cpu: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_path(path, monkeypatch)
    process = MeasuringProcess(cpu)
    timing = process.time(kernel().launch(), Protocol("two", trials=2, dropped=1, statistic="min"), ProcessLimits(60.0))
    process.close()
    assert timing.seconds > 0
    assert not marker.exists()


@pytest.mark.parametrize("path", [None, f"x{os.pathsep * 2}y"])
def test_a_worker_and_what_it_starts_run_nothing_of_the_working_folder(
    path: str | None, marker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dask's nanny starts the worker itself, by multiprocessing."""
    set_path(path, monkeypatch)
    started: list[subprocess.Popen[bytes]] = []

    def execute(program: str, command: list[str], variables: dict[str, str]) -> None:
        assert program == command[0]
        started.append(subprocess.Popen([*command, "--no-dashboard"], env=variables, stderr=subprocess.DEVNULL))

    monkeypatch.setattr(os, "execve", execute)
    with (
        LocalCluster(n_workers=0, processes=False, protocol="tcp", dashboard_address="127.0.0.1:0") as local,
        Client(local, set_as_default=False) as client,
    ):
        main(["worker", local.scheduler_address])
        client.wait_for_workers(1, timeout=60)
        (found,) = client.run(devices).values()
        started[0].terminate()
        started[0].wait(30)
    assert found
    assert not marker.exists()


def test_a_module_of_another_folder_is_found_but_after_installed_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "numpy.py").write_text("raise SystemExit('the wrong one')")
    (tmp_path / "elsewhere.py").write_text("import numpy, sys; sys.exit(len(sys.argv))")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    command = start.command("elsewhere", "one", "two")
    assert subprocess.run(command, env=start.environment(), check=False).returncode == 3


@pytest.mark.parametrize("where", [lambda folder: ROOT, lambda folder: folder])
def test_a_checkout_that_is_not_installed_measures_with_itself(where: Callable[[Path], Path], tmp_path: Path) -> None:
    """Not the installed perfmodel, if there is one: a copy of this checkout in a folder of its own."""
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    for name in ("perfmodel", "features", "generators", "models", "pyproject.toml"):
        (checkout / name).symlink_to(ROOT / name)
    # A symbolic link would be resolved to where perfmodel is installed from.
    (checkout / "perfmodel").unlink()
    subprocess.run(["cp", "-r", str(ROOT / "perfmodel"), str(checkout)], check=True)
    code = """
import sys
sys.path.insert(0, sys.argv[1])
from perfmodel.measuring.isolation import start
import subprocess
subprocess.run(start.command("there"), env=start.environment(), check=True)
"""
    (checkout / "there.py").write_text("import perfmodel.measuring.isolation.child as child; print(child.__file__)")
    command = [sys.executable, "-c", code, str(checkout)]
    said = subprocess.run(command, cwd=where(checkout), capture_output=True, text=True, check=True).stdout
    assert Path(said.strip()) == checkout / "perfmodel" / "measuring" / "isolation" / "child.py"


def test_a_working_folder_that_is_gone_is_no_hindrance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    command = start.command("perfmodel.measuring.isolation.locks")
    assert subprocess.run(command, env=start.environment(), cwd="/", check=False).returncode == 0
