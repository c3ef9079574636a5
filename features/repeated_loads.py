"""Counts what is loaded again after a loop has gone through it: ``f_mem_repeated_global_load_block:32``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.errors import FeatureError
from perfmodel.counting.counts import SUBGROUP_SIZE, AccessCount, KernelCounts
from perfmodel.features.memory_access import ZERO, AccessPattern, Floats, Sizes
from perfmodel.features.transactions import TransactionFeature, bytes_touched, moved_by, side_by_side
from perfmodel.vocabulary.feature_name import FeatureName, Word
from perfmodel.vocabulary.named_features import CountedFeature, FeatureFamily, unknown_word


class RepeatedLoadsFeature(CountedFeature):
    """Bytes of the blocks that sub-groups load again after they have gone through other data of the array.

    An outer loop that does not move an access repeats what the loops within go through: all passes over a row but the
    first. So does a later loop in which work-items go through an array as in an earlier one, or as in one that stored
    to it. What is loaded beyond what work-groups touch is repeated; sub-groups of a work-group that go through the same
    count once, and so does what an iteration shares with the one before it, which a register or a cache has.
    """

    unit = "byte"

    def __init__(self, name: FeatureName, block: int) -> None:
        super().__init__(name)
        self.block = block
        pattern = AccessPattern(space="global", direction="load")
        self.blocks = TransactionFeature(name, pattern, "block", block, is_fresh=True)
        self.subgroup_size = self.blocks.subgroup_size

    def values(self, counts: KernelCounts, sizes: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
        written_out: dict[tuple[Any, str], tuple[AccessCount, Floats]] = {}  # copies of one place in the source
        for access, found in self.blocks.each(self.blocks.pattern, counts, sizes):
            key = side_by_side(access), access.text
            before = written_out[key][1] if key in written_out else np.asarray(0.0)
            written_out[key] = access, before + found * self.block / _sharing(access, counts, sizes)
        loaded: dict[Any, tuple[AccessCount, Floats]] = {}  # neighbours share blocks
        for (beside, _), (access, n_bytes) in written_out.items():
            before = loaded[beside][1] if beside in loaded else np.asarray(0.0)
            loaded[beside] = access, np.maximum(before, n_bytes)
        ways: dict[Any, list[tuple[AccessCount, Floats]]] = {}
        for access, n_bytes in loaded.values():
            if (way := _way(access)) is not None:
                ways.setdefault(way, []).append((access, n_bytes))
        total: Floats = np.asarray(0.0)
        for alike in ways.values():
            n_bytes = sum((found for _, found in alike), np.asarray(0.0))
            if all("stored" in access.tags for access, _ in alike):
                total = total + n_bytes
                continue
            loops = len({access.body for access, _ in alike})
            most: Floats = np.asarray(1.0 - 1.0 / loops)
            for access, _ in alike:
                most = np.where(_is_repeated(access, sizes), 1.0, most)
            repeated = np.maximum(n_bytes - self.touched(alike[0][0], counts, sizes), 0.0)
            total = total + np.minimum(repeated, n_bytes * most)
        return total

    def touched(self, access: AccessCount, counts: KernelCounts, sizes: Sizes) -> Floats:
        """Returns the bytes of an array that all work-groups touch, each counted by itself; infinite if not known."""
        footprint = counts.footprint_of(access.variable, "load")
        if footprint is not None and footprint.by_group is not None:
            return footprint.by_group(sizes) * np.dtype(footprint.dtype).itemsize
        if footprint is not None and footprint.touched is not None:
            return bytes_touched(footprint.touched, self.block, counts, sizes)
        return np.asarray(np.inf)


def _sharing(access: AccessCount, counts: KernelCounts, sizes: Sizes) -> Floats:
    """Returns how many sub-groups of a work-group go through the same data, as they differ along axes that do not move
    an access."""
    inside: Floats = np.asarray(float(SUBGROUP_SIZE))
    shared: Floats = np.asarray(1.0)
    for axis, size in enumerate(counts.local_size):
        extent = size(sizes)
        covered = np.minimum(inside, extent)
        stride = access.local_strides.get(axis, ZERO)
        if stride is not None:
            shared = shared * np.where(stride(sizes) == 0, extent / covered, 1.0)
        inside = np.maximum(inside / extent, 1.0)
    return shared


def _way(access: AccessCount) -> Any:
    """Returns how work-items go through an array side by side, in whatever loop; None where that is not known."""
    if None in (*access.group_strides.values(), *access.loop_strides.values()) or not access.loop_strides:
        return None
    return access.variable, moved_by(access.local_strides, access.group_strides)


def _is_repeated(access: AccessCount, sizes: Sizes) -> NDArray[np.bool_]:
    """Returns a mask of the sizes at which a loop that does not move an access is around one that does."""
    found, is_around = np.asarray(False), np.asarray(False)
    for stride in access.loop_strides.values():
        if stride is None:
            return np.asarray(False)
        step = stride(sizes)
        found, is_around = found | (is_around & (step != 0)), is_around | (step == 0)
    return found


class RepeatedLoadsFamily(FeatureFamily):
    prefix = ("mem", "repeated")
    summary = "bytes of global memory's blocks that sub-groups load again after a loop has gone through them"
    examples = ("f_mem_repeated_global_load_block:32",)

    def candidates(self, counts: KernelCounts) -> Iterable[str]:
        if any(access.space == "global" and len(access.loop_strides) > 1 for access in counts.accesses):
            yield self.examples[0]

    def parse(self, name: FeatureName, words: tuple[Word, ...]) -> RepeatedLoadsFeature:
        block, said = None, set()
        for word in words:
            condition = word.condition or ""
            if word.key in ("global", "load") and word.condition is None:
                said.add(word.key)
            elif word.key == "block" and condition.isdecimal() and 0 < int(condition) < 10000:
                block = int(condition)
            else:
                raise unknown_word(name, word, ("global", "load", "block:32"))
        if said != {"global", "load"} or block is None:
            raise FeatureError(f"feature {name.text!r} is of loads from global memory; write {self.examples[0]}")
        return RepeatedLoadsFeature(name, block)
