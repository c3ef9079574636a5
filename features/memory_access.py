"""Memory accesses by space, type, direction, pattern, variable and tag: ``f_mem_access_global_float32_load…``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.errors import FeatureError, nearest
from perfmodel.counting.counts import ACCESS_CLASSES, AccessCount, KernelCounts, Stride
from perfmodel.counting.evaluation import quotient
from perfmodel.counting.quasipolynomial import QuasiPolynomial
from perfmodel.features.operations import DTYPES
from perfmodel.vocabulary.feature_name import Condition, FeatureName, Word, parse_axes, parse_condition
from perfmodel.vocabulary.granularity import WORKITEM, Granularity, parse_granularity
from perfmodel.vocabulary.named_features import CountedFeature, FeatureFamily, by_role, unknown_word
from perfmodel.vocabulary.stride_fraction import StrideFraction, parse_stride_fraction

SPACES = ("global", "local", "private", "scratch")
DIRECTIONS = ("load", "store", "atomic")
WIDTHS = ("8", "16", "32", "64", "128", "256", "512")
STRIDE_CLASSES = ("<0", "0", "1", "2..8", ">8")
RATIO_CLASSES = ("<=1", ">1")
FRACTION_CLASSES = (
    *("0", "1", "{1/2}", "{2/2}", "{1/3}", "{2/3}", "{3/3}", "{1/4}", "{2/4}", "{3/4}", "{4/4}"),
    *("{1/>4}", "{2/>4}", "{3/>4}", "{4/>4}"),
)
CONDITIONS = ("lstrides", "gstrides", "loopstride", "afr", "ratio", "asf", "class", "bits", "tag", "var", "granularity")

Sizes = Mapping[str, NDArray[Any]]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class AccessPattern:
    """Holds what a name asks of an access; None and empty mean anything, and no space means global and local memory."""

    space: str | None = None
    dtype: str | None = None
    bits: int | None = None
    direction: str | None = None
    variable: str | None = None
    tag: str | None = None
    access_class: str | None = None
    local_strides: Mapping[int, Condition] | None = None
    group_strides: Mapping[int, Condition] | None = None
    loop_stride: Condition | None = None
    ratio: Condition | None = None
    fraction: StrideFraction | None = None
    granularity: Granularity = WORKITEM

    def admits(self, access: AccessCount) -> bool:
        """Returns True if an access fulfils all conditions that do not depend on the sizes."""
        spaces = ("global", "local") if self.space is None else (self.space,)
        return (
            access.space in spaces
            and self.dtype in (None, access.dtype)
            and self.bits in (None, access.bits)
            and self.direction in (None, access.direction)
            and self.variable in (None, access.variable)
            and self.access_class in (None, access.pattern)
            and (self.tag is None or self.tag in access.tags)
        )


class _Search:
    """Finds the sizes at which one access fulfils a pattern's conditions."""

    def __init__(
        self, name: str, pattern: AccessPattern, counts: KernelCounts, access: AccessCount, sizes: Sizes
    ) -> None:
        self.name, self.pattern, self.counts, self.access, self.sizes = name, pattern, counts, access, sizes
        self.result = EVERYWHERE
        self.unknown: list[str] = []

    def matches(self, executions: Floats) -> NDArray[np.bool_]:
        """Returns a mask of the sizes at which all conditions hold; what an access lacks is an error only where the
        others hold."""
        access, pattern = self.access, self.pattern
        for conditions, strides in (
            (pattern.local_strides, access.local_strides),
            (pattern.group_strides, access.group_strides),
        ):
            for axis, condition in (conditions or {}).items():
                self.require(strides.get(axis, ZERO), f"a constant stride along axis {axis}", condition.matches)
        if pattern.loop_stride is not None:
            innermost = [ZERO, *access.loop_strides.values()][-1]
            self.require(innermost, "a constant stride along its loop", pattern.loop_stride.matches)
        if pattern.ratio is not None:
            once = access.executions.workitem(self.sizes)
            ratio = pattern.ratio
            self.require(
                access.footprint, "a footprint that can be counted", lambda f: ratio.matches(quotient(once, f, 0.0))
            )
        if pattern.fraction is not None:
            self.require_fraction(pattern.fraction)
        if self.unknown and np.any(self.result & (executions > 0)):
            raise FeatureError(
                f"feature {self.name!r} is not defined for the {access.direction} {access.text!r}, which has not got "
                f"{self.unknown[0]}; exclude it by var:… or tag:…"
            )
        return self.result

    def require(self, value: Stride, what: str, test: Callable[[Floats], NDArray[np.bool_]]) -> None:
        if value is None:
            self.unknown.append(what)
        else:
            self.result = self.result & test(value(self.sizes))

    def require_fraction(self, fraction: StrideFraction) -> None:
        stride = self.access.local_strides.get(0, ZERO)
        if stride is None:
            self.unknown.append("a constant stride along axis 0")
            return
        steps = np.abs(stride(self.sizes))
        footprint = self.counts.footprint_of(self.access.variable, "any")
        if footprint is not None and footprint.elements is not None and footprint.filled is not None:
            used = quotient(footprint.elements(self.sizes), footprint.filled(self.sizes), 0.0)
            self.result = self.result & fraction.matches(steps, used)
        else:
            if np.any(steps > 1):
                self.unknown.append("a footprint that can be counted")
            self.result = self.result & fraction.matches(steps, np.asarray(1.0))


