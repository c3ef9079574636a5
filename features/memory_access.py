"""Memory accesses by space, type, direction, pattern, variable and tag: ``f_mem_access_global_float32_load…``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from perfmodel.features.operations import DTYPES

from perfmodel.counting.counts import AccessCount, KernelCounts, Stride
from perfmodel.errors import FeatureError
from perfmodel.feature_name import Condition, FeatureName, Word, parse_axes, parse_condition
from perfmodel.vocabulary import CountedFeature, FeatureFamily, unknown_word

SPACES = ("global", "local")
DIRECTIONS = ("load", "store")
CONDITIONS = ("lstrides", "gstrides", "afr", "ratio", "tag", "var")


@dataclass(frozen=True)
class AccessPattern:
    """What a name asks of an access; None and empty mean anything."""

    space: str | None
    dtype: str | None
    direction: str | None
    variable: str | None
    tag: str | None
    local_strides: Mapping[int, Condition]
    group_strides: Mapping[int, Condition]
    ratio: Condition | None

    def admits(self, access: AccessCount) -> bool:
        """All that does not depend on the sizes."""
        return (
            self.space in (None, access.space)
            and self.dtype in (None, access.dtype)
            and self.direction in (None, access.direction)
            and self.variable in (None, access.variable)
            and (self.tag is None or self.tag in access.tags)
        )


class AccessFeature(CountedFeature):
    """Executions, by work-items, of the accesses that a name selects.

    Strides are in elements of the flattened array, along local and group axes (2018 slides, "Counting statistics");
    an axis that the access does not use has stride 0. The access-to-footprint ratio is accesses divided by distinct
    elements accessed, for each access by itself.
    """

    unit = "access"

    def __init__(self, name: FeatureName, pattern: AccessPattern) -> None:
        super().__init__(name)
        self.pattern = pattern

    def values(self, counts: KernelCounts, sizes: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
        total = np.asarray(0.0)
        for access in counts.accesses:
            if self.pattern.admits(access):
                executions = access.executions(sizes)
                total = total + np.where(self.matches(access, executions, sizes), executions, 0.0)
        return total

    def matches(
        self, access: AccessCount, executions: NDArray[np.float64], sizes: Mapping[str, NDArray[Any]]
    ) -> NDArray[np.bool_]:
        result = np.asarray(True)
        for conditions, strides in (
            (self.pattern.local_strides, access.local_strides),
            (self.pattern.group_strides, access.group_strides),
        ):
            for axis, condition in conditions.items():
                result = result & condition.matches(self.stride(access, strides, axis, sizes))
        if self.pattern.ratio is not None:
            if access.footprint is None:
                raise self.undefined(access, "a footprint that can be counted")
            footprint = access.footprint(sizes)
            ratio = np.divide(executions, footprint, out=np.zeros(np.shape(executions)), where=footprint > 0)
            result = result & self.pattern.ratio.matches(ratio)
        return result

    def stride(
        self, access: AccessCount, strides: Mapping[int, Stride], axis: int, sizes: Mapping[str, NDArray[Any]]
    ) -> Any:
        if axis not in strides:
            return 0
        stride = strides[axis]
        if stride is None:
            raise self.undefined(access, f"a constant stride along axis {axis}")
        return stride(sizes)

    def undefined(self, access: AccessCount, what: str) -> FeatureError:
        return FeatureError(
            f"feature {self.name!r} is not defined for the {access.direction} {access.text!r}, which has not got "
            f"{what}; exclude it by var:… or tag:…"
        )


class AccessFamily(FeatureFamily):
    prefix = ("mem", "access")
    summary = "memory accesses, by space, type, direction, strides, access-to-footprint ratio, variable and tag"
    examples = (
        "f_mem_access_local_float32",
        "f_mem_access_global_float32_load_lstrides:{0:1;1:>15}_gstrides:{0:16}_afr:>1",
        "f_mem_access_tag:a_global_float32_load",
        "f_mem_access_global_var:{my_array}_store",
    )

    def parse(self, name: FeatureName, words: tuple[Word, ...]) -> AccessFeature:
        found: dict[str, Any] = {}
        for word in words:
            key, value = self.read(name, word)
            if key in found:
                raise FeatureError(f"feature {name.text!r} gives its {key.replace('_', ' ')} twice", word.offset)
            found[key] = value
        blank = dict.fromkeys(("space", "dtype", "direction", "variable", "tag", "ratio"))
        return AccessFeature(name, AccessPattern(**{"local_strides": {}, "group_strides": {}, **blank, **found}))

    def read(self, name: FeatureName, word: Word) -> tuple[str, Any]:
        if word.condition is None:
            for key, known in (("space", SPACES), ("dtype", DTYPES), ("direction", DIRECTIONS)):
                if word.key in known:
                    return key, word.key
        elif word.key in ("lstrides", "gstrides"):
            return ("local_strides" if word.key == "lstrides" else "group_strides"), parse_axes(word)
        elif word.key in ("afr", "ratio"):
            return "ratio", parse_condition(word.condition, word)
        elif word.key in ("tag", "var"):
            return ("tag" if word.key == "tag" else "variable"), word.condition
        raise unknown_word(name, word, (*SPACES, *DTYPES, *DIRECTIONS, *CONDITIONS))
