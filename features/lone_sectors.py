"""Bytes of sectors that irregular loads ask the second-level cache for one by one: ``f_mem_lone_sectors``."""

from __future__ import annotations

import numpy as np

from perfmodel.counting.atomics import SECTOR
from perfmodel.counting.counts import LINE_BYTES, SUBGROUP_SIZE, KernelCounts
from perfmodel.features.footprint import FootprintFeature, reaches_beyond
from perfmodel.features.memory_access import AccessPattern, Floats, Sizes
from perfmodel.features.transactions import TransactionFeature
from perfmodel.vocabulary.feature_name import FeatureName
from perfmodel.vocabulary.named_features import CountedFeature, SingleFamily

SECTORS_OF_LINE = LINE_BYTES // SECTOR
KEPT = 220000
"""Bytes of an array that caches keep which work-groups share one after the other."""


class LoneSectorsFeature(CountedFeature):
    """Bytes that work-groups load, of arrays of more than 64 KB, by requests that bring less than the four sectors of a
    line: those of loads whose places follow no plan.

    A request that brings one sector of four takes as long as one that brings all; of each sector, the part of a request
    counts that it takes beyond its quarter. What a work-group loads of an array is shared among its loads by the
    sectors that each touches.
    """

    unit = "byte"
    subgroup_size = SUBGROUP_SIZE

    def __init__(self, name: FeatureName) -> None:
        super().__init__(name)
        loads = AccessPattern(space="global", direction="load")
        self.sectors, self.lines = (TransactionFeature(name, loads, "block", size) for size in (SECTOR, LINE_BYTES))
        self.loaded = FootprintFeature(name, None, "load", None, by_group=True, block=SECTOR, beyond=KEPT)

    def values(self, counts: KernelCounts, sizes: Sizes) -> Floats:
        sectors = {id(access): found for access, found in self.sectors.each(self.sectors.pattern, counts, sizes)}
        lines = {id(access): found for access, found in self.lines.each(self.lines.pattern, counts, sizes)}
        loads = [access for access in counts.accesses if id(access) in sectors]
        total = np.asarray(0.0)
        for footprint in counts.footprints:
            if footprint.direction != "load":
                continue
            own = [a for a in loads if a.variable == footprint.variable and reaches_beyond(a, KEPT)]
            touched = sum((sectors[id(access)] for access in own), np.asarray(0.0))
            lone = sum(
                (
                    np.maximum(lines[id(access)] - sectors[id(access)] / SECTORS_OF_LINE, 0.0)
                    for access in own
                    if access.pattern == "complex"
                ),
                np.asarray(0.0),
            )
            total = total + self.loaded.of(footprint, counts, sizes) * lone / np.maximum(touched, 1.0)
        return total


class LoneSectorsFamily(SingleFamily):
    prefix = ("mem", "lone", "sectors")
    summary = "bytes of sectors that irregular loads take from the second-level cache one by one"
    kind = LoneSectorsFeature
