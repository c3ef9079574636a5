"""Every example runs as it says, in an empty folder, and prints what it promises."""

from __future__ import annotations

import re
import runpy
import shlex
from pathlib import Path

import pytest

from perfmodel.cli.command_line import main

EXAMPLES = Path(__file__).parent.parent / "examples"
WORDS = {
    "dask_devices": r"went to \S+ and took",
    "device_selection": r"with copying arrays: H200",
    "family_model": r"p_strided_load .*\n(.*\n)*.*predicted \S+ s, measured \S+ s",
    "own_loopy_kernel": r"additions at n = 1024: 1048576(\.0)?\n(.*\n)*.*limited by",
    "own_opencl_kernel": r"5 loads a pixel\n(.*\n)*seconds on an H200: \[",
    "typed_use": r"times the best",
    "slides_demo": r"overlap\n(.*\n)*.*predicted \d\.\d\d times the measured time",
}


@pytest.mark.parametrize("name", sorted(WORDS))
def test_examples_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PERFMODEL_DEVICE", "cpu")
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert re.search(WORDS[name], printed), printed


def test_every_script_is_run_or_a_file_of_kernels() -> None:
    scripts = {path.stem for path in EXAMPLES.glob("*.py")}
    assert scripts - set(WORDS) == {"troublesome_kernels"}  # which tests/cli/test_measure_command.py measures


def test_the_command_that_an_example_shows(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(EXAMPLES.parent)
    text = (EXAMPLES / "own_opencl_kernel.py").read_text()
    shown = re.search(r"    (perfmodel explain (?:.*\\\n)?.*)\n", text)
    assert shown
    command = shlex.split(shown[1].replace("\\\\", "\\").replace("\\\n", " "))
    assert main(command[1:]) == 0
    assert "limited by l1" in capsys.readouterr().out
