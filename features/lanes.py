"""Counts what a processor's compiler makes of work-items: lanes of vectors, ``f_vector_steps_width:16`` and
``f_mem_lanes_global_load_unit_width:16``."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterable

import numpy as np

from perfmodel.basics.errors import FeatureError
from perfmodel.counting.counts import SUBGROUP_SIZE, AccessCount, KernelCounts
from perfmodel.counting.quasipolynomial import QuasiPolynomial
from perfmodel.features.memory_access import ZERO, Floats, Sizes
from perfmodel.vocabulary.feature_name import FeatureName, Word
from perfmodel.vocabulary.granularity import Granularity
from perfmodel.vocabulary.named_features import CountedFeature, FeatureFamily, by_role, unknown_word

KINDS = ("uniform", "unit", "gathered", "narrow")
SPACES = ("global", "local", "scratch")
DIRECTIONS = ("load", "store")
BRANCHED = "branched"
"""Asks for accesses with a branch for each lane that nobody foresees, as data decide on it."""
WORD_BITS = 32


class StepsFeature(CountedFeature):
    """Vectors of neighbours along the first axis that a launch's work-items make, or work-items that are left over.

    Rows of a work-group are taken in vectors, and what does not fill one is done work-item by work-item. So are kernels
    that call functions of vectors; there, work-items count by the operations that their instructions do at once.
    """

    def __init__(self, name: FeatureName, width: int, left_over: bool) -> None:
        super().__init__(name)
        self.width, self.left_over = width, left_over
        self.unit = "work-item" if left_over else "vector"

    def values(self, counts: KernelCounts, sizes: Sizes) -> Floats:
        if counts.scalar_operations:
            items = counts.work_items(sizes) / counts.scalar_operations
            return items if self.left_over else np.asarray(0.0)
        local = [size(sizes) for size in counts.local_size]
        if not local:
            raise FeatureError(
                f"feature {self.name!r} is not defined for a kernel whose work-groups have no fixed size"
            )
        rows = counts.work_groups(sizes) * math.prod(local[1:], start=np.asarray(1.0))
        vectors = local[0] // self.width
        found: Floats = rows * (local[0] - vectors * self.width if self.left_over else vectors)
        return found


class StepsFamily(FeatureFamily):
    prefix = ("vector", "steps")
    summary = "vectors of work-items side by side that a processor does at once, or work-items left over"
    examples = ("f_vector_steps_width:16", "f_vector_steps_left_width:16")

    def candidates(self, counts: KernelCounts) -> Iterable[str]:
        """Yields none: how wide vectors are is known of a device only."""
        return ()

    def parse(self, name: FeatureName, words: tuple[Word, ...]) -> StepsFeature:
        found = by_role(name, words, self.role)
        return StepsFeature(name, width_in(self, name, found), "left" in found)

    def role(self, name: FeatureName, word: Word) -> tuple[str, str]:
        if word.condition is None and word.key == "left":
            return word.key, word.key
        return width_role(name, word, ("left", "width:16"))


class LanesFeature(CountedFeature):
    """Accesses by sub-groups as wide as a vector, by what its lanes touch: one place, neighbours, or places apart.

    Neighbours count by the words of 32 bits of an element. Where places are apart or unknown, compilers gather or
    scatter them (``gathered``), or move one lane after the other where elements have less than 32 bits (``narrow``). So
    they do with neighbours that they do not see, as an index of 32 bits might wrap around: where the source has it so,
    or where all strides are numbers of the program, and the pitch of rows is no power of two.
    """

    unit = "access"

    def __init__(self, name: FeatureName, space: str, direction: str, kind: str, width: int) -> None:
        super().__init__(name)
        self.space, self.direction, self.kind = space, direction, kind
        self.granularity, self.subgroup_size = Granularity("vector", width), width

    def values(self, counts: KernelCounts, sizes: Sizes) -> Floats:
        total: Floats = np.asarray(0.0)
        for access in counts.accesses:
            if access.space == self.space and (access.direction == "load") == (self.direction == "load"):
                executed = self.granularity.executions(access.executions, self.name)(sizes)
                total = total + executed * weight_of(access, self.kind, sizes)
        return total


class BranchedFeature(CountedFeature):
    """Accesses that are done lane by lane, each behind a branch of its own, as far as nobody foresees the branches.

    Compilers have no instructions with masks for atomics, nor for numbers of less than 32 bits that do not lie side by
    side. Where data decide which lanes take part, a processor guesses wrong, the more often the nearer to one half
    these are.
    """

    unit = "access"

    def __init__(self, name: FeatureName, width: int) -> None:
        super().__init__(name)
        self.granularity, self.subgroup_size = Granularity("vector", width), width

    def values(self, counts: KernelCounts, sizes: Sizes) -> Floats:
        total: Floats = np.asarray(0.0)
        for access in counts.accesses:
            is_atomic = access.direction == "atomic"
            if access.executions.unforeseen and (is_atomic or access.space in SPACES):
                executed = self.granularity.executions(access.executions, self.name)(sizes)
                one_by_one = 1.0 if is_atomic else weight_of(access, "narrow", sizes)
                total = total + executed * access.executions.unforeseen * one_by_one
        return total


def weight_of(access: AccessCount, kind: str, sizes: Sizes) -> Floats:
    """Returns how many loads or stores of a kind an access is: each component of a vector by itself, if places
    are apart."""
    apart = "narrow" if access.bits < WORD_BITS else "gathered"
    stride = access.local_strides.get(0, ZERO)
    times = access.bits / WORD_BITS if kind == "unit" else 1.0 if kind == "uniform" else moved_apart(access)
    if stride is None:
        return np.asarray(times if kind == ("unit" if is_along_a_row(access) else apart) else 0.0)
    step = stride(sizes)
    if access.space == "scratch":  # what lanes have at one place of arrays of their own is put side by side
        places = {"unit": step == 0}
    elif is_out_of_sight(access):
        places = {"uniform": step == 0}
    else:
        places = {"uniform": step == 0, "unit": (step == 1) | (step == -1)}
    if kind in places:
        return np.where(places[kind], times, 0.0)
    if kind != apart:
        return np.asarray(0.0)
    return np.where(functools.reduce(operator.or_, places.values()), 0.0, times)


def moved_apart(access: AccessCount) -> float:
    """Returns the lanes that a work-item's access is, each of at least 32 bits, where places are apart."""
    return access.bits / max(8 * np.dtype(access.dtype).itemsize, min(access.bits, WORD_BITS))


