"""Counts the memory of private arrays that no compiler keeps in registers: ``f_mem_scratch``."""

from __future__ import annotations

from collections.abc import Iterable

from perfmodel.counting.counts import KernelCounts
from perfmodel.features.memory_access import Floats, Sizes
from perfmodel.vocabulary.named_features import CountedFeature, SingleFamily


class ScratchFeature(CountedFeature):
    """Bytes of private arrays that lie in memory, over all work-items of a launch.

    They do where an access's index isn't known when a kernel is compiled, see `perfmodel.opencl_c.static.scratch`; of
    machine code, registers that the assembler spills are one, see `perfmodel.ptx.counting.spills`. What work-items that
    run together have of them shares the caches with all else.
    """

    unit = "byte"

    def values(self, counts: KernelCounts, sizes: Sizes) -> Floats:
        found: Floats = counts.work_items(sizes) * float(sum(n_bytes for _, n_bytes in counts.scratch))
        return found


class ScratchFamily(SingleFamily):
    prefix = ("mem", "scratch")
    summary = "bytes of private arrays that lie in memory, over all work-items"
    kind = ScratchFeature

    def candidates(self, counts: KernelCounts) -> Iterable[str]:
        if counts.scratch:
            yield self.name
