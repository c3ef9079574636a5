"""Chooses, of many variants of a family, few in which choices still come together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import perfmodel as pm
from perfmodel.collection.kernel_generator import KernelGenerator
from perfmodel.collection.verification import small_variants


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


def pairwise(variants: Iterable[Variant]) -> list[Variant]:
    """Returns variants in which every two values of two tags meet that meet in any of those given, in their order.

    A mistake that takes one or two choices to show is still met; `make table` verifies every combination.
    """
    return _covering(variants, together=2)


def each_value(variants: Iterable[Variant]) -> list[Variant]:
    """Returns variants that have, together, every value of every tag that any of those given has, in their order."""
    return _covering(variants, together=1)


def _covering(variants: Iterable[Variant], together: int) -> list[Variant]:
    given = list(variants)
    # With the family as one more tag, a single other one has pairs too.
    choices = [
        set(combinations([("generator", variant.generator.name), *sorted(variant.tags.items())], together))
        for variant in given
    ]
    missing = set().union(*choices)
    chosen: set[int] = set()
    while missing:
        best = max(range(len(given)), key=lambda number: len(choices[number] & missing))
        chosen.add(best)
        missing -= choices[best]
    return [given[number] for number in sorted(chosen)]