ZERO = QuasiPolynomial((), "0")
EVERYWHERE = np.asarray(True)


class AccessFeature(CountedFeature):
    """Executions of the accesses that a name selects, by work-items unless it asks for another granularity.

    Strides are in elements of the flattened array, along local and group axes and the innermost sequential loop (2018
    slides, "Counting statistics"); an axis that the access does not use has stride 0. The access-to-footprint ratio is
    accesses by work-items divided by distinct elements accessed, for each access by itself. The amortized stride
    fraction (2016, section 2.1) joins the stride from one work-item to the next along axis 0 with the part of the
    array's filled footprint that is used by any access.
    """

    unit = "access"

    def __init__(self, name: FeatureName, pattern: AccessPattern) -> None:
        super().__init__(name)
        self.pattern = pattern
        self.subgroup_size = pattern.granularity.subgroup_size

    def values(self, counts: KernelCounts, sizes: Sizes) -> Floats:
        return self.pattern.granularity.largest(
            lambda granularity: self.total(replace(self.pattern, granularity=granularity), counts, sizes)
        )

    def total(self, pattern: AccessPattern, counts: KernelCounts, sizes: Sizes) -> Floats:
        return sum((found for _, found in self.each(pattern, counts, sizes)), np.asarray(0.0))

    def each(self, pattern: AccessPattern, counts: KernelCounts, sizes: Sizes) -> Iterator[tuple[AccessCount, Floats]]:
        """Iterates over the accesses that a name may select, each with what it counts."""
        for access in counts.accesses:
            if pattern.admits(access):
                executions = pattern.granularity.executions(access.executions, self.name)(sizes)
                selected = _Search(self.name, pattern, counts, access, sizes).matches(executions)
                found = self.weight(counts, access, sizes) * executions
                yield access, found if selected is EVERYWHERE else np.where(selected, found, 0.0)

    def weight(self, counts: KernelCounts, access: AccessCount, sizes: Sizes) -> Floats | int:
        """Returns how much one execution of the access counts."""
        return 1


class BytesFeature(AccessFeature):
    """Bytes moved by the accesses that a name selects, each execution counted."""

    unit = "byte"

    def weight(self, counts: KernelCounts, access: AccessCount, sizes: Sizes) -> int:
        return access.bits // 8


class MinimumFeature(AccessFeature):
    """The smaller of loads and stores among the accesses that a name selects (2016, section 2.1)."""

    def values(self, counts: KernelCounts, sizes: Sizes) -> Floats:
        loads, stores = (self.total(replace(self.pattern, direction=d), counts, sizes) for d in ("load", "store"))
        return np.minimum(loads, stores)


def _offered_patterns() -> Iterator[str]:
    yield from (f"_lstrides:{{0:{stride}}}" for stride in STRIDE_CLASSES)
    yield from (f"_afr:{ratio}" for ratio in RATIO_CLASSES)
    yield from (f"_lstrides:{{0:{stride}}}_afr:{ratio}" for stride in STRIDE_CLASSES for ratio in RATIO_CLASSES)
    yield from (f"_asf:{fraction}" for fraction in FRACTION_CLASSES)


