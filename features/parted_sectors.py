"""Sectors that stores to one record fill in part, each by itself: ``f_mem_parted_sectors``."""

from __future__ import annotations

import numpy as np

from perfmodel.counting.atomics import SECTOR
from perfmodel.counting.counts import SUBGROUP_SIZE, KernelCounts
from perfmodel.features.memory_access import AccessPattern, Floats, Sizes
from perfmodel.features.transactions import TransactionFeature
from perfmodel.vocabulary.feature_name import FeatureName
from perfmodel.vocabulary.named_features import CountedFeature, SingleFamily


class PartedSectorsFeature(CountedFeature):
    """Sectors of 32 bytes that sub-groups store to and leave a part of out, where each store to a record waits for what
    is loaded after the one before, as arrays may overlap.

    A first-level cache doesn't join such stores, so that each goes to the second level by itself
    (`benchmarks.records`). They are known of PTX and machine code alone.
    """

    unit = "transaction"
    subgroup_size = SUBGROUP_SIZE

    def __init__(self, name: FeatureName) -> None:
        super().__init__(name)
        self.sectors = TransactionFeature(name, AccessPattern(space="global", direction="store"), "block", SECTOR)

    def values(self, counts: KernelCounts, sizes: Sizes) -> Floats:
        total: Floats = np.asarray(0.0)
        for access, found in self.sectors.each(self.sectors.pattern, counts, sizes):
            if access.is_parted:
                whole = access.executions.workitem(sizes) * (access.bits // 8) / SECTOR
                total = total + np.minimum(found, 2 * np.maximum(found - whole, 0.0))
        return total


class PartedSectorsFamily(SingleFamily):
    prefix = ("mem", "parted", "sectors")
    summary = "sectors that stores to one record fill in part, which loads part from each other"
    kind = PartedSectorsFeature
