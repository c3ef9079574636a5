"""Loads every family of kernels as a programmer writes it in OpenCL C, beside the generator's own kernels.

A file has one or several kernels. Its first lines say how each is launched and which kernel of a generator computes the
same, as JSON behind ``// kernel:``, which goes on in comments that are indented by three blanks or more:

    // kernel: {"name": "copy", "generator": "global_copy", "tags": ["stride:1", "loads:1"], "global": "n",
    //   "local": 256, "args": {"in0": "n", "out": "n"}, "small": {"n": 512}, "sizes": [{"n": 4194304}]}

The arguments have the names of the generator's. ``small`` and ``sizes`` are values of the generator's size tags: the
first is for tests, the others are for measurements on a large GPU. What is not the same as the generator's kernel does,
a line of the file explains: ``// differs: KERNEL: FEATURE, FEATURE: WHY``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import perfmodel as pm
from perfmodel.collection.collection import ALL_GENERATORS

FOLDER = Path(__file__).parent


SETTLED = frozenset({"fmax of OpenCL C counts as max, that of a Loopy program as fmax"})
"""Reasons that hold no more. Stores know times by a file's whole text, so that such lines stay in it."""


@dataclass(frozen=True)
class Handwritten:
    """A kernel written by hand, and the variant of a generator that computes the same.

    Attributes:
        tags: which select the variant; those left out have their default.
        global_size, local_size, arguments, options, assumptions, statistics: see `Kernel.from_opencl`.
        small, sizes: the generator's sizes.
        differences: why a feature is not the same as of the generator's kernel, by its name.
    """

    file: Path
    name: str
    generator: str
    tags: tuple[str, ...]
    global_size: int | str | Sequence[int | str]
    local_size: int | str | Sequence[int | str]
    arguments: Mapping[str, int | str]
    options: tuple[str, ...]
    assumptions: str
    statistics: Mapping[str, float]
    small: Mapping[str, int]
    sizes: tuple[Mapping[str, int], ...]
    differences: Mapping[str, str]

    def both(self, sizes: Mapping[str, int]) -> tuple[pm.Kernel, pm.Kernel]:
        """Returns the kernel written by hand and the generator's, at the generator's sizes."""
        filters = [self.generator, *self.tags, *(f"{name}:{value}" for name, value in sizes.items())]
        (generated,) = _collection().generate_kernels(filters)
        known = {name: value for name, value in generated.bound.items() if name in self._kernel.program.arguments}
        return pm.Kernel(self._kernel.program, generated.tags, None, **known), generated

    @property
    def variant(self) -> str:
        """The tags that are not the family's default, as text."""
        defaults = {f"{tag.name}:{','.join(tag.default)}" for tag in _collection().generator(self.generator).tags}
        return " ".join(tag for tag in self.tags if tag not in defaults)

    @cached_property
    def _kernel(self) -> pm.Kernel:
        return pm.Kernel.from_opencl(
            self.file,
            self.name,
            self.global_size,
            self.local_size,
            self.arguments,
            self.options,
            assumptions=self.assumptions,
            statistics=self.statistics,
        )

    def __str__(self) -> str:
        return " ".join([self.name, *self.tags])


def files() -> list[Path]:
    return sorted(FOLDER.glob("*.cl"))


def kernels() -> list[Handwritten]:
    """Returns all handwritten kernels, in the order of their files."""
    return [kernel for file in files() for kernel in kernels_of(file)]


def kernels_of(file: Path) -> list[Handwritten]:
    given: list[str] = []
    differences: dict[str, dict[str, str]] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.startswith("// kernel:"):
            given.append(line.removeprefix("// kernel:"))
        elif line.startswith("//   ") and given:
            given[-1] += line.removeprefix("//")
        elif line.startswith("// differs:"):
            kernel, features, why = (part.strip() for part in line.removeprefix("// differs:").split(": ", 2))
            if why not in SETTLED:
                differences.setdefault(kernel, {}).update({feature.strip(): why for feature in features.split(",")})
    found = [_kernel(file, json.loads(text), differences) for text in given]
    for name in differences.keys() - {kernel.name for kernel in found}:
        raise ValueError(f"{file.name} says how {name!r} differs, but has no such kernel")
    return found


def _kernel(file: Path, given: dict[str, Any], differences: Mapping[str, Mapping[str, str]]) -> Handwritten:
    return Handwritten(
        file=file,
        name=given["name"],
        generator=given["generator"],
        tags=tuple(given["tags"]),
        global_size=given["global"],
        local_size=given["local"],
        arguments=given.get("args", {}),
        options=tuple(given.get("options", ())),
        assumptions=given.get("assumptions", ""),
        statistics=given.get("statistics", {}),
        small=given["small"],
        sizes=tuple(given["sizes"]),
        differences=differences.get(given["name"], {}),
    )


@cache
def _collection() -> pm.KernelCollection:
    return pm.KernelCollection(ALL_GENERATORS)
