"""Bytes of memory that a kernel touches at all: ``f_mem_footprint_global_load``."""

from __future__ import annotations

import numpy as np

from perfmodel.counting.counts import Footprint, KernelCounts
from perfmodel.errors import FeatureError
from perfmodel.feature_name import FeatureName, Word
from perfmodel.features.memory_access import Floats, Sizes
from perfmodel.features.operations import DTYPES
from perfmodel.vocabulary import CountedFeature, FeatureFamily, unknown_word

ROLES = {"dtype": DTYPES, "direction": ("load", "store"), "space": ("global",)}


class FootprintFeature(CountedFeature):
    """Distinct bytes of the global arrays that a name selects, over all accesses of its direction together."""

    unit = "byte"

    def __init__(self, name: FeatureName, dtype: str | None, direction: str, variable: str | None) -> None:
        super().__init__(name)
        self.dtype, self.direction, self.variable = dtype, direction, variable

    def values(self, counts: KernelCounts, sizes: Sizes) -> Floats:
        total = np.asarray(0.0)
        for footprint in counts.footprints:
            if self.selects(footprint):
                if footprint.elements is None:
                    raise FeatureError(
                        f"feature {self.name!r} is not defined for array {footprint.variable!r}, whose accesses are "
                        "not all affine; choose others by var:…"
                    )
                total = total + np.dtype(footprint.dtype).itemsize * footprint.elements(sizes)
        return total

    def selects(self, footprint: Footprint) -> bool:
        return (
            footprint.direction == self.direction
            and self.dtype in (None, footprint.dtype)
            and self.variable in (None, footprint.variable)
        )


class FootprintFamily(FeatureFamily):
    prefix = ("mem", "footprint")
    summary = "distinct bytes of global memory touched, by type, direction and variable (2016, Algorithm 2)"
    examples = ("f_mem_footprint_global", "f_mem_footprint_global_float32_load_var:{my_array}")

    def parse(self, name: FeatureName, words: tuple[Word, ...]) -> FootprintFeature:
        found: dict[str, str] = {}
        for word in words:
            role, value = self.role(name, word)
            if role in found:
                raise FeatureError(f"feature {name.text!r} gives its {role} twice; leave one out", word.offset)
            found[role] = value
        return FootprintFeature(name, found.get("dtype"), found.get("direction", "any"), found.get("variable"))

    def role(self, name: FeatureName, word: Word) -> tuple[str, str]:
        if word.key == "var" and word.condition and word.condition.strip():
            return "variable", word.condition.strip()
        for role, known in ROLES.items():
            if word.condition is None and word.key in known:
                return role, word.key
        raise unknown_word(name, word, (*(k for known in ROLES.values() for k in known), "var"))
