"""Kernel generators and the tag filters that select their variants (UIPiCK; 2018 slides, "Generating kernels")."""

from __future__ import annotations

import inspect
import itertools
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perfmodel import registry
from perfmodel.device.buffers import random_values
from perfmodel.errors import CountingError, PerfmodelError, TagError, nearest
from perfmodel.kernel import Kernel
from perfmodel.size_series import SizeSeries, parse_size
from perfmodel.work_removal import isolate_accesses

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from perfmodel.device import Device


# Sets of work-groups (2016, section 4.1), for `lsizes`.
WORK_GROUP_SETS = {
    "1-D_Small": ((192,), (224,), (256,)),
    "1-D_Med": ((128,), (256,), (384,)),
    "1-D_Large": ((256,), (384,), (512,)),
    "2-D_Small": ((16, 12), (16, 14), (16, 16)),
    "2-D_Med": ((16, 12), (16, 16), (32, 16)),
    "2-D_Large": ((16, 16), (24, 16), (32, 16)),
}
LSIZES = "lsizes"
"""The tag for whole work-groups: ``lsizes:16x12,32x16`` or ``lsizes:2-D_Med``, instead of ``lsize_0`` …"""


@dataclass(frozen=True)
class Tag:
    """One way in which a generator's kernels vary.

    Attributes:
        default: the values taken where a filter doesn't mention the tag.
        values: all values that ``name:*`` selects.
        is_open: whether a filter may ask for positive whole numbers beyond `values`.
        is_size: whether the tag is a size of the kernel, rather than a variant of its code.
        pattern: regular expression of what else may be asked for where the tag is open, `others` in words.
        step, cases: of the series of powers of two that a size is measured at, see `SizeSeries`.
    """

    name: str
    summary: str
    default: tuple[str, ...]
    values: tuple[str, ...]
    is_open: bool = False
    is_size: bool = False
    step: int = 1
    cases: int = 4
    pattern: str = ""
    others: str = "other whole numbers"

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
            if value not in self.values and not (self.is_open and self._opens(value)):
                others = f", 2^10, 2^(7+t), auto and {self.others}" if self.is_size else f" and {self.others}"
                raise TagError(
                    f"tag {self.name!r} has no value {value[:40]!r}{nearest(value, self.values)} (it has "
                    f"{', '.join(self.values)}{others if self.is_open else ''})"
                )
        return tuple(str(int(v)) if v.isdecimal() else v for v in chosen)

    def _opens(self, value: str) -> bool:
        if self.pattern and re.fullmatch(self.pattern, value):
            return True
        found = parse_size(value, self.step, self.cases)
        return found is not None and (self.is_size or value.isdecimal())


def choice(name: str, summary: str, *values: str, default: str | None = None) -> Tag:
    """A tag with a fixed list of values; the first is the default unless said otherwise."""
    return Tag(name, summary, (default or values[0],), values)


def number(name: str, summary: str, *values: int, default: int | None = None) -> Tag:
    """A tag whose values are whole numbers; a filter may ask for others than those listed."""
    texts = tuple(str(v) for v in values)
    return Tag(name, summary, (str(default if default is not None else values[0]),), texts, is_open=True)


def size(name: str, summary: str, *values: int, step: int = 1, cases: int = 4) -> Tag:
    """A size of the kernel; all listed values are taken unless a filter asks for others.

    Args:
        step, cases: ``name:auto`` takes `cases` powers of two, each ``2**step`` times the one before.
    """
    texts = tuple(str(v) for v in values)
    return Tag(name, summary, texts, texts, is_open=True, is_size=True, step=step, cases=cases)


def work_group(*sides: int) -> tuple[Tag, ...]:
    """The tags ``lsize_0`` … of a work-group, with default sides."""
    listed = (64, 128, 256, 512) if len(sides) == 1 else (8, 16, 32)
    return tuple(
        number(f"lsize_{axis}", f"work-items of a work-group along axis {axis}", *listed, default=side)
        for axis, side in enumerate(sides)
    )


