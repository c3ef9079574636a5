"""Finds the kernels of a report's rows, to explain and predict them anew: given, or generated again from their tags."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from perfmodel.basics.errors import PerfmodelError
from perfmodel.collection.collection import ALL_GENERATORS, KernelCollection
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.work_removal import KEPT_TAG
from perfmodel.modelling.rows import CALIBRATION, Row

MOST, BUDGET_S = 20, 8.0
"""So many variants are generated again, and none is begun after so many seconds."""

Variant = tuple[str, str]


@dataclass(frozen=True)
class ReportedSample:
    """Some variants with their kernels, which have the sizes of the variant's last row.

    Attributes:
        variants: how many there are in all rows.
        refused: of those looked at, how many are not given, and no installed generator makes.
    """

    kernels: Mapping[Variant, Kernel]
    variants: int
    refused: int

    @property
    def sentence(self) -> str:
        """Returns a sentence on how many of all variants the sample has; empty for all of them."""
        if len(self.kernels) == self.variants:
            return ""
        reason = f"; {self.refused} could not be generated again from their tags" if self.refused else ""
        return f"A sample: {len(self.kernels)} of {self.variants} variants, spread over the families{reason}."


def sample(
    rows: Iterable[Row], most: int = MOST, budget_s: float = BUDGET_S, given: Iterable[Kernel] = ()
) -> ReportedSample:
    """Generates and counts variants of all families in turn, those first that no fit has seen.

    Args:
        given: kernels that no installed generator makes, at any size.
    """
    by_name = {(kernel.name, kernel.variant): kernel for kernel in given}
    by_variant: dict[Variant, list[Row]] = {}
    for row in rows:
        by_variant.setdefault((row.kernel, row.variant), []).append(row)
    kernels: dict[Variant, Kernel] = {}
    refused, end = 0, time.monotonic() + budget_s
    for variant in _in_turn(by_variant):
        if len(kernels) == most or time.monotonic() > end:
            break
        largest = max(by_variant[variant], key=lambda row: (row.measured_s or 0.0, *row.sizes.values()))
        known = by_name.get(variant)
        if kernel := _at_sizes(known, largest) if known else generated_again(largest):
            kernels[variant] = kernel
        else:
            refused += 1
    return ReportedSample(kernels, len(by_variant), refused)


def _at_sizes(kernel: Kernel, row: Row) -> Kernel | None:
    """Returns a kernel at the sizes of a row, counted; None where it has others, or cannot be counted."""
    try:
        kernel = kernel.at(**row.sizes)
        _ = kernel.counts
    except PerfmodelError:
        return None
    return kernel


def generated_again(row: Row) -> Kernel | None:
    """Returns the kernel of a row, counted; None where no installed generator makes it, or it cannot be counted."""
    text, _, kept = f" {row.variant}".partition(f" {KEPT_TAG}=")
    tags = dict(word.partition("=")[::2] for word in text.split())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # accesses that cannot be isolated are other kernels than this
        try:
            collection = KernelCollection(ALL_GENERATORS)
            sizes = {tag.name for tag in collection.generator(row.kernel).tags if tag.is_size} & set(row.sizes)
            filters = {**tags, **{name: str(row.sizes[name]) for name in sizes}}
            asked = [f"{name}:{value}" for name, value in filters.items()]
            found = collection.generate_kernels([row.kernel, *asked, *(["work_removed:True"] if kept else [])])
            kernel = next((kernel for kernel in found if kernel.variant == row.variant), None)
            if kernel is None or set(kernel.sizes) != set(row.sizes):
                return None
            kernel = kernel.at(**row.sizes)
            _ = kernel.counts
        except PerfmodelError:  # not from a generator, or from one that has changed
            return None
    return kernel


def _in_turn(by_variant: Mapping[Variant, Sequence[Row]]) -> list[Variant]:
    """Returns the first variant of every family, then the second of every family, and so on; in each, longest series
    first."""
    families: dict[str, list[Variant]] = {}

    def order(variant: Variant) -> tuple[bool, int]:
        rows = by_variant[variant]
        return all(row.role == CALIBRATION for row in rows), -len(rows)

    for variant in sorted(by_variant, key=order):
        families.setdefault(variant[0], []).append(variant)
    longest = max(map(len, families.values()), default=0)
    return [family[turn] for turn in range(longest) for family in families.values() if turn < len(family)]
