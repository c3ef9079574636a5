"""Remembers generators' Loopy programs from run to run: importing Loopy takes longer than all else of a prediction."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

from perfmodel.basics.disk_cache import DiskCache, is_on
from perfmodel.basics.errors import KernelError
from perfmodel.counting.usual_budget import USUAL
from perfmodel.kernels.arguments import Argument, Array, Derived, Scalar
from perfmodel.kernels.launch import Launch
from perfmodel.kernels.loopy_program import LoopyProgram
from perfmodel.kernels.opencl_program import OpenCLProgram
from perfmodel.kernels.size_expression import SizeExpression

ENTRIES = DiskCache("programs", most=16384)
"""Programs are some 4 kB each: those that the models of any kernel are made and judged with have room."""
CATALOGUE = "perfmodel.generators."
"""Programs of these modules follow from sources that are known; those of others may follow from anything."""

_remembers: ContextVar[bool] = ContextVar("remembers", default=False)


@contextmanager
def remembering() -> Iterator[None]:
    """Takes programs of generators from earlier runs meanwhile, and keeps what is made for later ones."""
    token = _remembers.set(True)
    try:
        yield
    finally:
        _remembers.reset(token)


def remembered(generator: Any, variant: Mapping[str, str], make: Callable[[], Any]) -> Any:
    """Returns a generator's program of a variant: as it is made or, while `remembering`, as an earlier run kept it."""
    if not _is_kept(generator):
        return make()
    made: list[Any] = []

    def plain() -> dict[str, Any] | None:
        made.append(make())
        return _plain(made[0])

    known = ENTRIES.kept(_key(generator, variant), plain, read=lambda data: data, plain=lambda data: data)
    if made:
        return made[0]
    return make() if known is None else RememberedProgram(known, make)


def is_to_be_kept(generator: Any, variant: Mapping[str, str]) -> bool:
    """Returns True if a generator's program of a variant would be kept when it is made now, and is not there yet."""
    return _is_kept(generator) and not ENTRIES.has(_key(generator, variant))


def _is_kept(generator: Any) -> bool:
    return _remembers.get() and is_on() and type(generator).__module__.startswith(CATALOGUE)


def _key(generator: Any, variant: Mapping[str, str]) -> list[Any]:
    return [_sources(), generator.name, sorted(variant.items())]


def _plain(made: Any) -> dict[str, Any] | None:
    """Returns all that predictions ask of a Loopy program, as JSON has it; None where that is not all there is."""
    program = made if hasattr(made, "launch") else LoopyProgram(made)
    if type(program) is not LoopyProgram or len(program._assumptions) != 1:
        return None
    try:
        opencl, known_by, content = program.as_opencl(), program.known_by(), program.content
    except (KernelError, TypeError):  # Loopy writes no code for it, or cannot know it again
        return None
    return {
        "name": program.name,
        "arguments": program.arguments,
        "sizes": program.sizes,
        "statistics": program.statistics,
        "known_by": known_by,
        "content": content,
        "extents": [str(extent) for extent, _ in program._extents],
        "opencl": [*opencl._given[:4], opencl.assumptions, opencl.statistics],
        "declared": [_plain_argument(each) for each in opencl.declared],
    }


def _plain_argument(argument: Argument | Derived) -> list[Any]:
    assert isinstance(argument, Array | Scalar)  # code of Loopy has no others
    more = [argument.extent, argument.is_output] if isinstance(argument, Array) else []
    return [argument.name, argument.dtype, *more]


@cache
def _sources() -> list[Any]:
    """Returns all that generators' programs follow from: versions, and the content of modules that they may import."""
    from perfmodel.basics.registry import folders  # as short commands need neither
    from perfmodel.counting.cache import VERSIONS  # of Loopy and of what counts

    found, rooms = hashlib.sha256(), Path(__file__).parents[1]
    for folder in (*folders("generators"), rooms / "collection", rooms / "kernels"):
        for source in sorted(folder.rglob("*.py")):
            found.update(source.read_bytes())
    return [*VERSIONS, found.hexdigest()]


class RememberedProgram(LoopyProgram):
    """A Loopy program that an earlier run knew; it is made again where more is asked than was kept."""

    def __init__(self, known: Mapping[str, Any], make: Callable[[], Any]) -> None:
        self.name = known["name"]
        self.arguments, self.sizes = tuple(known["arguments"]), tuple(known["sizes"])
        self.statistics, self.budget = dict(known["statistics"]), USUAL
        self._counts, self._known, self._make = {}, known, make

    @cached_property
    def translation_unit(self) -> Any:
        made = self._make()
        return (made if isinstance(made, LoopyProgram) else LoopyProgram(made)).translation_unit

    @cached_property
    def content(self) -> str:
        return str(self._known["content"])

    def known_by(self) -> str:
        return str(self._known["known_by"])

    @cached_property
    def _opencl(self) -> OpenCLProgram:
        source, name, global_size, local_size, assumptions, statistics = self._known["opencl"]
        declared = [
            Array(name, dtype, *more) if more else Scalar(name, dtype) for name, dtype, *more in self._known["declared"]
        ]
        return OpenCLProgram(
            source, name, global_size, local_size, declared, assumptions=assumptions, statistics=statistics
        )

    def launch(self, arguments: Mapping[str, float]) -> Launch:
        try:
            return self._opencl.launch(arguments)
        except KernelError:
            return super().launch(arguments)  # says what is wrong

    def check(self, sizes: Mapping[str, Any]) -> None:
        if self._are_sound(self._opencl.check, sizes) and all(np.all(value >= 0) for value in sizes.values()):
            return
        super().check(sizes)  # says what is wrong

    def check_launch(self, sizes: Mapping[str, Any]) -> None:
        if self._are_sound(self._opencl.check_launch, sizes) and all(
            np.all(extent.values(sizes) >= 1) for extent in self._axes
        ):
            return
        super().check_launch(sizes)

    @staticmethod
    def _are_sound(check: Callable[[Mapping[str, Any]], None], sizes: Mapping[str, Any]) -> bool:
        try:
            check(sizes)
        except KernelError:
            return False
        return True

    @cached_property
    def _axes(self) -> list[SizeExpression]:
        return [SizeExpression(f"extent of {self.name!r}", each, self.sizes) for each in self._known["extents"]]
