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
        """Where all conditions hold. What an access has not got is an error only where all others hold."""
        result = np.asarray(True)
        unknown = []
        for conditions, strides in (
            (self.pattern.local_strides, access.local_strides),
            (self.pattern.group_strides, access.group_strides),
        ):
            for axis, condition in conditions.items():
                stride: Stride = strides.get(axis, _no_stride)
                if stride is None:
                    unknown.append(f"a constant stride along axis {axis}")
                else:
                    result = result & condition.matches(stride(sizes))
        if self.pattern.ratio is not None:
            if access.footprint is None:
                unknown.append("a footprint that can be counted")
            else:
                result = result & self.pattern.ratio.matches(_quotient(executions, access.footprint(sizes)))
        if unknown and np.any(result & (executions > 0)):
            raise FeatureError(
                f"feature {self.name!r} is not defined for the {access.direction} {access.text!r}, which has not got "
                f"{unknown[0]}; exclude it by var:… or tag:…"
            )
        return result


def _no_stride(sizes: Mapping[str, NDArray[Any]]) -> int:
    return 0


def _quotient(executions: NDArray[np.float64], footprint: NDArray[np.float64]) -> NDArray[np.float64]:
    """The access-to-footprint ratio, 0 where nothing is accessed."""
    shape = np.broadcast_shapes(executions.shape, footprint.shape)
    return np.divide(executions, footprint, out=np.zeros(shape), where=footprint > 0)


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
                raise FeatureError(
                    f"feature {name.text!r} gives its {key.replace('_', ' ')} twice; leave one out", word.offset
                )
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
        elif word.key in ("tag", "var") and word.condition.strip():
            return ("tag" if word.key == "tag" else "variable"), word.condition.strip()
        raise unknown_word(name, word, (*SPACES, *DTYPES, *DIRECTIONS, *CONDITIONS))
