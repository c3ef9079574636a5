"""Counts what work-groups bring from memory again, after others have gone through more than a cache keeps:
``f_mem_revisited_global_load_keeps:50000000``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from perfmodel.basics.errors import FeatureError
from perfmodel.counting.counts import LINE_BYTES, SUBGROUP_SIZE, KernelCounts
from perfmodel.counting.recording import Recording
from perfmodel.features.core_order import Stream, Walk, Walks, counts_needed
from perfmodel.features.memory_access import Floats, Sizes
from perfmodel.vocabulary.feature_name import FeatureName, Word
from perfmodel.vocabulary.named_features import CountedFeature, FeatureFamily, by_role, unknown_word

WALKS = Walks()
BLOCK = 64
"""Memory brings so many bytes at a time."""
AT_ONCE = 1 << 18
"""Work-items that a large device runs at a time: groups of several rows of the grid share what these bring."""
STEEPNESS, MOST_LEFT_OUT = 8, 0.5


@dataclass(frozen=True)
class Sweep:
    """Asks what the work-groups of all but the last of some axes bring, and how often they come back to it."""

    direction: str
    keeps: float

    def of(self, walk: Walk) -> Floats:
        """Returns bytes; where accesses go through one array in several ways, those of the way that brings the most."""
        spans = together(walk)
        most: dict[str, Floats] = {}
        for stream in walk.streams:
            first = stream.accesses[0]
            if first.direction != self.direction or is_anywhere(stream):
                continue
            brought = self.again(stream, walk, spans)
            most[first.variable] = np.maximum(most.get(first.variable, np.asarray(0.0)), brought)
        return sum(most.values(), np.asarray(0.0))

    def again(self, stream: Stream, walk: Walk, spans: dict[tuple[Any, ...], Floats]) -> Floats:
        """Returns the bytes of the blocks that each further row of groups brings again."""
        total, items = np.asarray(0.0), np.asarray(1.0)
        touched = [number for number, _ in stream.touched(walk.lanes, BLOCK)]
        whole: Floats = np.asarray(1.0)
        for step in stream.steps:
            whole = whole * step.extent
        part = np.minimum(stream.executed / np.maximum(whole, 1e-9), 1.0)
        is_known = part > MOST_LEFT_OUT  # what conditions leave out may be all that rows have in common
        outside = whole
        for place, step in enumerate(stream.steps):
            outside = outside / np.maximum(step.extent, 1.0)
            if step.name[0] == "groups" and step.name[1] > 0:
                before = stream.steps[place - 1].name
                rows = np.clip(AT_ONCE / items, 1.0, step.extent)  # that run at a time
                inner = np.minimum(rows * touched[place - 1], touched[place])
                span = np.minimum(rows * spans[before], spans[step.name])
                filled = (span / self.keeps) ** STEEPNESS
                visits = step.extent / rows * inner
                total = total + outside * np.maximum(visits - touched[place], 0.0) * filled / (1 + filled)
            if step.name[0] in ("lanes", "axis", "groups"):
                items = items * step.extent
        return np.where(is_known, total * part * BLOCK, 0.0)


def together(walk: Walk) -> dict[tuple[Any, ...], Floats]:
    """Returns the bytes of the lines that all accesses touch within each step."""
    found: dict[tuple[Any, ...], Floats] = {}
    for stream, blocks in zip(walk.streams, walk.touched(LINE_BYTES), strict=True):
        for step, touched in zip(stream.steps, stream.together(blocks, LINE_BYTES), strict=True):
            found[step.name] = found.get(step.name, np.asarray(0.0)) + touched
    return found


def is_anywhere(stream: Stream) -> bool:
    """Returns True where strides do not say where accesses go."""
    return any(step.stride is None for step in stream.steps)


class RevisitedFeature(CountedFeature):
    """Bytes of the blocks of 64 that work-groups bring from memory, or take there, again.

    Groups run in the order of their numbers, along the first axis of the grid first. Where those of a row (or of a
    plane) touch more than the last-level cache keeps, the next row brings anew what it has in common with the one
    before, as where channels of a picture that lie side by side are worked on one after the other. Rows that run at a
    time share what they bring.
    """

    unit = "byte"
    subgroup_size = SUBGROUP_SIZE

    def __init__(self, name: FeatureName, sweep: Sweep) -> None:
        super().__init__(name)
        self.sweep = sweep

    def values(self, counts: KernelCounts, sizes: Sizes) -> Floats:
        if len(counts.grid or ()) < 2:
            return np.asarray(0.0)
        needed = counts_needed(counts)
        columns: list[Any] = [count(sizes) for count in needed]

        def answer(*values: Any) -> Floats:
            return self.sweep.of(WALKS.of(counts, needed, values, SUBGROUP_SIZE))

        return cast(Floats, sizes.call(answer, *columns)) if isinstance(sizes, Recording) else answer(*columns)


class RevisitedFamily(FeatureFamily):
    prefix = ("mem", "revisited")
    summary = "bytes that work-groups bring from memory again, as a cache of some size has lost them"
    examples = ("f_mem_revisited_global_load_keeps:50000000", "f_mem_revisited_global_store_keeps:50000000")

    def candidates(self, counts: KernelCounts) -> Iterable[str]:
        """Yields none: which caches there are is known of a device only."""
        return ()

    def parse(self, name: FeatureName, words: tuple[Word, ...]) -> RevisitedFeature:
        found = by_role(name, words, self.role)
        if {"space", "direction", "keeps"} - found.keys():
            raise FeatureError(f"feature {name.text!r} says not what a cache keeps of what; write {self.examples[0]}")
        return RevisitedFeature(name, Sweep(found["direction"], float(found["keeps"])))

    def role(self, name: FeatureName, word: Word) -> tuple[str, str]:
        condition = word.condition or ""
        if word.key == "keeps" and condition.isdecimal() and 0 < int(condition) < 10**12:
            return "keeps", condition
        if word.condition is None and word.key in ("load", "store"):
            return "direction", word.key
        if word.condition is None and word.key == "global":
            return "space", word.key
        raise unknown_word(name, word, ("global", "load", "store", "keeps:50000000"))
