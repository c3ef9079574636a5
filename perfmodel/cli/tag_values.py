"""Values of tags that a shell completes, read from the sources of generators without importing them."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path

from perfmodel.basics import registry

ENTRY = re.compile(r'^    name = "([\w-]+)"$', re.MULTILINE)
MAKERS = ("choice", "number", "size")
"""Functions of `perfmodel.collection.tags` that make a tag of its name, its summary and its values."""
OF_ALL = Path(__file__).parents[1] / "collection" / "tags.py"


def completed(word: str, words: Collection[str]) -> list[str]:
    """Returns a word ``tag:…`` or ``tag=a,…`` with each value that its tag may have; nothing for other words.

    Args:
        words: those before it, of which the names of generators say whose tag is meant.
    """
    found = re.fullmatch(r"([A-Za-z]\w*)([:=])((?:[^,]*,)*)[^,]*", word)
    if found is None:
        return []
    name, mark, before = found.groups()
    values = [value for value in _values(name, words) if value not in before.split(",")]
    return [f"{name}{mark}{before}{value}" for value in values] + ([] if before else [f"{name}{mark}*"] * bool(values))


def _values(name: str, words: Collection[str]) -> list[str]:
    texts = [*_sources(), OF_ALL.read_text(encoding="utf-8")]
    chosen = [text for text in texts if set(ENTRY.findall(text)) & set(words)]
    for several in (chosen, texts):
        made = [values for text in several if f'"{name}"' in text and (values := _made(text, name)) is not None]
        if made:
            return list(dict.fromkeys(value for values in made for value in values))
    return []


def _sources() -> Iterator[str]:
    for folder in registry.folders("generators"):
        for path in sorted(folder.glob("*.py")):
            yield path.read_text(encoding="utf-8")


@cache
def _made(text: str, name: str) -> list[str] | None:
    """Returns the values of the tags of this name that a source makes, as far as it writes them out; None for no such
    tag."""
    tree = ast.parse(text)
    found: list[str] = []
    is_made = False
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id not in MAKERS:
            continue
        if [each.value for each in node.args[:1] if isinstance(each, ast.Constant)] == [name]:
            is_made = True
            found += [str(value) for each in node.args[2:] for value in _written(each, tree)]
    return found if is_made else None


def _written(node: ast.expr, tree: ast.Module) -> list[object]:
    """Returns the values of an argument: a constant, or ``*NAMES`` of a tuple or mapping that the source writes out."""
    if isinstance(node, ast.Starred):
        node = node.value
        if isinstance(node, ast.Name):
            told = [each.value for each in tree.body if isinstance(each, ast.Assign) and _names(each) == [node.id]]
            node = told[0] if told else node
    try:
        value = ast.literal_eval(node)
    except ValueError:  # made by a call, or imported
        keys = node.keys if isinstance(node, ast.Dict) else []
        return [key.value for key in keys if isinstance(key, ast.Constant)]
    return list(value) if isinstance(value, tuple | list | dict) else [value]


def _names(node: ast.Assign) -> list[str]:
    return [target.id for target in node.targets if isinstance(target, ast.Name)]