def is_along_a_row(access: AccessCount) -> bool:
    """Returns True if data decide on the row of an array alone, along which a compiler sees neighbours, and emulated
    groups touched no more blocks than neighbours lie in."""
    if "hidden" in access.tags or access.touched is None:
        return False
    lanes_bytes, blocks = SUBGROUP_SIZE * access.bits // 8, dict(access.touched)
    block = min(blocks)
    return blocks[block] <= lanes_bytes / block + 1


def is_out_of_sight(access: AccessCount) -> bool:
    """Returns True if a compiler sees no neighbours even where they are, at a stride that is known."""
    return "hidden" in access.tags or has_odd_pitch(access)


def has_odd_pitch(access: AccessCount) -> bool:
    """Returns True if all strides between work-items are numbers of the program, and one is no power of two."""
    strides = [
        constant(stride) for stride in (*access.local_strides.values(), *access.group_strides.values()) if stride
    ]
    return None not in strides and any(not math.log2(abs(step)).is_integer() for step in strides if step)


def constant(count: QuasiPolynomial) -> float | None:
    """Returns the value of a count in which no size stands."""
    values = set()
    for piece in count.pieces:
        if any(term.sizes or term.floors for term in piece.terms):
            return None
        values.add(sum(term.coefficient for term in piece.terms) / piece.denominator)
    return values.pop() if len(values) == 1 else None if values else 0.0


class LanesFamily(FeatureFamily):
    prefix = ("mem", "lanes")
    summary = "accesses of vectors of work-items, by whether their lanes touch one place, neighbours, or places apart"
    examples = (
        "f_mem_lanes_global_load_unit_width:16",
        "f_mem_lanes_local_store_gathered_width:16",
        "f_mem_lanes_global_load_narrow_width:16",
        "f_mem_lanes_global_load_uniform_width:16",
        "f_mem_lanes_branched_width:16",
    )

    def candidates(self, counts: KernelCounts) -> Iterable[str]:
        """Yields none: how wide vectors are is known of a device only."""
        return ()

    def parse(self, name: FeatureName, words: tuple[Word, ...]) -> LanesFeature | BranchedFeature:
        found = by_role(name, words, self.role)
        if BRANCHED in found:
            return BranchedFeature(name, width_in(self, name, found))
        if missing := [role for role in ("space", "direction", "kind") if role not in found]:
            raise FeatureError(f"feature {name.text!r} says no {missing[0]}; write {self.examples[0]}")
        width = width_in(self, name, found)
        return LanesFeature(name, found["space"], found["direction"], found["kind"], width)

    def role(self, name: FeatureName, word: Word) -> tuple[str, str]:
        for role, known in (("space", SPACES), ("direction", DIRECTIONS), ("kind", KINDS), (BRANCHED, (BRANCHED,))):
            if word.condition is None and word.key in known:
                return role, word.key
        return width_role(name, word, (*SPACES, *DIRECTIONS, *KINDS, BRANCHED, "width:16"))


def width_role(name: FeatureName, word: Word, known: tuple[str, ...]) -> tuple[str, str]:
    """Reads ``width:16``; anything else is unknown."""
    condition = word.condition or ""
    if word.key == "width" and condition.isdecimal() and 0 < int(condition) <= 1024:
        return "width", condition
    raise unknown_word(name, word, known)


def width_in(family: FeatureFamily, name: FeatureName, found: dict[str, str]) -> int:
    if "width" not in found:
        raise FeatureError(f"feature {name.text!r} says not how wide a vector is; write {family.examples[0]}")
    return int(found["width"])
