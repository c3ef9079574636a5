"""Holds kernels in OpenCL C as ordinary programs have them, to see how perfmodel does with what it was not made from.

python -m benchmarks.programs check
python -m benchmarks.programs export FOLDER --size gpu
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import cache

from benchmarks.programs.program import FOLDER, Case, Group

MODULES = tuple(sorted(file.stem for file in FOLDER.glob("*.cl")))
"""A group is a module and the .cl file beside it of the same name."""


@cache
def cases() -> dict[str, Case]:
    """Returns all cases by name.

    Raises:
        ValueError: two cases have one name.
    """
    found: dict[str, Case] = {}
    for module in MODULES:
        group: Group = importlib.import_module(f"{__name__}.{module}").GROUP
        for case in group.cases:
            if case.name in found:
                raise ValueError(f"two cases are named {case.name!r}; rename one")
            found[case.name] = case
    return found


def named(names: Sequence[str]) -> list[Case]:
    """Returns the cases of some names or groups, or all for no name.

    Raises:
        KeyError: neither a case nor a group has a name.
    """
    found = cases()
    if not names:
        return list(found.values())
    groups = {case.group for case in found.values()}
    if unknown := [name for name in names if name not in found and name not in groups]:
        raise KeyError(f"no case or group is named {unknown[0]!r}")
    return [case for case in found.values() if case.name in names or case.group in names]
