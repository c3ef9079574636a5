"""Counts how often a work-item loads or stores, and waits, by bodies of loops: ``f_mem_rounds_global``,
``f_mem_waits_global``, ``f_mem_depth_global``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.errors import FeatureError
from perfmodel.counting.atomics import SECTOR
from perfmodel.counting.counts import SUBGROUP_SIZE, AccessCount, Footprint, KernelCounts
from perfmodel.counting.evaluation import quotient
from perfmodel.features.footprint import FootprintFeature, reaches_beyond
from perfmodel.features.group_addresses import of_group
from perfmodel.features.memory_access import Floats, Sizes
from perfmodel.features.transactions import moved_on, separate_runs
from perfmodel.vocabulary.feature_name import FeatureName, Word
from perfmodel.vocabulary.granularity import WORKITEM, Granularity, once_a_body, parse_granularity
from perfmodel.vocabulary.named_features import CountedFeature, FeatureFamily, by_role, unknown_word

SPACES = ("global", "local", "scratch")
TURNS = SECTOR + 1
"""After so many iterations, whatever their step, addresses are where they were within their sectors."""
WHOLE = 1.0
ROLES = {"space": ("global", "local"), "direction": ("load", "store"), "fresh": ("fresh",)}

KEPT_OF_GROUP = 32768
"""So many bytes of an array a first-level cache is taken to keep for a work-group, beside what it keeps for others."""


@dataclass(frozen=True)
class FreshTurns:
    """Asks in which part of a loop's iterations any work-item of a sub-group goes to a sector that none had in the
    iteration before.

    Attributes:
        width: work-items of a sub-group.
    """

    width: int
    period: int = SECTOR

    def __call__(self, addresses: NDArray[np.int64], item: int) -> float:
        whole = len(addresses) // TURNS
        lanes = min(whole, self.width)
        groups = (whole // lanes, lanes, TURNS)
        sectors = (addresses[: groups[0] * lanes * TURNS] // SECTOR).reshape(groups)
        known = sectors[:, :, None, 1:] == sectors[:, None, :, :-1]
        return float((~known.any(axis=2)).any(axis=1).mean())


class RoundsFeature(CountedFeature):
    """Executions of loads, or of stores; those of one loop body, and of unrolled loops in it, count once.

    None of these waits for another. With ``fresh``, only the part of them counts in which a load takes any work-item of
    a sub-group to a sector that the loop's iteration before has not accessed: an eighth along rows of floats that all
    begin at a sector, each one where rows begin anywhere in theirs; loads that follow from others count by themselves,
    but not where one that came before has been at the same place, nor where the work-group has touched all of the few
    sectors there are. With ``beyond:220000``, only loads count that touch more bytes than that of their array over the
    launch: caches keep the others from one work-group to the next.
    """

    unit = "round"

    def __init__(
        self,
        name: FeatureName,
        space: str,
        direction: str,
        granularity: Granularity,
        is_fresh: bool = False,
        beyond: float = 0.0,
    ) -> None:
        super().__init__(name)
        self.beyond = beyond
        self.touched = FootprintFeature(name, None, direction, None, block=SECTOR)
        self.of_groups = FootprintFeature(name, None, direction, None, by_group=True, block=SECTOR)
        self.space, self.direction = space, direction
        self.granularity = granularity
        self.subgroup_size = SUBGROUP_SIZE if is_fresh else granularity.subgroup_size
        self.is_fresh = is_fresh

    def values(self, counts: KernelCounts, sizes: Sizes) -> Floats:
        chosen = [a for a in counts.accesses if (a.space, a.direction) == (self.space, self.direction)]
        parts = [self.part_of(access, counts, sizes) for access in chosen]
        places = [self.place_of(access) for access in chosen]

        def by(granularity: Granularity) -> Floats:
            times = (self.times(access, granularity, sizes) for access in chosen)
            each = (count if part is WHOLE else part * count for part, count in zip(parts, times, strict=True))
            return once_a_body(zip(places, each, strict=True))

        return self.granularity.largest(by)

    def place_of(self, access: AccessCount) -> tuple[str, ...]:
        """Returns the loop body of which accesses count once; of fresh ones, those that come at one level."""
        return (*access.body, f"load {access.level}") if self.is_fresh else access.body

    def times(self, access: AccessCount, granularity: Granularity, sizes: Sizes) -> Floats:
        return granularity.executions(access.rounds, self.name)(sizes)

    def part_of(self, access: AccessCount, counts: KernelCounts, sizes: Sizes) -> float | Floats:
        """Returns how much one time of an access counts."""
        if not self.is_fresh:
            return WHOLE
        if access.is_again or (self.beyond and not reaches_beyond(access, self.beyond)):
            return 0.0
        part = self.fresh_part(counts, access, sizes)
        footprint = counts.footprint_of(access.variable, self.direction)
        if footprint is None:
            return part
        first = np.minimum(part, self.first_part(footprint, access, counts, sizes))
        return np.where(self.touched.of(footprint, counts, sizes) > self.beyond, first, 0.0) if self.beyond else first

    def first_part(
        self, footprint: Footprint, access: AccessCount, counts: KernelCounts, sizes: Sizes
    ) -> float | Floats:
        """Returns which part of its times an access goes to sectors at most that its work-group has not been at: loops
        around the innermost one may go over the same few again and again, as over weights or a row of a table."""
        groups = counts.work_groups(sizes)
        n_bytes = self.of_groups.of(footprint, counts, sizes)
        sectors = n_bytes / SECTOR + groups  # one more, as they may begin anywhere
        most = quotient(sectors * counts.work_items(sizes) / groups, access.rounds.workitem(sizes), 1.0)
        return np.where(n_bytes <= groups * KEPT_OF_GROUP, np.minimum(most, 1.0), 1.0)

    def fresh_part(self, counts: KernelCounts, access: AccessCount, sizes: Sizes) -> Floats:
        """Returns the part of the innermost loop's iterations in which a load goes to a fresh sector.

        Work-items that begin anywhere come to their next sectors one by one, each as often as its steps lead it there;
        those that lie side by side come there together, as do those that are at one place relative to their sectors.
        """
        *_, step = (None, *access.loop_strides.values())
        if step is None:
            return np.asarray(1.0)
        known = of_group(counts, access, sizes, FreshTurns(SUBGROUP_SIZE), TURNS)
        if known is not None:
            return known
        by_items, by_subgroups = access.executions.workitem(sizes), access.executions.subgroup
        items = SUBGROUP_SIZE if by_subgroups is None else by_items / np.maximum(by_subgroups(sizes), 1.0)
        runs, moved = separate_runs(access, SECTOR, np.maximum(items, 1.0)), moved_on(access, SECTOR, sizes)
        found: Floats = 1.0 - (1.0 - moved) ** runs
        return found if access.phases is None else np.minimum(found, access.phases * moved)


class WaitsFeature(RoundsFeature):
    """Waits for loads: a round has several where addresses follow from other loads, and shares one with those of other
    iterations where a compiler writes a loop's body out several times, all loads first.

    Each iteration waits by itself where its body calls functions, or stores what loads may see. A loop is waited for at
    least once each time that it is begun. The machine code of NVIDIA's compilers showed when they do what
    (docs/gpu-model.md).
    """

    unit = "wait"

    def place_of(self, access: AccessCount) -> tuple[str, ...]:
        return (*access.body, f"load {access.level}")

    def times(self, access: AccessCount, granularity: Granularity, sizes: Sizes) -> Floats:
        """Returns the waits for one load: at least one each time that its loop is begun."""
        waits: Floats = access.wait * super().times(access, granularity, sizes)
        if access.entered is None:
            return waits
        return np.maximum(waits, access.least * granularity.executions(access.entered, self.name)(sizes))


class DepthFeature(RoundsFeature):
    """Operations of loop bodies that come one after the other, from what they load on; several iterations of a loop
    that a compiler writes out are done side by side.

    Operations on what goes on to the next iteration are left out: ``f_op_float32_add_carried`` and the like count them.
    Divisions, roots and functions count as many as the instructions that they become.
    """

    unit = "operation"

    def part_of(self, access: AccessCount, counts: KernelCounts, sizes: Sizes) -> float | Floats:
        return access.depth


class RoundsFamily(FeatureFamily):
    prefix = ("mem", "rounds")
    summary = "loads from global or local memory, or stores, those of one loop body together"
    examples: tuple[str, ...] = ("f_mem_rounds_global", "f_mem_rounds_local", "f_mem_rounds_local_store")
    feature: type[RoundsFeature] = RoundsFeature
    roles: ClassVar[Mapping[str, tuple[str, ...]]] = ROLES

    def candidates(self, counts: KernelCounts) -> Iterable[str]:
        return self.examples

    def parse(self, name: FeatureName, words: tuple[Word, ...]) -> RoundsFeature:
        found = by_role(name, words, self.role)
        if "space" not in found:
            raise FeatureError(
                f"feature {name.text!r} is of one kind of memory; write which of {', '.join(self.roles['space'])}"
            )
        if "beyond" in found and "fresh" not in found:
            raise FeatureError(
                f"feature {name.text!r}: beyond:… is said of fresh sectors; write fresh too", found["beyond"].offset
            )
        if "fresh" in found and found["space"].key != "global":
            raise FeatureError(
                f"feature {name.text!r}: only sectors of global memory are fresh; leave fresh out, or write global",
                found["fresh"].offset,
            )
        return self.feature(
            name,
            found["space"].key,
            found["direction"].key if "direction" in found else "load",
            parse_granularity(found["granularity"]) if "granularity" in found else WORKITEM,
            "fresh" in found,
            float(found["beyond"].condition or 0) if "beyond" in found else 0.0,
        )

    def role(self, name: FeatureName, word: Word) -> tuple[str, Word]:
        if word.key == "granularity" and word.condition is not None:
            return word.key, word
        if word.key == "beyond" and re.fullmatch(r"[1-9]\d{0,11}", word.condition or "", re.ASCII):
            return word.key, word
        for role, known in self.roles.items():
            if word.key in known and word.condition is None:
                return role, word
        raise unknown_word(name, word, (*(key for known in self.roles.values() for key in known), "granularity"))


class WaitsFamily(RoundsFamily):
    prefix = ("mem", "waits")
    summary = "waits for loads from memory, by how a compiler writes loops out"
    examples = ("f_mem_waits_global", "f_mem_waits_local_granularity:longest", "f_mem_waits_scratch")
    feature = WaitsFeature
    roles: ClassVar = {"space": SPACES}


class DepthFamily(RoundsFamily):
    prefix = ("mem", "depth")
    summary = "operations of loop bodies that follow one after the other on what they load"
    examples = ("f_mem_depth_global", "f_mem_depth_local_granularity:longest")
    feature = DepthFeature
    roles: ClassVar = {"space": SPACES}
