"""Counts what accesses that jump about bring from memory: ``f_mem_scattered_global_load_block:32_reach:>8000000``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.errors import FeatureError
from perfmodel.counting.atomics import SECTOR
from perfmodel.counting.counts import LINE_BYTES, PAGE_BYTES, SUBGROUP_SIZE, AccessCount, Footprint, KernelCounts
from perfmodel.counting.evaluation import quotient
from perfmodel.counting.kept_lines import time_kept
from perfmodel.counting.recording import Recording
from perfmodel.features.footprint import FootprintFeature
from perfmodel.features.memory_access import Floats, Sizes
from perfmodel.features.transactions import (
    between_sizes,
    block_bytes,
    bytes_of_array,
    bytes_touched,
    part_of_record,
)
from perfmodel.vocabulary.feature_name import FeatureName, Word
from perfmodel.vocabulary.named_features import CountedFeature, FeatureFamily, unknown_word

DIRECTIONS = ("load", "store", "atomic")
FLAGS = ("missed", "first", "gaps", "whole")
ALL_OVER = 0.5
"""A group is all over an array that touches this part of its pages, or as many pages for its lines."""
NEXT_TO_NONE = 1e-9
"""So many bytes keep a sum from being 0."""
FILLED = 0.99
"""A sub-group fills the sectors of which it stores this part of their bytes."""


class ScatteredFeature(CountedFeature):
    """Bytes of the blocks that work-groups touch by accesses whose addresses jump about, as those of hashes.

    Such an access has no group beside it that has just touched what it touches: beyond what a cache holds of its reach,
    it goes to memory. Its reach is what it touches over the launch, at most its array.

    With ``gaps``, a third of what they leave out of lines of 128 bytes counts instead: the whole block of a sector
    that is alone in its line, nothing of lines that are touched as a whole. On an H200, blocks that lie anywhere take
    the bandwidth of memory for their bytes, and a time of their own for these (`benchmarks.records`).

    Attributes:
        reach: bytes; accesses of no more are left out.
        missed: whether only blocks count that a last-level cache no longer has, as far as ids and arguments alone say
            where accesses go; of others, all count.
        first: whether each block counts once, as footprints have it.
        gaps: whether gaps count.
        whole: whether only accesses count that fill their sectors.
        keeps: bytes of lines that a last-level cache has room for; 0 where nothing is said of it.
    """

    unit = "byte"
    subgroup_size = SUBGROUP_SIZE

    def __init__(
        self,
        name: FeatureName,
        direction: str | None,
        block: int,
        reach: float,
        flags: Collection[str] = (),
        keeps: float = 0.0,
    ) -> None:
        super().__init__(name)
        self.direction, self.block, self.reach, self.keeps = direction, block, reach, keeps
        self.missed, self.first, self.gaps, self.whole = (flag in flags for flag in FLAGS)
        self.brought = FootprintFeature(name, None, direction or "any", None, block=block)

    def values(self, counts: KernelCounts, sizes: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
        jumping = [a for a in counts.accesses if a.space == "global" and self.jumps(a, counts, sizes)]
        lost = self.lost(jumping, counts, sizes) if self.keeps else {}
        by_array: dict[tuple[str, str], list[AccessCount]] = {}
        for access in jumping:
            if self.direction in (None, access.direction):
                by_array.setdefault((access.variable, access.direction), []).append(access)
        total: Floats = np.asarray(0.0)
        for (variable, direction), accesses in by_array.items():
            most = self.most(counts.footprint_of(variable, direction), counts, sizes)
            moved = [self.moved(access, counts, sizes) for access in accesses]
            # Fields of a struct share blocks.
            part = np.minimum(quotient(most, sum(moved, np.asarray(0.0)), 1.0), 1.0)
            for access, of_one in zip(accesses, moved, strict=True):
                missed = self.part_missed(access, lost.get(variable, np.asarray(1.0)))
                found = of_one * part * missed * self.part_counted(access, counts, sizes)
                total = total + np.where(self.reach_of(access, counts, sizes) > self.reach, found, 0.0)
        return total

    def part_counted(self, access: AccessCount, counts: KernelCounts, sizes: Sizes) -> Floats:
        """Returns the part of what an access moves that is asked for, whatever a cache has."""
        part, sectors = np.asarray(1.0), self.at_once(access, SECTOR, counts, sizes)
        if self.gaps:
            lines = self.at_once(access, LINE_BYTES, counts, sizes)
            part = np.maximum(quotient(lines, sectors, 1.0) - 1.0, 0.0) / (LINE_BYTES / SECTOR - 1)
        if self.whole:
            stored = access.executions.workitem(sizes) * (access.bits // 8)
            part = np.where(stored >= FILLED * sectors, part, 0.0)
        return part

    def most(self, footprint: Footprint | None, counts: KernelCounts, sizes: Sizes) -> Floats:
        """Returns the bytes of an array's blocks beyond which no more count; infinite where nothing says so."""
        if footprint is not None and self.first:
            return self.brought.of(footprint, counts, sizes)
        if footprint is None or footprint.touched is None:
            return np.asarray(np.inf)
        return bytes_touched(footprint.touched, self.block, counts, sizes)

    def part_missed(self, access: AccessCount, lost: Floats) -> Floats:
        """Returns the part of an access's blocks that counts.

        Args:
            lost: of random accesses to its array, the part that misses the cache.
        """
        if self.first:
            return np.asarray(1.0)
        if not self.missed or access.missed is None:
            return lost
        return np.asarray(access.missed)

    def lost(self, jumping: list[AccessCount], counts: KernelCounts, sizes: Sizes) -> dict[str, Floats]:
        """Returns the part of accesses to random sectors of each array that misses the cache.

        A line stays as long as it is among those that were touched last, in whatever sector. Of the accesses to one
        that has stayed, a quarter goes to the sector of the access before; the others ask for one that came before
        that, if the line has stayed since. So the part h of hits is r (1/4 + 3/4 h), where r lines of all have room.
        """
        reaches: dict[str, Floats] = {}
        touches: dict[str, Floats] = {}
        for access in jumping:
            moved = self.at_once(access, SECTOR, counts, sizes)
            touched = np.minimum(self.reach_of(access, counts, sizes), moved)
            lines = reaches.get(access.variable, np.asarray(0.0)) + touched / SECTOR * LINE_BYTES
            array = bytes_of_array(counts, access, sizes)
            reaches[access.variable] = lines if array is None else np.minimum(lines, array)
            touches[access.variable] = touches.get(access.variable, np.asarray(0.0)) + moved
        sectors = LINE_BYTES / SECTOR
        return {
            variable: sectors * (1.0 - room) / (sectors - (sectors - 1.0) * room)
            for variable, room in rooms(self.keeps, reaches, touches, sizes).items()
        }

    def jumps(self, access: AccessCount, counts: KernelCounts, sizes: Sizes) -> bool:
        """Returns True if no strides say where the next groups access.

        Where these are known, a group's work-items may be spread in whatever way, as those that bring a tile: what they
        touch is in the footprints. What data decide, and nobody looked at, is taken to be anywhere in its array: the
        footprints of work-groups have it as often as it is loaded, but memory has to bring it again, too. So is what a
        group was seen to touch all over the array, a little on each page.
        """
        if None not in access.group_strides.values():
            return False
        return access.addresses is not None or (
            self.missed and (access.touched is None or _is_all_over(counts, access, sizes))
        )

    def moved(self, access: AccessCount, counts: KernelCounts, sizes: Sizes) -> Floats:
        """Returns the bytes of the blocks that an access touches in all its executions; fields of a record share
        theirs."""
        return self.at_once(access, self.block, counts, sizes) * part_of_record(access, counts, self.block)

    @staticmethod
    def at_once(access: AccessCount, block: int, counts: KernelCounts, sizes: Sizes) -> Floats:
        """Returns the bytes of the blocks that sub-groups touch at once, added up over all executions."""
        if access.touched is not None and access.addresses is None and access.executions.subgroup is not None:
            return access.executions.subgroup(sizes) * between_sizes(access.touched, block) * block
        touched: Floats = access.executions.workitem(sizes) * block_bytes(counts, access, sizes, block)
        return touched

    def reach_of(self, access: AccessCount, counts: KernelCounts, sizes: Sizes) -> Floats:
        known = bytes_of_array(counts, access, sizes)
        whole: Floats = np.asarray(np.inf) if known is None else known
        return whole if access.reach is None else np.minimum(whole, access.reach)


