"""KernelGenerator: one family of kernels, its variants and sizes (UIPiCK; 2018 slides, "Generating kernels")."""

from __future__ import annotations

import inspect
import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.brief import brief
from perfmodel.basics.errors import GeneratorError, PerfmodelError, TagError, nearest
from perfmodel.collection.auto_size import sizes_for
from perfmodel.collection.size_series import SizeSeries, parse_size
from perfmodel.collection.tags import COMMON, GROUPS_FIT, LSIZES, RESERVED, TRANSFERS, WORK_REMOVED, Tag, work_groups
from perfmodel.device import Device, find_device
from perfmodel.device.buffers import random_values
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.remembered_program import remembered

MOST_PROGRAMS = 256
"""So many programs are remembered, of all families together."""


TOLERANCES = {"float16": 2e-2, "float32": 3e-5, "float64": 1e-12}
"""Results may be off by so much of each element, and of a thousandth of the largest: sums of a few hundred terms in
another order than numpy's, and functions that a driver rounds more coarsely."""


class KernelGenerator(ABC):
    """One family of kernels.

    A subclass names itself, declares its tags, builds one program for one variant, and says in numpy what the
    program computes.

    Attributes:
        source: where the family was published.
        limits: which combinations of tags `fits` leaves out, for the error where nothing else was asked for.
        checks: filters with small sizes, at each of which all choices of the family are checked against `reference`.
    """

    name: str
    summary: str
    source: str = ""
    limits: str = ""
    tags: tuple[Tag, ...]
    checks: tuple[tuple[str, ...], ...]

    @abstractmethod
    def program(self, variant: Mapping[str, str]) -> Any:
        """Returns the Loopy program, or any `Program`, of a variant: a value for each tag that is no size.

        It follows from the variant, and is remembered, but for generators with attributes of their own instance.

        Raises:
            TagError: if these values do not go together.
        """

    @abstractmethod
    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        """Returns what the kernel must write, given all its arrays flat as they were before: the oracle of the
        tests."""

    def multiples(self, variant: Mapping[str, str]) -> Mapping[str, int]:
        """Returns the size tags that must be multiples of a number where work-groups fit, and that number.

        By default ``n`` is a multiple of the work-group's sides, in a family whose tags say that and whether they fit.
        """
        names = {tag.name for tag in self.tags}
        sides = [int(value) for name, value in variant.items() if name.startswith("lsize_")]
        return {"n": math.lcm(*sides)} if {GROUPS_FIT.name, "n"} <= names else {}

    def fits(self, variant: Mapping[str, str], sizes: Mapping[str, int]) -> bool:
        """Returns True if this variant can have these sizes; combinations that can't are left out."""
        return True

    def arguments(self, variant: Mapping[str, str], sizes: Mapping[str, int]) -> Mapping[str, float]:
        """Returns the program's sizes and other scalars, from the size tags."""
        return sizes

    def inputs(self, kernel: Kernel, random: np.random.Generator) -> Mapping[str, NDArray[Any]]:
        """Returns flat arrays to check the kernel with, by default such as it is measured with: see `random_values`."""
        return {array.name: random_values(random, array.dtype, array.size) for array in kernel.launch().arrays()}

    def tolerance(self, kernel: Kernel, dtype: str) -> float:
        """Returns how far, relative to what is expected, a result of a type may be off: `TOLERANCES` by default."""
        return TOLERANCES.get(dtype, 0.0)

    def kernels(self, filters: Mapping[str, str], device: Device | str | None = None) -> list[Kernel]:
        """Returns every selected variant at every selected size, in the order of the tags' values."""
        return [
            kernel for variant, sizes in self.selected(filters, device) for kernel in self.made(variant, sizes, filters)
        ]

    def selected(
        self, filters: Mapping[str, str], device: Device | str | None = None
    ) -> Iterator[tuple[dict[str, str], list[dict[str, int]]]]:
        """Yields every selected variant that has sizes, with its selected sizes; programs are made only where ``auto``
        sizes need them."""
        for variant in self._variants(filters):
            if sizes := self._sizes(variant, filters, device):
                yield variant, sizes

    def variants(self, filters: Mapping[str, str]) -> Iterator[dict[str, str]]:
        """Yields every selected variant that some size can have; of sizes that are left to a device, a listed one."""
        for variant in self._variants(filters):
            if any(self._is_possible(variant, sizes) for sizes in self._asked_sizes(variant, filters)):
                yield variant

    def make(self, variant: Mapping[str, str]) -> None:
        """Makes the program of a variant, for who asks for its kernels."""
        self._base(variant)

    def made(
        self, variant: Mapping[str, str], sizes: Iterable[Mapping[str, int]], filters: Mapping[str, str] | None = None
    ) -> list[Kernel]:
        """Returns the kernels of one selected variant at some of its sizes.

        Args:
            filters: of which those that every family has say whether accesses are kept singly, or copied arrays timed.
        """
        bound = [self._arguments(variant, each) for each in sizes]
        return [base.at(**arguments) for base in self._programs(variant, filters or {}) for arguments in bound]

    def check_values(self, filters: Mapping[str, str]) -> None:
        """Raises TagError for the first value asked for that is none of this family's."""
        self._choices(filters)
        for tag in (*self.tags, *COMMON):
            tag.select(filters.get(tag.name))

    def why_none(self, filters: Mapping[str, str], device: Device | str | None = None) -> str:
        """Returns the reason why `kernels` gives none, and what to ask for instead."""
        choices = [(v, list(self._asked_sizes(v, filters))) for v in self._variants(filters)]
        if any(self._sizes(variant, filters, device) for variant, _ in choices):
            return "they have no global access to keep; leave out work_removed:True"
        for variant, asked in choices:
            for sizes in asked:
                for name, multiple in self._multiples(variant).items():
                    if reason := self._why_not(variant, sizes, name, multiple):
                        return reason
        for variant, _ in choices:
            for sizes in self._asked_sizes(variant, {}):
                if self._is_possible(variant, sizes):
                    example = " ".join(f"{name}:{value}" for name, value in sizes.items())
                    return f"no variant has these sizes; ask for others, such as {example}" + self._limits
        return "no size has such a variant; ask for other variants" + self._limits

    @property
    def _limits(self) -> str:
        return f" (there are none with {self.limits})" if self.limits else ""

    def _asked_sizes(self, variant: Mapping[str, str], filters: Mapping[str, str]) -> Iterable[dict[str, int]]:
        """Returns the sizes that filters name; the listed ones of a size that is left to the device."""
        tags = [tag for tag in self.tags if tag.is_size]
        choices = [self._size_values(tag, filters.get(tag.name), variant) for tag in tags]
        for place, tag in enumerate(tags):
            if not all(isinstance(value, int) for value in choices[place]):
                choices[place] = self._size_values(tag, None, variant)
        for values in itertools.islice(itertools.product(*choices), 1000):
            yield {tag.name: int(str(value)) for tag, value in zip(tags, values, strict=True)}

    def _why_not(self, variant: Mapping[str, str], sizes: Mapping[str, int], name: str, multiple: int) -> str:
        """Returns what is wrong with one size, if that is all; else an empty text."""
        groups_fit = variant.get(GROUPS_FIT.name)
        moved = {tag: self._moved(tag, value, variant) for tag, value in sizes.items()}
        if moved[name] == sizes[name] or not self._is_possible(variant, moved):
            return ""
        must = "can't be" if groups_fit == "False" else "must be"
        below = sizes[name] // multiple * multiple
        better = [below] if below and self._is_possible(variant, {**moved, name: below}) else []
        other = {"True": "False", "False": "True"}.get(groups_fit or "")
        return (
            f"{name} {must} a multiple of {multiple}"
            + (f" with {GROUPS_FIT.name}:{groups_fit}" if groups_fit else "")
            + f"; ask for {' or '.join(f'{name}:{value}' for value in [*better, moved[name]])}"
            + (f", or {GROUPS_FIT.name}:{other}" if other else "")
        )

    def _called(self, method: str, *arguments: Any) -> Any:
        """Returns what a method of the subclass gives; an error in it is said to be the generator's."""
        try:
            return getattr(self, method)(*arguments)
        except PerfmodelError:
            raise
        except Exception as error:
            raise GeneratorError(
                f"generator {self.name!r} failed in {method}(…) with {type(error).__name__}: {error}; mend it"
            ) from error

    def _arguments(self, variant: Mapping[str, str], sizes: Mapping[str, int]) -> Mapping[str, float]:
        found = self._called("arguments", variant, sizes)
        if not isinstance(found, Mapping):
            raise GeneratorError(
                f"arguments(…) of generator {self.name!r} gives {found!r:.40}; return a dictionary of numbers"
            )
        return found

    def _multiples(self, variant: Mapping[str, str]) -> dict[str, int]:
        """Returns the tags of `multiples` whose number is not 1."""
        found = self._called("multiples", variant)
        known = [tag.name for tag in self.tags if tag.is_size]
        if not isinstance(found, Mapping):
            raise GeneratorError(
                f"multiples(…) of generator {self.name!r} gives {found!r:.40}; return a dictionary of whole numbers"
            )
        for name, multiple in found.items():
            if name not in known:
                raise GeneratorError(
                    f"multiples(…) of generator {self.name!r} has {name!r}, which is no size; name one of "
                    f"{', '.join(known) or 'its sizes, of which it has none'}{nearest(str(name), known)}"
                )
            if not isinstance(multiple, int) or multiple < 1:
                raise GeneratorError(
                    f"multiples(…) of generator {self.name!r} says {name!r} must be a multiple of {multiple!r}; "
                    "return a whole number of 1 or more"
                )
        return {name: multiple for name, multiple in found.items() if multiple > 1}

    def _programs(self, variant: Mapping[str, str], filters: Mapping[str, str]) -> list[Kernel]:
        """Returns the variant's kernel, and those of its single accesses, with sizes still open; with and without
        transfers."""
        base = self._base(variant)
        work_removed, transfers = (tag.select(filters.get(tag.name)) for tag in (WORK_REMOVED, TRANSFERS))
        whole = [base] if "False" in work_removed else []
        found = [*whole, *(base.with_each_access() if "True" in work_removed else [])]
        moved = [kernel.with_transfers() for kernel in found] if "True" in transfers else []
        return [*(found if "False" in transfers else []), *moved]

    def _base(self, variant: Mapping[str, str]) -> Kernel:
        # What a generator holds may change, and its programs with it.
        make = _open.__wrapped__ if vars(self) or not isinstance(self, Hashable) else _open
        return make(self, tuple(variant.items()))

    def _variants(self, filters: Mapping[str, str]) -> Iterable[dict[str, str]]:
        names = [tag.name for tag in self.tags if not tag.is_size]
        sides = [name for name in names if name.startswith("lsize_")]
        *choices, groups = self._choices(filters)
        for values in itertools.product(*choices):
            variant = dict(zip(names, values, strict=True))
            for group in groups:
                yield variant | dict(zip(sides, group, strict=False))

    def _choices(self, filters: Mapping[str, str]) -> list[Sequence[Any]]:
        """Returns the values of each tag that is no size; last, whole work-groups, none of which has a side if unasked
        for."""
        tags = [tag for tag in self.tags if not tag.is_size]
        rank = sum(tag.name.startswith("lsize_") for tag in tags)
        groups = work_groups(filters[LSIZES], rank) if LSIZES in filters and rank else [()]
        return [*(tag.select(filters.get(tag.name)) for tag in tags), [tuple(map(str, group)) for group in groups]]

    def _sizes(
        self, variant: Mapping[str, str], filters: Mapping[str, str], device: Device | str | None
    ) -> list[dict[str, int]]:
        tags = [tag for tag in self.tags if tag.is_size]
        choices = [self._size_values(tag, filters.get(tag.name), variant) for tag in tags]
        seen: list[dict[str, int]] = []
        for values in itertools.product(*choices):
            for sizes in self._resolved({tag.name: v for tag, v in zip(tags, values, strict=True)}, variant, device):
                if sizes not in seen and self._is_possible(variant, sizes):
                    seen.append(sizes)
        return seen

    def _size_values(self, tag: Tag, asked: str | None, variant: Mapping[str, str]) -> list[int | SizeSeries]:
        """Returns a tag's sizes: numbers that a filter names as they are; listed ones and powers moved to fit the
        groups."""
        result: list[int | SizeSeries] = []
        for text in tag.select(asked):
            value = parse_size(text, tag.step, tag.cases)
            assert value is not None
            if isinstance(value, SizeSeries):
                result += [value] if value.start is None else [self._moved(tag.name, s, variant) for s in value.sizes()]
            else:
                is_listed = asked in (None, "*") or not text.isdecimal()
                result.append(self._moved(tag.name, value, variant) if is_listed else value)
        return result

    def _moved(self, name: str, value: int, variant: Mapping[str, str]) -> int:
        multiple = self._multiples(variant).get(name, 1)
        if variant.get(GROUPS_FIT.name) == "False":
            return value - 1 if multiple > 1 and value % multiple == 0 else value
        return -(-value // multiple) * multiple

    def _is_possible(self, variant: Mapping[str, str], sizes: Mapping[str, int]) -> bool:
        multiples = self._multiples(variant)
        has_remainders = any(sizes[name] % multiple for name, multiple in multiples.items())
        groups_fit = variant.get(GROUPS_FIT.name) != "False"
        return (not multiples or has_remainders != groups_fit) and bool(self._called("fits", variant, sizes))

    def _resolved(
        self, sizes: Mapping[str, int | SizeSeries], variant: Mapping[str, str], device: Device | str | None
    ) -> list[dict[str, int]]:
        """Returns the sizes with an open series replaced by sizes that suit the device."""
        given = {name: value for name, value in sizes.items() if not isinstance(value, SizeSeries)}
        open_series = {name: value for name, value in sizes.items() if isinstance(value, SizeSeries)}
        if not open_series:
            return [given]
        if len(open_series) > 1:
            raise TagError(f"{' and '.join(open_series)} of {self.name!r} are both auto; give all but one by number")

        ((name, series),) = open_series.items()
        bases: list[Kernel] = []

        def at(value: int) -> dict[str, int]:
            return {tag: given.get(tag, self._moved(name, value, variant)) for tag in sizes}

        def kernel_at(value: int) -> Kernel | None:
            if not self._is_possible(variant, at(value)):
                return None
            # A variant that no size has may have no program either.
            bases[:] = bases or [self._base(variant)]
            return bases[0].at(**self._arguments(variant, at(value)))

        least = self._multiples(variant).get(name, 1)
        values = sizes_for(find_device(device), series.step, series.cases, kernel_at, at_least=least)
        return [at(value) for value in values]

    def __repr__(self) -> str:
        return brief(self, self.name, self.summary, f"tags {', '.join(tag.name for tag in self.tags)}")


@lru_cache(MOST_PROGRAMS)
def _open(generator: KernelGenerator, variant: tuple[tuple[str, str], ...]) -> Kernel:
    """Returns a variant's kernel with sizes still open: of the same program as before, which is counted, and translated
    to OpenCL C, once."""

    def made() -> Any:
        program = generator._called("program", dict(variant))
        if program is None:
            raise GeneratorError(
                f"program(…) of generator {generator.name!r} gives None; return the program that it makes"
            )
        return program

    program = remembered(generator, dict(variant), made)
    return Kernel(program, {"generator": generator.name, **dict(variant)})


def check_generator(generator: KernelGenerator) -> None:
    """Refuses a generator that filters could not select by, or whose kernels a report could not tell apart."""
    if not isinstance(generator, KernelGenerator):
        what = f"{generator.__name__}()" if inspect.isclass(generator) else "an instance of a KernelGenerator"
        raise GeneratorError(f"{generator!r:.60} is no generator; give {what}")
    place = f"generator {type(generator).__name__} of module {type(generator).__module__}"
    for attribute in ("name", "summary", "tags", "checks"):
        if not hasattr(generator, attribute):
            raise GeneratorError(f"{place} has no {attribute}; give it one as an attribute of the class")
    if not isinstance(generator.name, str) or not generator.name.isidentifier():
        raise GeneratorError(f"{place} is called {generator.name!r}; name it with letters, digits and underscores")
    if not isinstance(generator.tags, tuple) or not all(isinstance(tag, Tag) for tag in generator.tags):
        raise GeneratorError(
            f"tags of {place} are no tuple of tags; write tags = (choice(…), size(…)), a comma behind each"
        )
    names = [tag.name for tag in generator.tags]
    for name in names:
        if not name.isidentifier() or name in RESERVED:
            raise GeneratorError(
                f"{place} has a tag {name!r}; name it with letters, digits and underscores, and none of "
                f"{', '.join(RESERVED)}"
            )
        if names.count(name) > 1:
            raise GeneratorError(f"{place} has two tags {name!r}; rename one of them")
