"""The reference page says what the code does."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

from perfmodel.expression import limits, tokens
from perfmodel.expression.functions import LANGUAGE

PAGE = Path(__file__).parents[2] / "docs" / "model-language.md"


def test_examples_run() -> None:
    results = doctest.testfile(str(PAGE), module_relative=False)
    assert results.attempted > 5
    assert results.failed == 0


def test_the_table_lists_every_function_with_its_formula() -> None:
    rows = re.findall(r"^\| `(\w+)\(([^)]*)\)` \| ([^|]*) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == [(function.name, function.signature, function.formula) for function in LANGUAGE.values()]


def test_the_limits_are_those_of_the_code() -> None:
    text = PAGE.read_text(encoding="utf-8").replace(",", "")
    for words, limit in {
        "length of the string": tokens.MAX_LENGTH,
        "length of a name": tokens.MAX_NAME,
        "operations numbers and names": limits.MAX_NODES,
        "the same with terms written out wherever they are used": limits.MAX_EXPANDED,
        "nesting (parentheses calls signs powers of powers)": limits.MAX_NESTING,
    }.items():
        assert f"| {words} | {limit}" in text
