"""Bytes of the arrays that a kernel accesses: ``f_mem_arrays_global``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.errors import FeatureError
from perfmodel.counting.counts import Footprint, KernelCounts
from perfmodel.vocabulary.named_features import CountedFeature, SingleFamily


class ArraysFeature(CountedFeature):
    """Sizes of the arrays in global memory that a kernel loads from or stores to, touched or not: all it may touch."""

    unit = "byte"

    def values(self, counts: KernelCounts, sizes: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
        total = np.asarray(0.0)
        for footprint in counts.footprints:
            if footprint.direction == "any":
                total = total + array_bytes(self.name, footprint, sizes)
        return total


def array_bytes(feature: str, footprint: Footprint, sizes: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
    """Returns the bytes of a whole array. Raises FeatureError, with the feature's name, where its shape is not
    known."""
    found = footprint.array_bytes(sizes)
    if found is None:
        raise FeatureError(
            f"feature {feature!r} is not defined for array {footprint.variable!r}, whose size does not follow from the "
            "kernel's sizes; declare its extent"
        )
    return found


class ArraysFamily(SingleFamily):
    prefix = ("mem", "arrays", "global")
    summary = "bytes of the arrays in global memory that a kernel accesses"
    kind = ArraysFeature
