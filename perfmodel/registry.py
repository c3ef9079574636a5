"""How the engine finds the catalogues: perfmodel's own folders, and the entry points of installed packages.

A catalogue is a package whose modules define subclasses of one base class. Adding a feature family, a generator or a
recipe is one new class in such a module; an installed package offers its modules under the entry-point group
``perfmodel.features``, ``perfmodel.generators`` or ``perfmodel.models``.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from functools import cache
from importlib.metadata import entry_points
from types import ModuleType
from typing import TypeVar

from perfmodel.errors import PerfmodelError

T = TypeVar("T")


@cache
def entries(catalogue: str, base: type[T]) -> tuple[T, ...]:
    """One instance of every concrete class of the catalogue, ordered by its `name`.

    Raises:
        PerfmodelError: if two classes have one name, or a package's entry point does not load.
    """
    found: dict[str, T] = {}
    for module in _modules(catalogue):
        for cls in vars(module).values():
            if not (inspect.isclass(cls) and issubclass(cls, base) and cls.__module__ == module.__name__):
                continue
            if inspect.isabstract(cls) or cls.__name__.startswith("_"):
                continue
            entry = cls()
            name = str(entry.name)  # type: ignore[attr-defined]
            if name in found:
                raise PerfmodelError(
                    f"{catalogue}: {type(found[name]).__module__} and {module.__name__} both define {name!r}; "
                    "rename one of them"
                )
            found[name] = entry
    return tuple(found[name] for name in sorted(found))


def _modules(catalogue: str) -> Iterator[ModuleType]:
    package = importlib.import_module(f"perfmodel.{catalogue}")
    for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda i: i.name):
        yield importlib.import_module(f"{package.__name__}.{info.name}")
    for point in entry_points(group=f"perfmodel.{catalogue}"):
        try:
            module = point.load()
            if not inspect.ismodule(module):
                raise TypeError(f"{point.value} is no module")
        except Exception as error:
            raise PerfmodelError(
                f"entry point {point.name!r} of {point.dist.name if point.dist else 'a package'} does not load "
                f"({error}); update or remove that package"
            ) from error
        yield module