def rooms(
    keeps: float, reaches: Mapping[str, Floats], touches: Mapping[str, Floats], sizes: Sizes
) -> dict[str, Floats]:
    """Returns the part of each array's lines that a cache has, of random accesses to all of them; those of which each
    line is touched more often have more there (`perfmodel.counting.kept_lines`).

    Args:
        keeps: bytes that the cache has room for. reaches: those of each array's lines. touches: how often each array
            is touched, in any unit.
    """
    if len(reaches) < 2:
        return {
            variable: np.minimum(quotient(np.asarray(keeps), reach, 1.0), 1.0) for variable, reach in reaches.items()
        }
    rates = {variable: quotient(touches[variable], reach, 0.0) for variable, reach in reaches.items()}
    lines = [each for variable, reach in reaches.items() for each in (reach, rates[variable])]
    time = (
        sizes.call(time_kept, keeps, NEXT_TO_NONE, *lines)
        if isinstance(sizes, Recording)
        else time_kept(keeps, NEXT_TO_NONE, *lines)
    )
    return {variable: -np.expm1(-rate * time) for variable, rate in rates.items()}


def _is_all_over(counts: KernelCounts, access: AccessCount, sizes: Sizes) -> bool:
    """Returns True if emulated groups touched most pages of an array, or a page for most of the blocks they touched."""
    footprint = counts.footprint_of(access.variable, access.direction)
    if footprint is None or footprint.touched is None:
        return False
    seen, whole = dict(footprint.touched), footprint.array_bytes(sizes)
    pages = np.inf if whole is None else float(np.max(whole)) / PAGE_BYTES
    most = min(between_sizes(footprint.touched, LINE_BYTES), pages)  # a record may lie in several sectors
    return PAGE_BYTES in seen and seen[PAGE_BYTES] >= ALL_OVER * most


