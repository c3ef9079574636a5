"""What sub-groups ask of memory at once: ``f_mem_transactions_global_load_block:128``, ``…_local_banks:32``.

A GPU's memory works for whole sub-groups: global memory in aligned blocks (Panwar et al., section IV-C, "coalesced
memory accesses"), local memory in banks, each of which serves one word at a time (ibid., "bank conflicts").
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.counting.counts import SUBGROUP_SIZE, AccessCount, KernelCounts
from perfmodel.errors import FeatureError
from perfmodel.feature_name import FeatureName, Word
from perfmodel.features.memory_access import (
    ZERO,
    AccessFamily,
    AccessFeature,
    AccessPattern,
    Floats,
    Sizes,
)
from perfmodel.granularity import Granularity

WORD_BYTES = 4
MOST = 4096


def blocks(addresses: NDArray[np.int64], item: int, block: int) -> int:
    """Distinct aligned blocks of `block` bytes among accesses of `item` bytes."""
    first, last = addresses // block, (addresses + item - 1) // block
    return len(np.union1d(first, last))


def bank_cycles(addresses: NDArray[np.int64], item: int, banks: int) -> int:
    """How many words the busiest of the banks has to serve; work-items that ask for one word share it."""
    words = np.unique([addresses // WORD_BYTES + k for k in range(max(1, item // WORD_BYTES))])
    return int(np.bincount(words % banks).max())


class TransactionFeature(AccessFeature):
    """Executions by sub-groups of 32 work-items, each times its blocks (or cycles of the busiest bank).

    Addresses follow from the strides along the local axes, with the group's first work-item at a block's start. Of an
    index that is not affine, they are taken from the places of the first work-items, if these are known; else each
    work-item has a block of its own, and a bank of its own.
    """

    unit = "transaction"

    def __init__(self, name: FeatureName, pattern: AccessPattern, needs: Callable[[Any, int, int], int], size: int):
        super().__init__(name, replace(pattern, granularity=Granularity("subgroup", SUBGROUP_SIZE)))
        self.needs, self.size = needs, size

    def weight(self, counts: KernelCounts, access: AccessCount, sizes: Sizes) -> Floats:
        """Of one execution, on average over the sub-groups of a work-group."""
        extents = [extent(sizes) for extent in counts.local_size]
        strides = [access.local_strides.get(axis, ZERO) for axis in range(len(extents))]
        if None in strides:
            if access.lane_offsets is not None:
                return np.asarray(self.of_places(np.asarray(access.lane_offsets, np.int64), access.bits // 8))
            return np.asarray(float(SUBGROUP_SIZE) if self.needs is blocks else 1.0)
        steps = [stride(sizes) for stride in strides if stride is not None]
        columns = np.broadcast_arrays(*extents, *steps, np.asarray(0.0))[:-1]
        if not columns:
            return np.asarray(1.0)
        rows, inverse = np.unique(np.stack([c.ravel() for c in columns], axis=1), axis=0, return_inverse=True)
        item = access.bits // 8
        found = [self.average(row[: len(extents)], row[len(extents) :] * item, item) for row in rows.astype(np.int64)]
        return np.asarray(found)[inverse.ravel()].reshape(columns[0].shape)

    def average(self, extents: Sequence[Any], steps: Sequence[Any], item: int) -> float:
        linear = np.arange(min(int(np.prod(extents)), MOST), dtype=np.int64)
        addresses, rest = np.zeros_like(linear), linear
        for extent, step in zip(extents, steps, strict=True):
            addresses, rest = addresses + rest % extent * step, rest // extent
        return self.of_places(addresses, item)

    def of_places(self, addresses: NDArray[np.int64], item: int) -> float:
        """On average over the sub-groups of work-items at these addresses."""
        addresses = addresses - addresses.min()
        groups = [addresses[at : at + SUBGROUP_SIZE] for at in range(0, len(addresses), SUBGROUP_SIZE)]
        return float(np.mean([self.needs(group, item, self.size) for group in groups]))


class TransactionFamily(AccessFamily):
    prefix: tuple[str, ...] = ("mem", "transactions")
    summary = "aligned blocks of bytes that sub-groups access at once, or cycles of local memory's banks"
    examples: tuple[str, ...] = ("f_mem_transactions_global_load_block:128", "f_mem_transactions_local_banks:32")

    def candidates(self, counts: KernelCounts) -> Iterable[str]:
        spaces = {access.space for access in counts.accesses}
        if "global" in spaces:
            yield from (
                f"{self.name}_global{direction}_block:{size}"
                for direction in ("", "_load", "_store")
                for size in (32, 128)
            )
            yield f"{self.name}_global_load_banks:32"
        if "local" in spaces:
            yield f"{self.name}_local_banks:32"

    def parse(self, name: FeatureName, words: tuple[Word, ...]) -> AccessFeature:
        kinds = {"block": blocks, "banks": bank_cycles}
        own = [word for word in words if word.key in kinds]
        if len(own) != 1:
            raise FeatureError(
                f"feature {name.text!r} needs one of block:BYTES and banks:NUMBER; write {self.examples[0]} or "
                f"{self.examples[1]}"
            )
        (word,) = own
        condition = word.condition or ""
        if not (condition.isdecimal() and len(condition) < 5 and int(condition) > 0):
            raise FeatureError(f"{word.key}:{condition} is no whole number from 1 to 9999", word.offset)
        others = tuple(w for w in words if w is not word)
        for other in others:
            if other.key == "granularity":
                raise FeatureError(f"feature {name.text!r} is by sub-groups; leave granularity out", other.offset)
        pattern = super().parse(name, others).pattern
        if pattern.space not in ("global", "local"):
            raise FeatureError(f"feature {name.text!r} is of global or of local memory; write which", word.offset)
        return TransactionFeature(name, pattern, kinds[word.key], int(condition))
