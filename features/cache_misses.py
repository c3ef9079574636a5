"""Counts what a processor's cores fetch because a cache of some size has not kept it: ``f_mem_missed_keeps:32768``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from perfmodel.basics.errors import FeatureError
from perfmodel.counting.counts import KernelCounts
from perfmodel.counting.kept_lines import time_kept
from perfmodel.counting.recording import Recording
from perfmodel.features.core_order import Stream, Walk, Walks, counts_needed
from perfmodel.features.memory_access import Floats, Sizes
from perfmodel.vocabulary.feature_name import FeatureName, Word
from perfmodel.vocabulary.named_features import CountedFeature, FeatureFamily, by_role, unknown_word

LANES = 16
WALKS = Walks()
STEEPNESS = 4
"""A working set as large as the cache is kept by one half, one of twice the size by a seventeenth."""


@dataclass(frozen=True)
class Missed:
    """Asks what a cache misses, of a kernel's counts by their values; equal ones are hashed alike."""

    block: int
    keeps: float
    stored: bool
    jumps: bool
    waits: bool
    lanes: int

    def of(self, walk: Walk) -> Floats:
        """Returns bytes, or the number of jumps."""
        total: Floats = np.asarray(0.0)
        sets = walk.working_sets(self.block)
        for stream, blocks in zip(walk.streams, walk.touched(self.block), strict=True):
            if self.stored and not stream.is_stored:
                continue
            missed = self.missed(stream, [number for number, _ in blocks], sets)
            missed = missed * stream.places(blocks[-1][0] * self.block)
            if self.waits:
                total = total + np.minimum(missed, stream.executed / self.lanes) * stream.is_apart()
                continue
            total = total + (missed / stream.side_by_side(len(walk.streams)) if self.jumps else missed * self.block)
        return total

    def missed(self, stream: Stream, blocks: list[Floats], sets: dict[tuple[Any, ...], Floats]) -> Floats:
        """Returns blocks: those of each step that the steps inside of it have touched before count as far as they are
        not kept that long, and the first touch of each as far as the cache does not keep the whole launch's data."""
        whole: Floats = np.asarray(1.0)
        for step in stream.steps:
            whole = whole * step.extent
        part = np.minimum(stream.executed / np.maximum(whole, 1e-9), 1.0)
        total: Floats = np.asarray(0.0)
        fetched, span, within, spread = None, np.asarray(0.0), np.asarray(1.0), stream.spread()
        for step, number in zip(stream.steps, blocks, strict=True):
            within = within * step.extent
            here = whole / np.maximum(within, 1e-9) * number * part
            if fetched is not None:
                again = np.maximum(fetched - here, 0.0)
                missed = self.part(span)
                if step.stride is None:
                    own = number * self.block
                    beside = np.maximum(sets[step.name] - own, 0.0) * np.minimum(here / np.maximum(fetched, 1e-9), 1.0)
                    anywhere = missed_at_random(own, np.maximum(beside, span - own), self.keeps)
                    missed = missed + (anywhere - missed) * spread
                total = total + again * missed
                here = np.minimum(here, fetched)
            fetched, span = here, np.maximum(span, sets[step.name])
        return total if fetched is None else total + fetched * self.part(span)

    def part(self, span: Floats) -> Floats:
        """Returns the part of accesses that miss, where so many bytes were touched since the one before."""
        filled = (span / self.keeps) ** STEEPNESS
        return filled / (1 + filled)


def missed_at_random(own: Floats, beside: Floats, keeps: float) -> Floats:
    """Returns the part of accesses to places at random that miss, by for how long a cache keeps these
    (`perfmodel.counting.kept_lines`).

    Args:
        own: bytes that the places lie in.
        beside: bytes that are touched beside, once each, while as many places are touched as there are.
        keeps: bytes of the cache.
    """
    missed: Floats = np.exp(-time_kept(keeps, np.maximum(beside, 1e-9), np.maximum(own, 1e-9), 1.0))
    return missed


class MissedFeature(CountedFeature):
    """Bytes that a core fetches from beyond a cache of its own, as it goes through a launch in its order.

    What is touched again is kept if all that was touched meanwhile is less than the cache; lines whose addresses lie a
    multiple of a page apart share the few places of one set, and count for as many as would fill all sets so.
    """

    def __init__(self, name: FeatureName, missed: Missed) -> None:
        super().__init__(name)
        self.missed = missed
        self.unit = "jump" if missed.jumps else "wait" if missed.waits else "byte"
        if missed.waits:  # masks are known of vectors
            self.subgroup_size = missed.lanes

    def values(self, counts: KernelCounts, sizes: Sizes) -> Floats:
        needed = counts_needed(counts)
        columns: list[Any] = [count(sizes) for count in needed]

        def answer(*values: Any) -> Floats:
            return self.missed.of(WALKS.of(counts, needed, values, self.missed.lanes))

        return cast(Floats, sizes.call(answer, *columns)) if isinstance(sizes, Recording) else answer(*columns)


class MissedFamily(FeatureFamily):
    prefix = ("mem", "missed")
    summary = "bytes that a processor's core fetches from beyond a cache, or how often it jumps elsewhere for them"
    examples = (
        "f_mem_missed_keeps:32768",
        "f_mem_missed_store_jumps_keeps:1048576",
        "f_mem_missed_block:4096_keeps:294912",
    )

    def candidates(self, counts: KernelCounts) -> Iterable[str]:
        """Yields none: which caches there are is known of a device only."""
        return ()

    def parse(self, name: FeatureName, words: tuple[Word, ...]) -> MissedFeature:
        found = by_role(name, words, self.role)
        if "keeps" not in found:
            raise FeatureError(f"feature {name.text!r} says not what the cache keeps; write {self.examples[0]}")
        return MissedFeature(
            name,
            Missed(
                block=int(found.get("block", 64)),
                keeps=float(found["keeps"]),
                stored="store" in found,
                jumps="jumps" in found,
                waits="waits" in found,
                lanes=int(found.get("width", LANES)),
            ),
        )

    def role(self, name: FeatureName, word: Word) -> tuple[str, str]:
        condition = word.condition or ""
        if word.key in ("block", "width", "keeps") and condition.isdecimal() and 0 < int(condition) < 10**12:
            return word.key, condition
        if word.condition is None and word.key in ("store", "jumps", "waits"):
            return word.key, word.key
        raise unknown_word(name, word, ("store", "jumps", "waits", "keeps:32768", "block:64", "width:16"))
