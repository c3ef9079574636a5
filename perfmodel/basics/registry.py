"""Finds the entries of catalogues, in perfmodel's own folders and behind entry points of installed packages, and in
files of a user's own that are added.

A catalogue is a package whose modules define subclasses of one base class. Adding a feature family, a generator or a
recipe is one new class in such a module; an installed package offers its modules under the entry-point group
``perfmodel.features``, ``perfmodel.generators`` or ``perfmodel.models``.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import inspect
import pkgutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from perfmodel.basics.errors import PerfmodelError

T = TypeVar("T")


@cache
def entries(catalogue: str, base: type[T]) -> tuple[T, ...]:
    """Returns one instance of every concrete class of the catalogue, ordered by its `name`.

    Raises:
        PerfmodelError: if two classes have one name, a module does not load, or a class in it can't be used.
    """
    found: dict[str, T] = {}
    for module in _modules(catalogue):
        for cls in classes(module, base):
            entry = entry_of(cls, catalogue)
            name = str(entry.name)  # type: ignore[attr-defined]
            if name not in found:
                found[name] = entry
            elif type(found[name]) is not cls:
                raise PerfmodelError(
                    f"{catalogue}: {type(found[name]).__module__} and {cls.__module__} both define {name!r}; "
                    "rename one of them"
                )
    return tuple(found[name] for name in sorted(found))


_own: dict[str, ModuleType] = {}


@contextmanager
def with_modules(modules: Iterable[ModuleType]) -> Iterator[None]:
    """Makes the classes of modules entries of all catalogues meanwhile."""
    _own.update({module.__name__: module for module in modules})
    entries.cache_clear()
    try:
        yield
    finally:
        _own.clear()
        entries.cache_clear()


def classes(module: ModuleType, base: type[T]) -> Iterator[type[T]]:
    """Yields the module's own classes, and those that a package takes from its modules."""
    for cls in vars(module).values():
        if not (inspect.isclass(cls) and issubclass(cls, base)) or cls.__name__.startswith("_"):
            continue
        if not f"{cls.__module__}.".startswith(f"{module.__name__}."):
            continue
        # An abstract class with a name is an entry that lacks something; without one, it is a base of others.
        if not inspect.isabstract(cls) or isinstance(getattr(cls, "name", None), str):
            yield cls


def entry_of(cls: type[T], catalogue: str) -> T:
    """Makes a class's entry of a catalogue.

    Raises:
        PerfmodelError: for a class that lacks something, or cannot be made without arguments.
    """
    place = f"{catalogue.removesuffix('s')} {cls.__name__} of module {cls.__module__}"
    if missing := sorted(getattr(cls, "__abstractmethods__", ())):
        raise PerfmodelError(f"{place} lacks {', '.join(missing)}; define {'it' if len(missing) == 1 else 'them'}")
    try:
        entry = cls()
    except Exception as error:
        raise PerfmodelError(
            f"{place} cannot be made without arguments ({type(error).__name__}: {error}); mend it"
        ) from error
    if not isinstance(getattr(entry, "name", None), str):
        raise PerfmodelError(f"{place} has no name; give it one, as text")
    return entry


def folders(catalogue: str) -> list[Path]:
    """Returns the folders of perfmodel's own part of a catalogue."""
    return [Path(folder) for folder in importlib.import_module(f"perfmodel.{catalogue}").__path__]


def _modules(catalogue: str) -> Iterator[ModuleType]:
    package = importlib.import_module(f"perfmodel.{catalogue}")
    for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda i: i.name):
        name = f"{package.__name__}.{info.name}"
        try:
            module = importlib.import_module(name)
        except Exception as error:
            raise PerfmodelError(
                f"module {name} does not load ({type(error).__name__}: {error}); install what it imports, or mend it"
            ) from error
        yield module
    yield from _own.values()
    if not _is_announced(package.__name__):
        return
    from importlib.metadata import entry_points  # slow to import

    for point in entry_points(group=package.__name__):
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


def _is_announced(group: str) -> bool:
    """Returns True if an installed package may have entry points of this group, which is cheaper to ask than which."""
    name = f"[{group}]".encode()
    for folder in map(Path, dict.fromkeys(sys.path)):
        try:
            if folder.is_file() or any(name in each.read_bytes() for each in folder.glob("*-info/entry_points.txt")):
                return True  # in an archive there may be anything
        except OSError:  # what cannot be read announces nothing
            continue
    others = [each for each in sys.meta_path if each is not importlib.machinery.PathFinder]
    return any(hasattr(finder, "find_distributions") for finder in others)
