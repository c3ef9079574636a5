"""Writes names as isl reads them in its notation, in which some words mean something else."""

from __future__ import annotations

import re
from collections.abc import Iterable

_WORDS = frozenset(
    {
        *("and", "or", "not", "implies", "exist", "exists", "true", "false", "infty", "infinity", "nan"),
        *("min", "max", "mod", "floor", "floord", "ceil", "ceild", "rat", "int"),
    }
)


def isl_name(name: str) -> str:
    """Returns a name as it stands in isl's notation: behind a word of its own, isl leaves out the mark."""
    return f"{name}'" if name.lower() in _WORDS else name


def isl_list(names: Iterable[str]) -> str:
    """Returns names as they stand in a list of isl's."""
    return ", ".join(map(isl_name, names))


def isl_text(text: str, names: Iterable[str]) -> str:
    """Returns a text in which isl wrote names as they are, as isl reads it."""
    for name in names:
        if isl_name(name) != name:
            text = re.sub(rf"\b{re.escape(name)}\b(?!\()", isl_name(name), text)
    return text