OFFERED_PATTERNS = tuple(_offered_patterns())
"""Conditions that divide global accesses, from coarse to fine; a model search tries them."""


class AccessFamily(FeatureFamily):
    prefix: tuple[str, ...] = ("mem", "access")
    summary = "memory accesses, by space, type, direction, strides, ratios, variable and tag"
    examples: tuple[str, ...] = (
        "f_mem_access_local_float32",
        "f_mem_access_global_float32_load_lstrides:{0:1;1:>15}_gstrides:{0:16}_afr:>1",
        "f_mem_access_global_bits:64_load_asf:{2/3}",
        "f_mem_access_tag:a_global_float32_load_granularity:subgroup",
        "f_mem_access_global_var:{my_array}_store",
        "f_mem_access_global_load_class:interval",
    )
    feature: type[AccessFeature] = AccessFeature
    directions: tuple[str, ...] = DIRECTIONS
    offered_spaces: tuple[str, ...] = ("global", "local")
    is_offered_by_type = True

    def candidates(self, counts: KernelCounts) -> Iterable[str]:
        """Yields names by space, type and direction; those of global accesses also by their patterns."""
        for access in counts.accesses:
            if access.space not in self.offered_spaces:
                continue
            starts = [f"{self.name}_{access.space}"]
            if self.is_offered_by_type:
                starts.append(f"{starts[0]}_{access.dtype}")
            if self.directions:
                starts += [f"{start}_{access.direction}" for start in starts]
            yield from starts
            if access.space == "global":
                yield from (start + pattern for start in starts for pattern in OFFERED_PATTERNS)

    def parse(self, name: FeatureName, words: tuple[Word, ...]) -> AccessFeature:
        return self.feature(name, AccessPattern(**by_role(name, words, self.read)))

    def read(self, name: FeatureName, word: Word) -> tuple[str, Any]:
        if word.condition is None:
            for key, known in (("space", SPACES), ("dtype", DTYPES), ("direction", self.directions)):
                if word.key in known:
                    return key, word.key
        elif word.key in READERS:
            key, read = READERS[word.key]
            return key, read(word)
        elif word.key in ("tag", "var") and word.condition.strip():
            return ("tag" if word.key == "tag" else "variable"), word.condition.strip()
        raise unknown_word(name, word, (*SPACES, *DTYPES, *self.directions, *CONDITIONS))


def _bits(word: Word) -> int:
    if word.condition not in WIDTHS:
        raise FeatureError(
            f"bits:{word.condition} is no width of an access; write one of {', '.join(WIDTHS)}", word.offset
        )
    return int(word.condition)


def _class(word: Word) -> str:
    condition = (word.condition or "").strip()
    if condition not in ACCESS_CLASSES:
        raise FeatureError(
            f"class:{word.condition} is no class of accesses{nearest(condition, ACCESS_CLASSES)} "
            f"(known: {', '.join(ACCESS_CLASSES)})",
            word.offset,
        )
    return condition


READERS: dict[str, tuple[str, Callable[[Word], Any]]] = {
    "lstrides": ("local_strides", parse_axes),
    "gstrides": ("group_strides", parse_axes),
    "loopstride": ("loop_stride", lambda word: parse_condition(word.condition or "", word)),
    "afr": ("ratio", lambda word: parse_condition(word.condition or "", word)),
    "ratio": ("ratio", lambda word: parse_condition(word.condition or "", word)),
    "asf": ("fraction", parse_stride_fraction),
    "class": ("access_class", _class),
    "bits": ("bits", _bits),
    "granularity": ("granularity", parse_granularity),
}


class BytesFamily(AccessFamily):
    prefix = ("mem", "bytes")
    summary = "bytes moved by memory accesses; the words of f_mem_access"
    examples = ("f_mem_bytes_global_load", "f_mem_bytes_global_float32_store_lstrides:{0:1}")
    feature = BytesFeature
    is_offered_by_type = False


class MinimumFamily(AccessFamily):
    prefix = ("mem", "min")
    summary = "the smaller of loads and stores; the words of f_mem_access but a direction (2016, section 2.1)"
    examples = ("f_mem_min_global_float32", "f_mem_min_global_bits:32_asf:1")
    feature = MinimumFeature
    directions = ()
    offered_spaces = ("global",)