class ScatteredFamily(FeatureFamily):
    prefix = ("mem", "scattered")
    summary = "bytes of global memory's blocks that scattered accesses touch: their addresses jump about"
    examples = ("f_mem_scattered_global_load_block:32_reach:>8000000", "f_mem_scattered_global_block:64")

    def candidates(self, counts: KernelCounts) -> Iterable[str]:
        if any(access.space == "global" and access.addresses is not None for access in counts.accesses):
            yield f"{self.name}_global_block:32"

    def parse(self, name: FeatureName, words: tuple[Word, ...]) -> ScatteredFeature:
        direction, block, reach, keeps, space, flags = None, None, 0.0, 0.0, False, set()
        for word in words:
            condition = word.condition or ""
            if word.key == "global" and word.condition is None:
                space = True
            elif word.key in DIRECTIONS and word.condition is None:
                direction = word.key
            elif word.key in FLAGS and word.condition is None:
                flags.add(word.key)
            elif word.key == "block" and condition.isdecimal() and 0 < int(condition) < 10000:
                block = int(condition)
            elif word.key == "keeps" and condition.isdecimal() and 0 < int(condition) < 10**12:
                keeps = float(condition)
            elif word.key == "reach" and condition.startswith(">") and condition[1:].isdecimal():
                reach = float(condition[1:])
            else:
                raise unknown_word(name, word, ("global", *DIRECTIONS, *FLAGS, "block:32", "reach:>8000000"))
        if not space or block is None:
            raise FeatureError(f"feature {name.text!r} is of global memory's blocks; write {self.examples[1]}")
        return ScatteredFeature(name, direction, block, reach, flags, keeps)
