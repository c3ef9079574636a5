"""KernelCollection: generators, and the tag filters that select their variants (UIPiCK; 2018 slides)."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import zip_longest
from typing import Any, NamedTuple

from perfmodel.basics import registry
from perfmodel.basics.brief import brief, number_of
from perfmodel.basics.errors import CountingError, GeneratorError, PerfmodelError, TagError, nearest
from perfmodel.basics.notebook import table, titled
from perfmodel.basics.side_by_side import Told, side_by_side, unheard
from perfmodel.collection.kernel_generator import KernelGenerator, check_generator
from perfmodel.collection.own_files import OwnFiles, own_files
from perfmodel.collection.tags import COMMON, LSIZES, parted
from perfmodel.device import Device
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.kernel_file import is_kernel_file
from perfmodel.kernels.remembered_program import is_to_be_kept
from perfmodel.kernels.source_words import is_source

FEWEST_APART = 16
"""Fewer programs than these are made sooner than processes for them are there."""
SEED = 2026
"""Samples of kernels are drawn by chance, always the same."""
MOST_REASONS = 3
"""An error says of so many families why none of their kernels is selected."""


class _Choice(NamedTuple):
    """One variant of a family at one size, whose program need not be there."""

    generator: KernelGenerator
    variant: dict[str, str]
    sizes: dict[str, int]
    filters: Mapping[str, str]

    def kernels(self) -> list[Kernel]:
        return self.generator.made(self.variant, [self.sizes], self.filters)


class KernelCollection:
    """Generators and a filter over their tags.

    >>> KernelCollection(ALL_GENERATORS).generate_kernels(["matmul_sq", "prefetch:*", "n:512,1024"])
    """

    def __init__(self, generators: Iterable[KernelGenerator]) -> None:
        self.generators: dict[str, KernelGenerator] = {}
        if not isinstance(generators, Iterable):
            raise TagError(f"{generators!r:.60} is no list of generators; give one, such as ALL_GENERATORS")
        for generator in generators:
            check_generator(generator)
            if generator.name in self.generators:
                raise TagError(f"two generators are called {generator.name!r}; rename one of them")
            self.generators[generator.name] = generator

    def generate_kernels(self, tags: Sequence[str], device: Device | str | None = None) -> list[Kernel]:
        """Returns the kernels that the tags select, in a stable order.

        A bare name selects a generator; several select several, none selects all generators that have every tag
        and value mentioned. ``name:value``, ``name:a,b`` and ``name:*`` select variants and sizes; a tag that is not
        mentioned has its default. Among several generators, a tag applies to those that have it.

        Python files of your own do as well: ``FILE.py`` and ``FILE.py:CLASS`` select generators that they define, which
        join the others for this call; ``FILE.py:NAME`` selects a kernel, and ``size:values`` beside it its sizes.

        Args:
            device: for which ``auto`` sizes are chosen, by measuring there; the best one found if left out.

        Raises:
            TagError: for a tag or value that no selected generator has, with the nearest ones.
        """
        if isinstance(tags, str):
            raise TagError(f"tags are a list of strings; write [{tags!r}]")
        if not isinstance(tags, Iterable) or not all(isinstance(tag, str) for tag in tags):
            raise TagError(f"{tags!r:.40} are no tags; give a list of strings, such as ['matmul_sq', 'n:512']")
        if any(map(is_kernel_file, tags)):
            own = own_files(tags)
            joined = _joined(self.generators.values(), own.generators)
            return list(own.kernels) or KernelCollection(joined).generate_kernels(own.tags, device)
        if source := next((tag for tag in tags if is_source(tag)), None):
            raise TagError(
                f"{source!r} does not say how it is launched; make it a Kernel by perfmodel.Kernel.from_opencl(…)"
            )
        is_named, chosen, filters = self._chosen(tags)
        kernels: list[Kernel] = []
        errors: list[PerfmodelError] = []
        for generator in chosen:
            try:
                kernels += generator.kernels(filters, device)
            except (TagError, CountingError) as error:
                # Families that were not asked for by name may have no such kernels.
                if is_named or isinstance(error, GeneratorError):
                    raise
                errors.append(error)
        if not kernels and errors:
            raise errors[0]
        if not kernels:
            raise _none_selected(tags, chosen, filters, device)
        return kernels

    def sample_kernels(
        self,
        filters: Iterable[Sequence[str]],
        count: int,
        device: Device | str | None = None,
        told: Told = unheard,
    ) -> list[Kernel]:
        """Returns some of the kernels that filters select, of all families in turn, in an order by chance that is
        always the same; programs are made of these only.

        Args:
            filters: lists of tags, each as for `generate_kernels`, but without Python files.
            count: at most so many.
            device: as for `generate_kernels`.
            told: is told how many programs are made.

        Raises:
            TagError: as `generate_kernels`.
        """
        families: dict[str, list[_Choice]] = {}
        for tags in filters:
            _, chosen, wanted = self._chosen(tags)
            for generator in chosen:
                found = families.setdefault(generator.name, [])
                for variant, sizes in generator.selected(wanted, device):
                    found += [_Choice(generator, variant, each, wanted) for each in sizes]
        chance = random.Random(SEED)
        for found in families.values():
            chance.shuffle(found)
        turns = [each for turn in zip_longest(*families.values()) for each in turn if each]
        _make(((each.generator, each.variant) for each in turns[:count]), told)
        kernels: dict[Kernel, None] = {}
        for choice in turns:
            if made := choice.kernels():  # several where single accesses are kept
                kernels[made[len(kernels) % len(made)]] = None
            if len(kernels) == count:
                break
        return list(kernels)

    def make_programs(self, filters: Iterable[Sequence[str]], told: Told = unheard) -> None:
        """Makes the programs of all kernels that filters select, in several processes, and keeps them where
        `perfmodel.kernels.remembered_program.remembering` says so; there, `generate_kernels` finds them.

        What is wrong with a filter or a program is left to be said there, and where programs are not kept nothing is
        made here.
        """
        programs: list[tuple[KernelGenerator, dict[str, str]]] = []
        for tags in filters:
            with suppress(PerfmodelError):
                _, chosen, wanted = self._chosen(tags)
                for generator in chosen:
                    programs += [(generator, variant) for variant in generator.variants(wanted)]
        _make(programs, told)

    def selected(self, tags: Sequence[str]) -> list[tuple[dict[str, str], list[dict[str, int]]]]:
        """Returns the variants that the tags select, each with its sizes, for which no program is made yet.

        Raises:
            TagError: as `generate_kernels`.
        """
        _, chosen, filters = self._chosen(tags)
        found = [each for generator in chosen for each in generator.selected(filters)]
        if not found:
            raise _none_selected(tags, chosen, filters, None)
        return found

    def generator(self, name: str) -> KernelGenerator:
        """Returns the generator of this name. Raises TagError with the nearest names."""
        if name not in self.generators:
            raise TagError(
                f"no generator {name!r}{nearest(name, self.generators)} (known: {', '.join(sorted(self.generators))})"
            )
        return self.generators[name]

    def _chosen(self, tags: Sequence[str]) -> tuple[bool, list[KernelGenerator], dict[str, str]]:
        """Returns whether families are named, the families that tags select, and what filters they have."""
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
        return bool(names), chosen, filters

    def _read(self, tags: Sequence[str]) -> tuple[list[str], dict[str, str]]:
        names: list[str] = []
        filters: dict[str, str] = {}
        for tag in tags:
            name, colon, value = parted(tag)
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

    def _repr_html_(self) -> str:
        rows = [
            [name, generator.summary, " ".join(tag.name for tag in generator.tags), generator.source]
            for name, generator in sorted(self.generators.items())
        ]
        return titled(number_of(len(rows), "generator"), "", table(["generator", "kernels", "tags", "source"], rows))

    def __repr__(self) -> str:
        return brief(self, number_of(len(self.generators), "generator"), *sorted(self.generators))


def _make(programs: Iterable[tuple[KernelGenerator, dict[str, str]]], told: Told) -> None:
    """Makes programs that are to be kept, in several processes if there are enough of them."""
    waiting = {
        (generator.name, *variant.values()): (generator, variant)
        for generator, variant in programs
        if is_to_be_kept(generator, variant)
    }
    if len(waiting) < FEWEST_APART:
        return

    def make(each: tuple[KernelGenerator, dict[str, str]]) -> None:
        generator, variant = each
        with suppress(PerfmodelError):
            generator.make(variant)

    side_by_side(make, list(waiting.values()), told=told)


def _none_selected(
    tags: Sequence[str], chosen: Sequence[KernelGenerator], filters: Mapping[str, str], device: Device | str | None
) -> TagError:
    reasons = [f"of {g.name!r}, {g.why_none(filters, device)}" for g in chosen[:MOST_REASONS]]
    return TagError(f"tags {list(tags)} select no kernel: {'; '.join(reasons)}")


def _tag_names(generator: KernelGenerator) -> set[str]:
    names = {tag.name for tag in (*generator.tags, *COMMON)}
    return names | {LSIZES} if any(name.startswith("lsize_") for name in names) else names


def select_kernels(words: Sequence[str], device: Device | str | None = None) -> list[Kernel]:
    """Returns the kernels that tags of all generators select, or those of Python files; catalogues are loaded only
    where they are needed.

    Args:
        device: see `KernelCollection.generate_kernels`.
    """
    own = own_files(words) if any(map(is_kernel_file, words)) else OwnFiles((), (), tuple(words))
    if own.kernels:
        return list(own.kernels)
    everything = _joined(registry.entries("generators", KernelGenerator), own.generators)
    return KernelCollection(everything).generate_kernels(own.tags, device)


def _joined(known: Iterable[KernelGenerator], own: Iterable[KernelGenerator]) -> list[KernelGenerator]:
    """Returns generators and those of files, without those that are known from the same file already."""
    known = list(known)
    classes = {type(generator) for generator in known}
    return [*known, *(generator for generator in own if type(generator) not in classes)]


ALL_GENERATORS: tuple[KernelGenerator, ...]
"""Every generator found, perfmodel's own and those of installed packages."""


def __getattr__(name: str) -> Any:
    # Found when first asked for: the generators import loopy, which takes a second.
    if name == "ALL_GENERATORS":
        return registry.entries("generators", KernelGenerator)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
