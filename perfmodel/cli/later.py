"""Puts off importing a package until something of it is used: many commands name what needs Loopy, and never use it."""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import PathFinder
from types import ModuleType
from typing import Any


class _Later(ModuleType):
    """A module that stands for one until an attribute of it is asked for."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)


def put_off(*names: str) -> None:
    """Lets an ``import`` of these packages, by itself, import nothing, where they are there and not imported yet."""
    for name in names:
        if name not in sys.modules and PathFinder.find_spec(name):
            sys.modules[name] = _Later(name)
