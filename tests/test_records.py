"""Records of many fields are built by keyword: nobody knows what the fifth of seven values in a row is."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("perfmodel", "features", "generators", "models", "tests", "benchmarks", "examples")
MOST = 4
"""So many values may stand in a row without the names of their fields."""
BY_BASE = {"NamedTuple", "Tree"}
"""Classes with such a base are records: of `typing`, and of `perfmodel.opencl_c.visitor`."""


def module_of(path: Path) -> str:
    """Returns the name that a file is imported by."""
    parts = path.with_suffix("").parts
    package = ("perfmodel",) if parts[0] in ("features", "generators", "models") else ()
    return ".".join((*package, *parts)).removesuffix(".__init__")


class Nodes:
    """The classes, imports and calls of a module, which is walked once."""

    def __init__(self, text: str) -> None:
        found = list(ast.walk(ast.parse(text)))
        self.classes = [node for node in found if isinstance(node, ast.ClassDef)]
        self.imports = [node for node in found if isinstance(node, ast.ImportFrom)]
        self.calls = [node for node in found if isinstance(node, ast.Call)]


def records(modules: Mapping[str, Nodes]) -> set[tuple[str, str]]:
    """Returns module and name of each class that is a dataclass, a named tuple, or derives from one in its module."""
    found, names = set(), set(BY_BASE)
    for module, nodes in modules.items():
        own = set(names)
        for node in nodes.classes:
            bases = {ast.unparse(base).rpartition(".")[2] for base in node.bases}
            if bases & own or any("dataclass" in ast.unparse(each) for each in node.decorator_list):
                own.add(node.name)
                found.add((module, node.name))
    return found


def origins(module: str, nodes: Nodes) -> dict[str, str]:
    """Returns for each name that a module imports, or defines as a class, its full name."""
    found = {node.name: f"{module}.{node.name}" for node in nodes.classes}
    for node in nodes.imports:
        found |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
    return found


def values_in_a_row(call: ast.Call) -> int:
    """Returns how many values without a name a call has, those of tuples that it writes out among them."""
    starred = [
        each.value.elts for each in call.args if isinstance(each, ast.Starred) and isinstance(each.value, ast.Tuple)
    ]
    return len(call.args) - len(starred) + sum(map(len, starred))


def in_a_row(modules: Mapping[str, Nodes]) -> Iterator[str]:
    """Yields ``module:line: class`` of each record that is built with more values in a row than `MOST`."""
    known = records(modules)
    for module, nodes in modules.items():
        names = origins(module, nodes)
        for node in nodes.calls:
            if values_in_a_row(node) > MOST:
                first, *rest = ast.unparse(node.func).split(".")
                home, _, name = ".".join((names.get(first, first), *rest)).rpartition(".")
                if (home, name) in known:
                    yield f"{module}:{node.lineno}: {name}"


def test_records_of_many_fields_are_built_by_keyword() -> None:
    files = [path.relative_to(ROOT) for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    modules = {module_of(path): Nodes((ROOT / path).read_text(encoding="utf-8")) for path in files}
    assert len(records(modules)) > 400
    found = list(in_a_row(modules))
    assert not found, "name the fields:\n" + "\n".join(found)


def test_what_is_found() -> None:
    texts = {
        "a": "@dataclass(frozen=True)\nclass A:\n    pass\nclass B(NamedTuple):\n    pass\nclass C(B):\n    pass\n",
        "b": "from a import A, B as D\nimport a\n"
        "A(1, 2, 3, 4, 5)\nD(1, 2, 3, 4, e=5)\nD(1, 2, 3, *e)\nD(*(1, 2, 3), 4, 5)\na.C(1, 2, 3, 4, 5)\n",
        "c": "class A:\n    pass\nA(1, 2, 3, 4, 5)\nprint(1, 2, 3, 4, 5)\nB(1, 2, 3, 4, 5)\n",
    }
    modules = {module: Nodes(text) for module, text in texts.items()}
    assert list(in_a_row(modules)) == ["b:3: A", "b:6: B", "b:7: C"]
