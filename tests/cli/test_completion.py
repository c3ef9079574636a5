"""Completion: what bash offers, in a real bash; names as the catalogues have them, though none is imported."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import perfmodel as pm
from perfmodel.cli import completion
from perfmodel.cli.command_line import main
from perfmodel.measuring.protocol import PROTOCOLS
from perfmodel.recipes.recipe import recipes
from perfmodel.recipes.study import studies

BASH = shutil.which("bash") or ""
OFFER = """
eval "$(perfmodel completion bash)"
COMP_LINE=$1 COMP_POINT=${#1} COMP_TYPE=9
read -ra COMP_WORDS <<< "$1"
[[ $1 == *" " ]] && COMP_WORDS+=("")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_python_argcomplete perfmodel
printf '%s\\n' "${COMPREPLY[@]}"
"""


def offered(line: str, folder: Path) -> set[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [BASH, "-c", OFFER, "bash", line],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
        env={**os.environ, "PATH": path},
    )
    return set(done.stdout.split())


@pytest.mark.skipif(not BASH, reason="there is no bash")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("perfmodel ca", {"calibrate"}),
        ("perfmodel store va", {"vacuum"}),
        ("perfmodel predict --js", {"--json"}),
        ("perfmodel predict unified-plus@am", {"amd-epyc-eb6565"}),  # bash takes words apart at @
        ("perfmodel predict mine", {"mine.json"}),
        ("perfmodel rank mine.json matmul_", {"matmul_sq", "matmul_tiled"}),
        ("perfmodel rank mine.json matmul_sq tiled_", {"tiled_prefetch:"}),
        ("perfmodel calibrate p_time --tags vec", {"vector_add"}),
        ("perfmodel calibrate p_time --tags vector_add --protocol ", {"perflex", "quick", "unified"}),
        ("perfmodel reproduce perflex-matmul", {"perflex-matmul", "perflex-matmul-plus"}),
        ("perfmodel verify --device gp", {"gpu"}),
        ("perfmodel completion ", {"bash", "zsh", "fish"}),
    ],
)
def test_bash_completes(line: str, expected: set[str], tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text("{}")
    (tmp_path / "mine.txt").write_text("")
    assert offered(line, tmp_path) == expected


def test_names_are_those_of_the_catalogues() -> None:
    assert completion.generators() == sorted(generator.name for generator in pm.ALL_GENERATORS)
    assert completion.recipes() == sorted([*recipes(), *studies()])
    assert list(completion.PROTOCOLS) == sorted(PROTOCOLS)
    tags = {f"{tag.name}:" for generator in pm.ALL_GENERATORS for tag in generator.tags}
    assert tags <= set(completion.tags("no such file"))


def test_names_are_found_without_importing_what_is_heavy() -> None:
    program = (
        "import sys; from perfmodel.cli import completion as c\n"
        "c.tags(''), c.recipes(), c.calibrations(''), c.DEVICES, c.PROTOCOLS\n"
        "print(sorted({'numpy', 'loopy', 'pyopencl', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_files_are_offered_by_their_ending_and_folders_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deep").mkdir()
    for name in ("blur.cl", "blur.txt", "deep/mine.py", ".hidden.py"):
        (tmp_path / name).write_text("")
    files = {each for each in completion.tags("") if "/" in each or "." in each}
    assert files == {"blur.cl", "deep/"}
    assert [each for each in completion.tags("deep/m") if each.startswith("deep")] == ["deep/mine.py"]
    assert completion.tags("nowhere/x")[-1].endswith(":")


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_each_shell_gets_code_that_asks_perfmodel(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    code = capsys.readouterr().out
    assert "_ARGCOMPLETE" in code
    assert "perfmodel" in code
