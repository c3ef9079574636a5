"""Selects some of many variants before their programs are made, and makes these side by side."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from perfmodel.basics.errors import PerfmodelError
from perfmodel.basics.side_by_side import Told, side_by_side, unheard
from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.remembered_program import is_to_be_kept

FEWEST_APART = 16
"""Fewer programs than these are made sooner than processes for them are there."""


@dataclass(frozen=True)
class Selected:
    """A variant of a family that a filter selects, at these sizes; its program is made where its kernels are asked for.

    Attributes:
        filters: values of the tags that every family has.
    """

    generator: KernelGenerator
    variant: dict[str, str]
    sizes: tuple[dict[str, int], ...]
    filters: Mapping[str, str]

    def kernels(self) -> list[Kernel]:
        """Returns the variant's kernels; errors as in `KernelCollection.generate_kernels`."""
        return self.generator.made(self.variant, self.sizes, self.filters)


def make_programs(selected: Iterable[Selected], told: Told = unheard) -> None:
    """Makes programs in several processes, and keeps them where `perfmodel.kernels.remembered_program.remembering` says
    so; there, who asks for their kernels finds them.

    What is wrong with a program is left to be said there, and where programs are not kept nothing is made here.
    """
    waiting = {
        (each.generator.name, *each.variant.values()): each
        for each in selected
        if is_to_be_kept(each.generator, each.variant)
    }
    if len(waiting) < FEWEST_APART:
        return

    def make(each: Selected) -> None:
        with suppress(PerfmodelError):
            each.generator.make(each.variant)

    side_by_side(make, list(waiting.values()), told=told)


def sample(selected: Iterable[Selected], most: int | None) -> list[Selected]:
    """Returns so many variants of each family, or more where the values of its tags ask for more; all of them for None.

    Each value of each tag is in one of them; beyond that, they are as good as random, and the same in every process.
    What several filters select of a variant is one variant, at all these sizes.
    """
    families: dict[str, dict[tuple[str, ...], Selected]] = {}
    for each in selected:
        family = families.setdefault(each.generator.name, {})
        key = (*each.variant.values(), *map(repr, sorted(each.filters.items())))
        before = family[key].sizes if key in family else ()
        family[key] = replace(each, sizes=(*before, *(sizes for sizes in each.sizes if sizes not in before)))
    return [each for family in families.values() for each in _of_family(list(family.values()), most)]


def _of_family(variants: list[Selected], most: int | None) -> list[Selected]:
    if most is None:
        return variants
    waiting = dict(sorted(enumerate(variants), key=lambda each: _drawn(each[1])))
    unseen = {value for each in variants for value in each.variant.items()}
    seen: Counter[tuple[str, str]] = Counter()
    taken: list[int] = []

    def worth(place: int) -> tuple[int, int]:
        values = waiting[place].variant.items()
        return sum(value not in seen for value in values), -sum(seen[value] for value in values)

    while waiting and (len(taken) < most or unseen):
        taken.append(max(waiting, key=worth))
        values = waiting.pop(taken[-1]).variant.items()
        seen.update(values)
        unseen.difference_update(values)
    return [variants[place] for place in sorted(taken)]


def _drawn(each: Selected) -> str:
    """Returns a text by which variants are in an order as good as random."""
    return hashlib.sha256(repr((each.generator.name, sorted(each.variant.items()))).encode()).hexdigest()
