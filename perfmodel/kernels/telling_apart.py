"""Tells kernels apart that nobody has named: by what their launches have different."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from perfmodel.basics.errors import PerfmodelError
from perfmodel.kernels.bound_kernel import BoundKernel
from perfmodel.kernels.launch import Launch

Told = TypeVar("Told", bound=BoundKernel)


def variants(kernels: Sequence[BoundKernel]) -> list[str]:
    """Returns the variant of each kernel; where several kernels would have the same, with what tells them apart.

    That is the work-group, the number of work-items, options of the compiler, dynamic shared memory, or else a number.
    """
    return [" ".join(filter(None, [k.variant, _words(told)])) for k, told in zip(kernels, _told(kernels), strict=True)]


def told_apart(kernels: Sequence[Told]) -> list[Told]:
    """Returns the kernels, with tags of what tells them apart where several would have the same name, variant and
    sizes; see `variants`."""
    return [
        type(kernel)(kernel.program, {**kernel.tags, **told}, None, **kernel.bound) if told else kernel
        for kernel, told in zip(kernels, _told(kernels), strict=True)
    ]


def _told(kernels: Sequence[BoundKernel]) -> list[dict[str, str]]:
    """Returns what tells each kernel from those that would look the same; nothing of others."""
    found: list[dict[str, str]] = [{} for _ in kernels]
    alike: dict[tuple[str, str, str], list[int]] = {}
    for place, kernel in enumerate(kernels):
        alike.setdefault((kernel.name, kernel.variant, str(sorted(kernel.bound.items()))), []).append(place)
    for places in alike.values():
        distinct = list(dict.fromkeys(kernels[place].program for place in places))
        if len(distinct) > 1 and len({program.content for program in distinct}) > 1:
            said = _differences([kernels[place] for place in places])
            for place, told in zip(places, said, strict=True):
                found[place] = told
    return found


def _words(told: Mapping[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in told.items())


ASPECTS: dict[str, Callable[[Launch], str]] = {
    "group": lambda launch: "x".join(map(str, launch.local_size)),
    "items": lambda launch: "x".join(map(str, launch.global_size)),
    "options": lambda launch: ",".join(option.removeprefix("-D") for option in launch.options) or "none",
    "shared": lambda launch: str(launch.shared_bytes),
}


def _differences(kernels: Sequence[BoundKernel]) -> list[dict[str, str]]:
    """Returns aspects of each of several kernels, which differ where what the kernels do may differ."""
    try:
        launches = [kernel.launch() for kernel in kernels]
    except PerfmodelError:  # open sizes: there is no launch to look at
        launches = []
    found: list[dict[str, str]] = [{} for _ in kernels]
    for name, aspect in ASPECTS.items() if launches else ():
        values = list(map(aspect, launches))
        if len(set(values)) > 1 and len(set(map(_words, found))) < len(kernels):
            for each, value in zip(found, values, strict=True):
                each[name] = value
    contents = [kernel.program.content for kernel in kernels]
    numbers = {content: number for number, content in enumerate(dict.fromkeys(contents), start=1)}
    if len(set(map(_words, found))) < len(numbers):
        found = [{**each, "version": str(numbers[content])} for each, content in zip(found, contents, strict=True)]
    return found
