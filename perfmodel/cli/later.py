"""Puts off importing a package until something of it is used: many commands name what needs Loopy, and never use it."""

from __future__ import annotations

import builtins
import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import PathFinder
from types import ModuleType
from typing import Any


class _Later(ModuleType):
    """A name for a package that is imported when an attribute of it is asked for."""

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self.__name__), name)


def put_off(*names: str) -> None:
    """Lets ``import`` of these packages, by themselves, import nothing, where they are there and not imported yet.

    What stands for a package never enters `sys.modules`: Python would take it for the package there, import the whole
    on the way to a module within, and then that module a second time, whose classes are others than the first one's.
    """
    found = {name for name in names if name not in sys.modules and PathFinder.find_spec(name)}
    at_once = builtins.__import__

    def import_or_put_off(  # with the names that Python gives the parts of an import
        name: str,
        globals: Any = None,  # noqa: A002
        locals: Any = None,  # noqa: A002
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        if name in found and not (fromlist or level) and name not in sys.modules:
            return _Later(name)
        return at_once(name, globals, locals, fromlist or (), level)

    if found:
        builtins.__import__ = import_or_put_off