DTYPE = choice("dtype", "element type", "float32", "float64", "float16")
GROUPS_FIT = choice(
    "groups_fit", "sizes are multiples of the work-group; else the kernel has remainders", "True", "False"
)


MOST_REASONS = 3
"""Families of which an error says why none of their kernels is selected."""
WORK_REMOVED = choice("work_removed", "each kernel's distinct global accesses by themselves", "False", "True")
"""The tag that every family has beside its own: see `isolate_accesses`."""


RESERVED = (WORK_REMOVED.name, LSIZES, "generator", "kept")
"""What kernels and filters have beside a family's own tags."""


class GeneratorError(TagError):
    """A generator that is wrong in itself, whatever is asked of it."""


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
        """The Loopy program, or any `Program`, of a variant: a value for each tag that is no size.

        Raises:
            TagError: if these values do not go together.
        """

    @abstractmethod
    def reference(self, kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        """What the kernel must write, given all its arrays flat as they were before: the oracle of the tests."""

    def multiples(self, variant: Mapping[str, str]) -> Mapping[str, int]:
        """The size tags that must be multiples of a number where work-groups fit, and that number."""
        return {}

    def fits(self, variant: Mapping[str, str], sizes: Mapping[str, int]) -> bool:
        """Whether this variant can have these sizes; combinations that can't are left out."""
        return True

    def arguments(self, variant: Mapping[str, str], sizes: Mapping[str, int]) -> Mapping[str, float]:
        """The program's sizes and other scalars, from the size tags."""
        return sizes

    def inputs(self, kernel: Kernel, random: np.random.Generator) -> Mapping[str, NDArray[Any]]:
        """Flat arrays to check the kernel with, by default such as it is measured with: see `random_values`."""
        return {array.name: random_values(random, array.dtype, array.size) for array in kernel.launch().arrays()}

    def kernels(self, filters: Mapping[str, str], device: Device | str | None = None) -> list[Kernel]:
        """Every selected variant at every selected size, in the order of the tags' values."""
        result = []
        for variant in self._variants(filters):
            found = self._sizes(variant, filters, device)
            bases = self._programs(variant, WORK_REMOVED.select(filters.get(WORK_REMOVED.name))) if found else []
            result += [base.at(**self._arguments(variant, sizes)) for base in bases for sizes in found]
        return result

    def check_values(self, filters: Mapping[str, str]) -> None:
        """Raises TagError for the first value asked for that is none of this family's."""
        self._choices(filters)
        for tag in (*self.tags, WORK_REMOVED):
            tag.select(filters.get(tag.name))

    def why_none(self, filters: Mapping[str, str], device: Device | str | None = None) -> str:
        """The reason, and what to ask for instead, where `kernels` gives none."""
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
        """Those that filters name; the listed ones of a size that is left to the device."""
        tags = [tag for tag in self.tags if tag.is_size]
        choices = [self._size_values(tag, filters.get(tag.name), variant) for tag in tags]
        for place, tag in enumerate(tags):
            if not all(isinstance(value, int) for value in choices[place]):
                choices[place] = self._size_values(tag, None, variant)
        for values in itertools.islice(itertools.product(*choices), 1000):
            yield {tag.name: int(str(value)) for tag, value in zip(tags, values, strict=True)}

    def _why_not(self, variant: Mapping[str, str], sizes: Mapping[str, int], name: str, multiple: int) -> str:
        """What is wrong with one size, if that is all."""
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
        """What a method of the subclass gives; what goes wrong in it is said of the generator."""
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
        """Those beyond 1."""
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

    def _programs(self, variant: Mapping[str, str], work_removed: Sequence[str]) -> list[Kernel]:
        """The variant's kernel, and those of its single accesses, with sizes still open."""
        base = self._base(variant)
        whole = [base] if "False" in work_removed else []
        return [*whole, *(isolate_accesses(base) if "True" in work_removed else [])]

    def _base(self, variant: Mapping[str, str]) -> Kernel:
        program = self._called("program", variant)
        if program is None:
            raise GeneratorError(f"program(…) of generator {self.name!r} gives None; return the program that it makes")
        return Kernel(program, {"generator": self.name, **variant})

    def _variants(self, filters: Mapping[str, str]) -> Iterable[dict[str, str]]:
        names = [tag.name for tag in self.tags if not tag.is_size]
        sides = [name for name in names if name.startswith("lsize_")]
        *choices, groups = self._choices(filters)
        for values in itertools.product(*choices):
            variant = dict(zip(names, values, strict=True))
            for group in groups:
                yield variant | dict(zip(sides, group, strict=False))

    def _choices(self, filters: Mapping[str, str]) -> list[Sequence[Any]]:
        """The values of each tag that is no size; last, whole work-groups, none of which has a side if unasked for."""
        tags = [tag for tag in self.tags if not tag.is_size]
        rank = sum(tag.name.startswith("lsize_") for tag in tags)
        groups = _work_groups(filters[LSIZES], rank) if LSIZES in filters and rank else [()]
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
        """Numbers that a filter names are taken as they are; listed ones and powers are moved to fit the groups."""
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
        """The sizes with a series that is open replaced by what suits the device."""
        given = {name: value for name, value in sizes.items() if not isinstance(value, SizeSeries)}
        open_series = {name: value for name, value in sizes.items() if isinstance(value, SizeSeries)}
        if not open_series:
            return [given]
        if len(open_series) > 1:
            raise TagError(f"{' and '.join(open_series)} of {self.name!r} are both auto; give all but one by number")
        from perfmodel.auto_size import sizes_for
        from perfmodel.device import find_device

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

        target = device if not isinstance(device, str | None) else find_device(device)
        values = sizes_for(
            target,
            series.step,
            series.cases,
            kernel_at,
            at_least=self._multiples(variant).get(name, 1),
        )
        return [at(value) for value in values]


def _work_groups(asked: str, rank: int) -> list[tuple[int, ...]]:
    """The work-groups that ``lsizes`` names, each of them once; sets and shapes of another rank are an error."""
    found: list[tuple[int, ...]] = []
    for text in asked.split(","):
        name = text.strip().replace(" ", "_")
        sets = {key.lower(): groups for key, groups in WORK_GROUP_SETS.items()}
        if name.lower() in sets:
            groups: Sequence[tuple[int, ...]] = sets[name.lower()]
        elif name and all(side.isdecimal() and 0 < int(side) < 2**31 for side in name.split("x")):
            groups = [tuple(int(side) for side in name.split("x"))]
        else:
            raise TagError(
                f"{LSIZES} has no value {name[:40]!r}{nearest(name, WORK_GROUP_SETS)} (it has "
                f"{', '.join(WORK_GROUP_SETS)}, and shapes like 256 or 16x12)"
            )
        for group in groups:
            if len(group) != rank:
                raise TagError(f"{LSIZES}:{name} is for work-groups of {len(group)} axes; these kernels' have {rank}")
            if group not in found:
                found.append(group)
    return found


class KernelCollection:
    """Generators and a filter over their tags.

    >>> KernelCollection(ALL_GENERATORS).generate_kernels(["matmul_sq", "prefetch:*", "n:512,1024"])
    """

    def __init__(self, generators: Iterable[KernelGenerator]) -> None:
        self.generators: dict[str, KernelGenerator] = {}
        for generator in generators:
            _check_generator(generator)
            if generator.name in self.generators:
                raise TagError(f"two generators are called {generator.name!r}; rename one of them")
            self.generators[generator.name] = generator

    def generate_kernels(self, tags: Sequence[str], device: Device | str | None = None) -> list[Kernel]:
        """The kernels that the tags select, in a stable order.

        A bare name selects a generator; several select several, none selects all generators that have every tag
        and value mentioned. ``name:value``, ``name:a,b`` and ``name:*`` select variants and sizes; a tag that is not
        mentioned has its default. Among several generators, a tag applies to those that have it.

        Args:
            device: for which ``auto`` sizes are chosen, by measuring there; the best one found if left out.

        Raises:
            TagError: for a tag or value that no selected generator has, with the nearest ones.
        """
        if isinstance(tags, str):
            raise TagError(f"tags are a list of strings; write [{tags!r}]")
        names, filters = self._read(tags)
        chosen = [g for g in self.generators.values() if g.name in names] if names else self._all_with(filters)
        known = {tag for generator in chosen for tag in _tag_names(generator)}
        for tag in filters:
            if tag not in known:
                raise TagError(
                    f"no tag {tag!r} in {', '.join(g.name for g in chosen)}{nearest(tag, known)} "
                    f"(known: {', '.join(sorted(known))})"
                )
        if LSIZES in filters and (sides := [tag for tag in filters if tag.startswith("lsize_")]):
            raise TagError(f"{LSIZES} and {sides[0]} both say what a work-group is; leave one out")
        kernels: list[Kernel] = []
        errors: list[PerfmodelError] = []
        for generator in chosen:
            try:
                kernels += generator.kernels(filters, device)
            except (TagError, CountingError) as error:
                # Families that were not asked for by name may have no such kernels.
                if names or isinstance(error, GeneratorError):
                    raise
                errors.append(error)
        if not kernels and errors:
            raise errors[0]
        if not kernels:
            reasons = [f"of {g.name!r}, {g.why_none(filters, device)}" for g in chosen[:MOST_REASONS]]
            raise TagError(f"tags {list(tags)} select no kernel: {'; '.join(reasons)}")
        return kernels

    def generator(self, name: str) -> KernelGenerator:
        """The generator of this name. Raises TagError with the nearest names."""
        if name not in self.generators:
            raise TagError(
                f"no generator {name!r}{nearest(name, self.generators)} (known: {', '.join(sorted(self.generators))})"
            )
        return self.generators[name]

    def _read(self, tags: Sequence[str]) -> tuple[list[str], dict[str, str]]:
        names: list[str] = []
        filters: dict[str, str] = {}
        for tag in tags:
            name, colon, value = tag.strip().partition(":")
            if not colon and name not in self.generators:
                every = {tag for g in self.generators.values() for tag in _tag_names(g)}
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
        every = {tag for g in self.generators.values() for tag in _tag_names(g)}
        for tag in filters:
            if tag not in every:
                raise TagError(f"no generator has a tag {tag!r}{nearest(tag, every)}")
        chosen = [g for g in self.generators.values() if _tag_names(g) >= set(filters)]
        if not chosen:
            raise TagError(f"no generator has all of the tags {', '.join(filters)}; name the generators to select")
        fitting, reasons = [], []
        for generator in chosen:
            try:
                generator.check_values(filters)
            except TagError as error:
                reasons.append(error)
            else:
                fitting.append(generator)
        if not fitting:
            raise reasons[0]
        return fitting


def _check_generator(generator: KernelGenerator) -> None:
    """Refuses what a filter could not select by, or a report not tell apart."""
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


def _tag_names(generator: KernelGenerator) -> set[str]:
    names = {*(tag.name for tag in generator.tags), WORK_REMOVED.name}
    return names | {LSIZES} if any(name.startswith("lsize_") for name in names) else names


ALL_GENERATORS: tuple[KernelGenerator, ...]
"""Every generator found, perfmodel's own and those of installed packages."""


def __getattr__(name: str) -> Any:
    # Found when first asked for: the generators import loopy, which takes a second.
    if name == "ALL_GENERATORS":
        return registry.entries("generators", KernelGenerator)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
