"""Tells kernels apart that nobody has named: by what their launches have different."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from perfmodel.basics.errors import PerfmodelError
from perfmodel.kernels.bound_kernel import BoundKernel
from perfmodel.kernels.launch import Launch


def variants(kernels: Sequence[BoundKernel]) -> list[str]:
    """Returns the variant of each kernel; where several kernels would have the same, with what tells them apart.

    That is the work-group, the number of work-items, options of the compiler, dynamic shared memory, or else a number.
    """
    found = [kernel.variant for kernel in kernels]
    alike: dict[tuple[str, str, str], list[int]] = {}
    for place, kernel in enumerate(kernels):
        alike.setdefault((kernel.name, found[place], str(sorted(kernel.bound.items()))), []).append(place)
    for places in alike.values():
        distinct = list(dict.fromkeys(kernels[place].program for place in places))
        if len(distinct) > 1 and len({program.content for program in distinct}) > 1:
            said = _differences([kernels[place] for place in places])
            for place, words in zip(places, said, strict=True):
                found[place] = f"{found[place]} {words}".strip()
    return found


ASPECTS: dict[str, Callable[[Launch], str]] = {
    "group": lambda launch: "x".join(map(str, launch.local_size)),
    "items": lambda launch: "x".join(map(str, launch.global_size)),
    "options": lambda launch: ",".join(option.removeprefix("-D") for option in launch.build_options) or "none",
    "shared": lambda launch: str(launch.shared_bytes),
}


def _differences(kernels: Sequence[BoundKernel]) -> list[str]:
    """Returns words for each of several kernels, which differ where what the kernels do may differ."""
    try:
        launches = [kernel.launch() for kernel in kernels]
    except PerfmodelError:  # open sizes: there is no launch to look at
        launches = []
    words: list[list[str]] = [[] for _ in kernels]
    for name, aspect in ASPECTS.items() if launches else ():
        values = list(map(aspect, launches))
        if len(set(values)) > 1 and len(set(map(tuple, words))) < len(kernels):
            for each, value in zip(words, values, strict=True):
                each.append(f"{name}={value}")
    contents = [kernel.program.content for kernel in kernels]
    numbers = {content: number for number, content in enumerate(dict.fromkeys(contents), start=1)}
    texts = [" ".join(each) for each in words]
    if len(set(texts)) < len(numbers):
        texts = [f"{text} version={numbers[content]}".strip() for text, content in zip(texts, contents, strict=True)]
    return texts
