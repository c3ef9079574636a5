"""Says how many examples tests take, and chooses few variants of a family in which choices still come together."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import perfmodel as pm
from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.verification import small_variants

EXAMPLES = int(os.environ.get("PERFMODEL_EXAMPLES", "0"))
"""So many random examples are asked for, and every variant of families (`make fuzz`); 0 for the few of the suite."""


def examples(few: int) -> int:
    """Returns how many random examples a test takes."""
    return EXAMPLES or few


@dataclass(frozen=True, eq=False)
class Variant:
    """One variant of a family, at one small size; its program is made when its kernel is asked for."""

    generator: KernelGenerator
    tags: Mapping[str, str]
    sizes: Mapping[str, int]

    @cached_property
    def kernel(self) -> pm.Kernel:
        (found,) = self.generator.made(self.tags, [self.sizes])
        return found


def small(generator: KernelGenerator) -> list[Variant]:
    """Returns every variant by a family's checks, at every size of these."""
    return [Variant(generator, tags, each) for tags, sizes in small_variants(generator) for each in sizes]


def few(variants: Iterable[Variant]) -> list[Variant]:
    """Returns variants that have, together, every typical value of every tag; where all examples are asked for
    (`make fuzz`), those in which every two values meet: a mistake that takes two choices to show is met there.

    `make table` verifies every combination.
    """
    given = list(variants)
    if EXAMPLES:
        return _covering(given, together=2)
    names = {name for variant in given for name in variant.tags}
    some = {name: typical(variant.tags[name] for variant in given if name in variant.tags) for name in names}
    atypical = {(name, v.tags[name]) for v in given for name in v.tags if v.tags[name] not in some[name]}
    return _covering(given, together=1, but=atypical)


def each_value(variants: Iterable[Variant]) -> list[Variant]:
    """Returns variants that have, together, every value of every tag that any of those given has, in their order."""
    return _covering(variants, together=1)


def typical(values: Iterable[str]) -> list[str]:
    """Returns the distinct values of a choice; of many numbers the first ones and the last, which differ in nothing but
    the number."""
    found = list(dict.fromkeys(values))
    return [*found[:2], found[-1]] if len(found) > 3 and all(value.isdecimal() for value in found) else found


def _covering(variants: Iterable[Variant], together: int, but: Collection[tuple[str, str]] = ()) -> list[Variant]:
    """Returns variants in which all choices meet, so many together, but for those that are left out."""
    given = list(variants)
    # With the family as one more tag, a single other one has pairs too.
    choices = [
        set(combinations([("generator", v.generator.name), *sorted(set(v.tags.items()) - set(but))], together))
        for v in given
    ]
    missing = set().union(*choices)
    chosen: set[int] = set()
    while missing:
        best = max(range(len(given)), key=lambda number: len(choices[number] & missing))
        chosen.add(best)
        missing -= choices[best]
    return [given[number] for number in sorted(chosen)]
