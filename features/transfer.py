"""Copies between host and device that belong to a launch: ``f_transfer_bytes_to``; see `Kernel.with_transfers`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.errors import FeatureError
from perfmodel.counting.counts import KernelCounts
from perfmodel.features.arrays import array_bytes
from perfmodel.vocabulary.feature_name import FeatureName, Word
from perfmodel.vocabulary.named_features import CountedFeature, FeatureFamily, unknown_word

DIRECTIONS = {"to": "load", "from": "store"}
"""Directions of copies, with what the kernel does with the array; one that it loads and stores is copied both ways."""


class TransferFeature(CountedFeature):
    """Arrays, or their bytes, that are copied; 0 for a launch without transfers."""

    def __init__(self, name: FeatureName, direction: str, in_bytes: bool) -> None:
        super().__init__(name)
        self.direction, self.in_bytes = direction, in_bytes
        self.unit = "byte" if in_bytes else "transfer"

    def values(self, counts: KernelCounts, sizes: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
        total = np.asarray(0.0)
        if not counts.transfers:
            return total
        for footprint in counts.footprints:
            if footprint.direction == DIRECTIONS[self.direction]:
                total = total + (array_bytes(self.name, footprint, sizes) if self.in_bytes else 1.0)
        return total


class _TransferFamily(FeatureFamily):
    in_bytes: bool

    @property
    def examples(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(f"{self.name}_{direction}" for direction in DIRECTIONS)

    def candidates(self, counts: KernelCounts) -> Iterable[str]:
        return self.examples if counts.transfers else ()

    def parse(self, name: FeatureName, words: tuple[Word, ...]) -> TransferFeature:
        if len(words) != 1:
            raise FeatureError(f"feature {name.text!r} needs one of {' and '.join(DIRECTIONS)}; write {self.name}_to")
        (word,) = words
        if word.condition is not None or word.key not in DIRECTIONS:
            raise unknown_word(name, word, tuple(DIRECTIONS))
        return TransferFeature(name, word.key, self.in_bytes)


class TransferBytesFamily(_TransferFamily):
    prefix = ("transfer", "bytes")
    summary = "bytes copied to the device before a launch, or from it after, where transfers belong to the launch"
    in_bytes = True


class TransfersFamily(_TransferFamily):
    prefix = ("transfers",)
    summary = "arrays copied to the device before a launch, or from it after, where transfers belong to the launch"
    in_bytes = False
