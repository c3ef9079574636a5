"""Imports inside functions say why they are there: start-up time, or a dependency that is optional."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import perfmodel

FOLDER = Path(perfmodel.__file__).parent
OF_MODULE = "\n# Functions import "
"""Begins the comment that gives the reason for all functions of a module."""


def imports(tree: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yields the imports inside functions, in the order of the source."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    inside = {each for node in functions for each in ast.walk(node) if isinstance(each, ast.Import | ast.ImportFrom)}
    yield from sorted(inside, key=lambda each: each.lineno)


def unexplained(text: str) -> list[int]:
    """Returns the lines of imports inside functions that have no comment on or above them, nor above others that they
    follow."""
    if OF_MODULE in text:
        return []
    lines, found, end, is_said = text.splitlines(), [], 0, False
    for each in imports(ast.parse(text)):
        between = [line for line in lines[end : each.lineno - 1] if line.strip()]
        last = each.end_lineno or each.lineno
        here = any("#" in line for line in lines[each.lineno - 2 : last])
        is_said = here or (is_said and not between)
        if not is_said:
            found.append(each.lineno)
        end = last
    return found


def test_imports_inside_functions_say_why() -> None:
    silent = {
        str(path.relative_to(FOLDER)): lines
        for path in sorted(FOLDER.rglob("*.py"))
        if (lines := unexplained(path.read_text(encoding="utf-8")))
    }
    assert not silent, "give the reason in a comment, such as 'keeps start-up quick', or import at the top"


def test_what_is_unexplained() -> None:
    first = "def f():\n    import a{}\n\n    import b\n    return a, b\n"
    assert unexplained(first.format("")) == [2, 4]
    assert unexplained(first.format("  # slow to import")) == []
    assert unexplained("def f():\n    import a  # slow\n    a.do()\n    import b\n") == [4]
    assert unexplained("# Functions import a, which is slow.\n" + first.format("")) == [3, 5]
    assert unexplained("import c\n\n# Functions import a, which is slow.\n" + first.format("")) == []
