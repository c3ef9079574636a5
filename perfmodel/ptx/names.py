"""Says what functions are called in the source whose names a C++ compiler mangled."""

from __future__ import annotations

import re

_LENGTH = re.compile(r"\d+")


def own_name(name: str) -> str:
    """Returns a function's own name, without the classes that it is of and without a template's arguments."""
    found, place = name, 2 + name.startswith("_ZN")
    while name.startswith("_Z") and (length := _LENGTH.match(name, place)) is not None:
        place = length.end() + int(length[0])
        found = name[length.end() : place]
    return found
