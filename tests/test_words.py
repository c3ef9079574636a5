"""Docstrings can be understood alone: none begins with a bare preposition or question, as in "Of rows, the first"."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("perfmodel", "features", "generators", "models", "tests", "benchmarks", "examples", "docs")
BARE = re.compile(
    r"(Of|By|As|With|At|In|On|Where|Whether|From|For|To|Between|Among|Per|Under|Without|How|What|Which|When)\b"
)


def docstrings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yields line and text of every docstring, also those below assigned names."""
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str() as text)):
                yield node.lineno, text


def bare_docstrings(file: Path) -> list[str]:
    """Returns ``file:line: docstring`` for each docstring of a file that begins with a bare preposition."""
    found = docstrings(ast.parse(file.read_text(encoding="utf-8")))
    return [f"{file}:{line}: {text.strip().splitlines()[0]}" for line, text in found if BARE.match(text.strip())]


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_docstring_begins_with_a_bare_preposition(folder: str) -> None:
    files = sorted((ROOT / folder).rglob("*.py"))
    assert files
    bare = [each for file in files for each in bare_docstrings(file)]
    assert not bare, "say who does what, as in 'Returns the …':\n" + "\n".join(bare)


@pytest.mark.parametrize("begins", ["Of sorted rows, the first", "Whether it is there", "As before", "What it is"])
@pytest.mark.parametrize("place", ["module", "class", "function", "method", "name"])
def test_a_bare_preposition_is_found_wherever_it_is(begins: str, place: str, tmp_path: Path) -> None:
    text = f'"""{begins}."""'
    source = {
        "module": f"{text}\n",
        "class": f"class A:\n    {text}\n",
        "function": f"def f():\n    {text}\n",
        "method": f"class A:\n    def f(self):\n        {text}\n",
        "name": f"x = 1\n{text}\n",
    }[place]
    file = tmp_path / "bad.py"
    file.write_text(source)
    line = source.split('"""')[0].count("\n") + 1
    assert bare_docstrings(file) == [f"{file}:{line}: {begins}."]


@pytest.mark.parametrize(
    "begins", ["Returns rows of sorted files", "Office hours", "Information", "A row, as it is", "Tokens"]
)
def test_other_words_are_no_bare_prepositions(begins: str, tmp_path: Path) -> None:
    file = tmp_path / "good.py"
    file.write_text(f'"""{begins}."""\n')
    assert bare_docstrings(file) == []
