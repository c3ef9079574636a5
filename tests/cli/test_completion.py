"""Completion: what bash offers, in a real bash; names as the catalogues have them, though none is imported."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import perfmodel as pm
from perfmodel.cli import completers, completion
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
        ("perfmodel calibrate p_time --tags vec", {"vector_add", "vector_functions"}),
        ("perfmodel calibrate p_time --tags vector_add --protocol ", {"perflex", "quick", "unified"}),
        ("perfmodel reproduce perflex-matmul", {"perflex-matmul", "perflex-matmul-plus"}),
        ("perfmodel verify --device gp", {"gpu"}),
        ("perfmodel verify --device nv", {"nvidia-h200-e38dd1"}),
        ("perfmodel rank mine.json matmul_sq tiled_prefetch:", {"True", "False", r"\*"}),  # and at :
        ("perfmodel features f_op_float32_ma", {"f_op_float32_madd"}),
        ("perfmodel completion ", {"bash", "zsh", "fish"}),
    ],
)
def test_bash_completes(line: str, expected: set[str], tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text("{}")
    (tmp_path / "mine.txt").write_text("")
    assert offered(line, tmp_path) == expected


FISH = "perfmodel completion fish | source; for line in $argv; complete -C $line; end"
ZSH = """
zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z 'PS1=; autoload -U compinit; compinit -u -D; eval "$(perfmodel completion zsh)"; echo REA""DY'
zpty -r -m z out '*READY*'
zpty -w -n z "$1"$'\t\t'
out=
repeat 200; do
    zpty -r -t z more && out+=$more || sleep 0.1
    [[ $out == *$2*$3* || $out == *$3*$2* ]] && break
done
print -r -- "$out"
"""


def shell(program: str, arguments: list[str], folder: Path) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "TERM": "xterm"}
    done = subprocess.run(
        [program, *arguments], capture_output=True, text=True, check=True, cwd=folder, env=environment, timeout=60
    )
    return done.stdout


@pytest.mark.skipif(not shutil.which("fish"), reason="there is no fish")
def test_fish_completes(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text("{}")
    lines = ["perfmodel predict mi", "perfmodel rank c.json matmul_sq tiled_prefetch=", "perfmodel explain --device nv"]
    shown = shell("fish", ["-c", FISH, *lines], tmp_path).split()
    assert shown[0] == "mine.json"
    assert set(shown[1:4]) == {"tiled_prefetch=*", "tiled_prefetch=False", "tiled_prefetch=True"}
    assert shown[4:] == ["nvidia-h200-e38dd1"]


@pytest.mark.skipif(not shutil.which("zsh"), reason="there is no zsh")
def test_zsh_completes(tmp_path: Path) -> None:
    given = ["perfmodel rank c.json matmul_sq tiled_prefetch:", "False", "True"]
    shown = shell("zsh", ["-f", "-c", ZSH, "zsh", *given], tmp_path)
    assert "tiled_prefetch:False" in shown
    assert "tiled_prefetch:True" in shown


def test_values_are_those_that_the_tags_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # whose files and folders would be offered
    known, every = 0, 0
    for generator in pm.ALL_GENERATORS:
        for tag in generator.tags:
            offered = completers.tags(f"{tag.name}:", argparse.Namespace(tags=[generator.name]))
            values = {each for each in offered if each.startswith(f"{tag.name}:")} - {f"{tag.name}:", f"{tag.name}:*"}
            assert not values or {f"{tag.name}:{value}" for value in tag.values} & values, (generator.name, tag.name)
            known, every = known + bool(values), every + 1
    assert known > 0.8 * every  # others are computed, and not written out in the text
    assert completers.tags("lsize_0=8,", argparse.Namespace(tags=["matmul_sq"])) == ["lsize_0=8,16", "lsize_0=8,32"]
    assert completers.tags("nothing=", argparse.Namespace(tags=[])) == completers.tags("")


def test_names_are_those_of_the_catalogues() -> None:
    assert completers.generators() == sorted(generator.name for generator in pm.ALL_GENERATORS)
    assert completers.recipes() == sorted([*recipes(), *studies()])
    assert list(completion.PROTOCOLS) == sorted(PROTOCOLS)
    tags = {f"{tag.name}:" for generator in pm.ALL_GENERATORS for tag in generator.tags}
    assert tags <= set(completers.tags("no such file"))


def test_names_are_found_without_importing_what_is_heavy() -> None:
    program = (
        "import sys; from perfmodel.cli import completers as c\n"
        "c.tags(''), c.recipes(), c.calibrations(''), c.DEVICES\n"
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
    files = {each for each in completers.tags("") if "/" in each or "." in each}
    assert files == {"blur.cl", "deep/"}
    assert [each for each in completers.tags("deep/m") if each.startswith("deep")] == ["deep/mine.py"]
    assert completers.tags("nowhere/x")[-1].endswith(":")


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_each_shell_gets_code_that_asks_perfmodel(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    code = capsys.readouterr().out
    assert "_ARGCOMPLETE" in code
    assert "perfmodel" in code
