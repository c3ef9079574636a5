"""Bytes of the tables in constant memory that a kernel looks up where data say: ``f_mem_tables``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.counting.counts import AccessCount, KernelCounts
from perfmodel.features.core_order import TABLE
from perfmodel.vocabulary.named_features import CountedFeature, SingleFamily


class TablesFeature(CountedFeature):
    """Bytes of the tables which a program declares in constant memory and looks up where data say.

    Of each table, what its widest such access reaches counts. Places that follow a plan are beside those that were
    just looked up, and ask little of a cache.
    """

    unit = "byte"

    def values(self, counts: KernelCounts, sizes: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
        of_tables: dict[str, int] = {}
        for access in counts.accesses:
            if TABLE in access.tags and access.reach is not None and _is_decided_by_data(access):
                of_tables[access.variable] = max(of_tables.get(access.variable, 0), access.reach)
        return np.asarray(float(sum(of_tables.values())))


def _is_decided_by_data(access: AccessCount) -> bool:
    return access.touched is not None or access.has_unknown_address


class TablesFamily(SingleFamily):
    prefix = ("mem", "tables")
    summary = "bytes of the tables in constant memory that a kernel looks up where data say"
    kind = TablesFeature
