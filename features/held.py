"""Says what a kernel's work-items and work-groups hold while they run: ``f_held_registers``, ``f_held_local``.

How many of them a compute unit has room for follows from that, and from what it has of both.
``f_held_moved`` and ``f_held_steps`` say what some compilers add.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from perfmodel.basics.errors import FeatureError
from perfmodel.counting.counts import KernelCounts
from perfmodel.features.memory_access import Floats, Sizes
from perfmodel.vocabulary.named_features import CountedFeature, SingleFamily


class _HeldByItem(CountedFeature):
    """A number of the program that is the same at all sizes, of each work-item."""

    count: ClassVar[str]

    def values(self, counts: KernelCounts, sizes: Sizes) -> Floats:
        found: Floats = 0.0 * counts.work_items(sizes) + getattr(counts, self.count)
        return found


class HeldRegisters(_HeldByItem):
    """Words of 32 bits that a work-item holds at once, as far as the source shows; compilers move, unroll and spill.

    Of PTX it is what NVIDIA's assembler gives out, where it is installed.
    """

    unit = "register"
    count = "registers"


class HeldMoved(_HeldByItem):
    """Words of 32 bits that a work-item holds beside, if a compiler moves sums to the conditions under which they are
    stored."""

    unit = "register"
    count = "moved_words"


class HeldSteps(_HeldByItem):
    """Instructions of straight code that end in sums which a compiler may move."""

    unit = "instruction"
    count = "moved_steps"


class HeldLocal(CountedFeature):
    """Bytes of local memory that a work-group holds, by its declarations and by what the launch provides."""

    unit = "byte"

    def values(self, counts: KernelCounts, sizes: Sizes) -> Floats:
        if counts.local_bytes is None:
            raise FeatureError(f"feature {self.name!r} is not known: no polynomial of the sizes gives the local memory")
        return counts.local_bytes(sizes)


class _HeldFamily(SingleFamily):
    def candidates(self, counts: KernelCounts) -> Iterable[str]:
        return ()  # by themselves they take no time


class HeldRegistersFamily(_HeldFamily):
    prefix = ("held", "registers")
    summary = "words of 32 bits that a work-item holds at once, estimated from the source"
    kind = HeldRegisters


class HeldLocalFamily(_HeldFamily):
    prefix = ("held", "local")
    summary = "bytes of local memory that a work-group holds"
    kind = HeldLocal


class HeldMovedFamily(_HeldFamily):
    prefix = ("held", "moved")
    summary = "words that a work-item holds beside, where a compiler moves sums to conditions"
    kind = HeldMoved


class HeldStepsFamily(_HeldFamily):
    prefix = ("held", "steps")
    summary = "instructions of straight code whose sums a compiler may move to conditions"
    kind = HeldSteps
