"""Kernel generators and the tag filters that select their variants (UIPiCK; 2018 slides, "Generating kernels")."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perfmodel import registry
from perfmodel.errors import TagError, nearest
from perfmodel.kernel import Kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray


MOST_DIGITS = 19


@dataclass(frozen=True)
class Tag:
    """One way in which a generator's kernels vary.

    Attributes:
        default: the values taken where a filter doesn't mention the tag.
        values: all values that ``name:*`` selects.
        is_open: whether a filter may ask for positive whole numbers beyond `values`.
        is_size: whether the tag is a size of the kernel, rather than a variant of its code.
    """

    name: str
    summary: str
    default: tuple[str, ...]
    values: tuple[str, ...]
    is_open: bool = False
    is_size: bool = False

    def select(self, asked: str | None) -> tuple[str, ...]:
        """The values that a filter's ``a,b`` or ``*`` selects.

        Raises:
            TagError: for a value that the tag does not have.
        """
        if asked is None:
            return self.default
        if asked == "*":
            return self.values
        chosen = tuple(dict.fromkeys(value.strip() for value in asked.split(",")))
        for value in chosen:
            number = value.isdecimal() and len(value) < MOST_DIGITS and int(value) > 0
            if value not in self.values and not (self.is_open and number):
                raise TagError(
                    f"tag {self.name!r} has no value {value[:40]!r}{nearest(value, self.values)} (it has "
                    f"{', '.join(self.values)}{' and other whole numbers' if self.is_open else ''})"
                )
        return tuple(str(int(v)) if v.isdecimal() else v for v in chosen)


def choice(name: str, summary: str, *values: str, default: str | None = None) -> Tag:
    """A tag with a fixed list of values; the first is the default unless said otherwise."""
    return Tag(name, summary, (default or values[0],), values)


def number(name: str, summary: str, *values: int, default: int | None = None) -> Tag:
    """A tag whose values are whole numbers; a filter may ask for others than those listed."""
    texts = tuple(str(v) for v in values)
    return Tag(name, summary, (str(default if default is not None else values[0]),), texts, is_open=True)


def size(name: str, summary: str, *values: int) -> Tag:
    """A size of the kernel; all listed values are taken unless a filter asks for others."""
    texts = tuple(str(v) for v in values)
    return Tag(name, summary, texts, texts, is_open=True, is_size=True)


class KernelGenerator(ABC):
    """One family of kernels.

    A subclass names itself, declares its tags, builds one program for one variant, and says in numpy what the
    program computes.
    """

    name: str
    summary: str
    tags: tuple[Tag, ...]

    @abstractmethod
    def program(self, variant: Mapping[str, str]) -> Any:
        """The Loopy program of a variant: a value for each tag that is no size.

        Raises:
            TagError: if these values do not go together.
        """

    @abstractmethod
    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        """What the kernel must write, given all its arrays flat as they were before: the oracle of the tests."""

    def fits(self, variant: Mapping[str, str], sizes: Mapping[str, int]) -> bool:
        """Whether this variant can have these sizes; combinations that can't are left out."""
        return True

    def kernels(self, filters: Mapping[str, str]) -> list[Kernel]:
        """Every selected variant at every selected size, in the order of the tags' values."""
        variant_tags = [tag for tag in self.tags if not tag.is_size]
        size_tags = [tag for tag in self.tags if tag.is_size]
        result = []
        for variant in _combinations(variant_tags, filters):
            fitting = [s for s in _sizes(size_tags, filters) if self.fits(variant, s)]
            if fitting:
                base = Kernel(self.program(variant), {"generator": self.name, **variant})
                result += [base.at(**sizes) for sizes in fitting]
        return result


class KernelCollection:
    """Generators and a filter over their tags.

    >>> KernelCollection(ALL_GENERATORS).generate_kernels(["matmul_sq", "prefetch:*", "n:512,1024"])
    """

    def __init__(self, generators: Iterable[KernelGenerator]) -> None:
        self.generators: dict[str, KernelGenerator] = {}
        for generator in generators:
            if generator.name in self.generators:
                raise TagError(f"two generators are called {generator.name!r}; rename one of them")
            self.generators[generator.name] = generator

    def generate_kernels(self, tags: Sequence[str]) -> list[Kernel]:
        """The kernels that the tags select, in a stable order.

        A bare name selects a generator; several select several, none selects all generators that have every tag
        mentioned. ``name:value``, ``name:a,b`` and ``name:*`` select variants and sizes; a tag that is not mentioned
        has its default. Among several generators, a tag applies to those that have it.

        Raises:
            TagError: for a tag or value that no selected generator has, with the nearest ones.
        """
        if isinstance(tags, str):
            raise TagError(f"tags are a list of strings; write [{tags!r}]")
        names, filters = self._read(tags)
        chosen = [g for g in self.generators.values() if g.name in names] if names else self._all_with(filters)
        known = {tag.name for generator in chosen for tag in generator.tags}
        for tag in filters:
            if tag not in known:
                raise TagError(
                    f"no tag {tag!r} in {', '.join(g.name for g in chosen)}{nearest(tag, known)} "
                    f"(known: {', '.join(sorted(known))})"
                )
        kernels = [kernel for generator in chosen for kernel in generator.kernels(filters)]
        if not kernels:
            raise TagError(f"tags {list(tags)} select no kernel: no variant fits these sizes; ask for other sizes")
        return kernels

    def _read(self, tags: Sequence[str]) -> tuple[list[str], dict[str, str]]:
        names: list[str] = []
        filters: dict[str, str] = {}
        for tag in tags:
            name, colon, value = tag.strip().partition(":")
            if not colon and name not in self.generators:
                every = {t.name for g in self.generators.values() for t in g.tags}
                hint = f"; {name!r} is a tag, write '{name}:value'" if name in every else nearest(name, self.generators)
                raise TagError(f"no generator {name!r}{hint} (known: {', '.join(sorted(self.generators))})")
            if not colon:
                names.append(name)
            elif name in filters:
                raise TagError(f"tag {name!r} is given twice; write '{name}:{filters[name]},{value}' for both")
            else:
                filters[name] = value
        return names, filters

    def _all_with(self, filters: Mapping[str, str]) -> list[KernelGenerator]:
        every = {tag.name for g in self.generators.values() for tag in g.tags}
        for tag in filters:
            if tag not in every:
                raise TagError(f"no generator has a tag {tag!r}{nearest(tag, every)}")
        chosen = [g for g in self.generators.values() if {t.name for t in g.tags} >= set(filters)]
        if not chosen:
            raise TagError(f"no generator has all of the tags {', '.join(filters)}; name the generators to select")
        return chosen


def _combinations(tags: Sequence[Tag], filters: Mapping[str, str]) -> Iterable[dict[str, str]]:
    choices = [tag.select(filters.get(tag.name)) for tag in tags]
    for values in itertools.product(*choices):
        yield {tag.name: value for tag, value in zip(tags, values, strict=True)}


def _sizes(tags: Sequence[Tag], filters: Mapping[str, str]) -> Iterable[dict[str, int]]:
    for values in _combinations(tags, filters):
        yield {name: int(value) for name, value in values.items()}


ALL_GENERATORS: tuple[KernelGenerator, ...]
"""Every generator found, perfmodel's own and those of installed packages."""


def __getattr__(name: str) -> Any:
    # Found when first asked for: the generators import loopy, which takes a second.
    if name == "ALL_GENERATORS":
        return registry.entries("generators", KernelGenerator)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
