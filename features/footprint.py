"""Bytes of memory that a kernel touches at all: ``f_mem_footprint_global_load``."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from perfmodel.basics.errors import FeatureError
from perfmodel.counting.atomics import SECTOR
from perfmodel.counting.counts import LINE_BYTES, AccessCount, Footprint, KernelCounts
from perfmodel.counting.evaluation import quotient
from perfmodel.counting.quasipolynomial import QuasiPolynomial
from perfmodel.features.memory_access import Floats, Sizes
from perfmodel.features.operations import DTYPES
from perfmodel.features.transactions import block_bytes, bytes_touched, part_of_record
from perfmodel.vocabulary.feature_name import FeatureName, Word
from perfmodel.vocabulary.named_features import CountedFeature, FeatureFamily, by_role, unknown_word

COMMON = 0.5
"""Work-groups have an array in common of which each touches more than this part."""
ROLES = {"dtype": DTYPES, "direction": ("load", "store", "atomic"), "space": ("global",)}


class FootprintFeature(CountedFeature):
    """Distinct bytes of the global arrays that a name selects, over all accesses of its direction together.

    With ``granularity:workgroup``, what each work-group touches is summed over them: bytes that come from beyond a
    work-group's own cache. With ``block:64``, memory comes in blocks of 64 bytes, and gaps between the elements of an
    array, as strides leave them, are paid for up to that size; of accesses that are not affine,
    each counts the blocks that a work-group touches at once. With ``beyond:65536``, only arrays count of which the
    launch touches more bytes, and only accesses that by themselves reach further where that is known: less is kept by
    caches that work-groups share one after the other. With ``once``, an array of which each work-group touches more
    than half counts once, as they have it in common. With ``brought``, arrays are left out that work-items load only
    from where they themselves have stored before.
    """

    unit = "byte"

    def __init__(
        self,
        name: FeatureName,
        dtype: str | None,
        direction: str,
        variable: str | None,
        by_group: bool = False,
        block: int | None = None,
        beyond: float = 0.0,
        is_shared_once: bool = False,
        is_brought: bool = False,
    ) -> None:
        super().__init__(name)
        self.beyond, self.is_shared_once, self.is_brought = beyond, is_shared_once, is_brought
        self.dtype, self.direction, self.variable = dtype, direction, variable
        self.by_group, self.block = by_group, block

    def values(self, counts: KernelCounts, sizes: Sizes) -> Floats:
        total = np.asarray(0.0)
        for footprint in counts.footprints:
            if self.selects(footprint) and not (self.is_brought and self.is_stored_before(footprint, counts)):
                total = total + self.of(footprint, counts, sizes)
        return total

    def of(self, footprint: Footprint, counts: KernelCounts, sizes: Sizes) -> Floats:
        """Returns the bytes that one array contributes."""
        found = self.bytes_of(footprint, counts, sizes, self.by_group)
        if not self.beyond and not self.is_shared_once:
            return found
        whole = self.bytes_of(footprint, counts, sizes, False) if self.by_group else found
        if self.is_shared_once:
            found = np.where(found > COMMON * whole * counts.work_groups(sizes), whole, found)
        part = self.part_beyond(footprint, counts, sizes) if self.beyond and footprint.elements is None else 1.0
        return np.where(whole > self.beyond, found * part, 0.0)

    def part_beyond(self, footprint: Footprint, counts: KernelCounts, sizes: Sizes) -> Floats:
        """Returns which part of the bytes that groups touch of an array is touched by accesses that reach beyond."""
        total, counting = np.asarray(0.0), np.asarray(0.0)
        for access in self.own(footprint, counts):
            made = self.of_groups(access, counts, sizes, self.block or SECTOR)
            total = total + made
            counting = counting + (made if reaches_beyond(access, self.beyond) else 0.0)
        part: Floats = quotient(counting, total, 1.0)
        return part

    def bytes_of(self, footprint: Footprint, counts: KernelCounts, sizes: Sizes, by_group: bool) -> Floats:
        elements = footprint.by_group if by_group else footprint.elements
        item = np.dtype(footprint.dtype).itemsize
        if elements is not None:
            whole = footprint.array_bytes(sizes)
            groups = counts.work_groups(sizes) if by_group else 1
            touched = _at_most(elements(sizes) * item, None if whole is None else whole * groups)
            moved: Floats = touched / self.used(footprint, counts, sizes, item)
            return moved
        block = self.block
        if block is None:
            raise FeatureError(
                f"feature {self.name!r} is not defined for array {footprint.variable!r}, whose accesses are "
                "not all affine; choose others by var:…, or say block:…"
            )
        if not by_group and block not in dict(footprint.touched or ()):
            block = min(block, LINE_BYTES)  # nobody knows which larger blocks groups share that data lead to
        made: Floats = np.asarray(0.0)
        if footprint.touched is not None:
            made = bytes_touched(footprint.touched, block, counts, sizes, item)
            if not by_group:
                reaches = [np.inf if access.reach is None else access.reach for access in self.own(footprint, counts)]
                made = np.minimum(made, sum(reaches) if reaches else np.inf)
        else:
            for access in self.own(footprint, counts):
                of_groups = self.of_groups(access, counts, sizes, block)
                made = made + np.minimum(of_groups, np.inf if by_group or access.reach is None else access.reach)
        # Where an access goes to is not known, but not further than its array.
        whole = footprint.array_bytes(sizes)
        most = np.inf if whole is None else whole
        bounded: Floats = np.minimum(made, most * (counts.work_groups(sizes) if by_group else 1))
        return bounded

    def is_stored_before(self, footprint: Footprint, counts: KernelCounts) -> bool:
        """Returns whether work-items load from an array only where they themselves have stored before."""
        return all("stored" in access.tags for access in self.own(footprint, counts))

    def own(self, footprint: Footprint, counts: KernelCounts) -> list[AccessCount]:
        """Returns the accesses whose footprint it is."""
        own = counts.global_accesses.get(footprint.variable, [])
        return [access for access in own if self.direction in ("any", access.direction)]

    def of_groups(self, access: AccessCount, counts: KernelCounts, sizes: Sizes, block: int) -> Floats:
        """Returns bytes of the blocks that each work-group touches by one access, its executions apart from each
        other; fields of a record share theirs."""
        of_one = block_bytes(counts, access, sizes, block)
        moved: Floats = access.executions.workitem(sizes) * of_one * part_of_record(access, counts, block)
        return moved

    def used(self, footprint: Footprint, counts: KernelCounts, sizes: Sizes, item: int) -> Floats:
        """Returns the part of what is moved that is used: all, or by strides down to one element of a block, or one
        field of a record."""
        whole = next(f for f in counts.footprints if f.variable == footprint.variable and f.direction == "any")
        if whole.elements is None:
            whole = footprint  # what is done to the array in other directions is not as regular
        gaps = self.gaps(whole)
        if self.block is None or whole.elements is None or gaps is None:
            return np.asarray(1.0)
        most = None if whole.size is None else whole.size(sizes)
        elements, filled = (_at_most(each(sizes), most) for each in (whole.elements, gaps))
        least = min((access.bits // 8 for access in self.own(footprint, counts)), default=item)
        used: Floats = np.clip(quotient(elements, filled, 1.0), min(1.0, least / self.block), 1.0)
        return used

    def gaps(self, whole: Footprint) -> QuasiPolynomial | None:
        """Returns the elements of an array with those gaps filled that blocks of this size have, as far as known."""
        if self.block is not None and self.block >= 2 * LINE_BYTES and whole.paired is not None:
            return whole.paired
        if self.block is not None and self.block >= LINE_BYTES and whole.lined is not None:
            return whole.lined
        return whole.filled

    def selects(self, footprint: Footprint) -> bool:
        return (
            footprint.direction == self.direction
            and self.dtype in (None, footprint.dtype)
            and self.variable in (None, footprint.variable)
        )


def _at_most(touched: Floats, whole: Floats | None) -> Floats:
    """Returns what is touched of an array, which is no more than all of it: images clamp coordinates to their edges,
    and windows whose steps are sizes may overlap."""
    return touched if whole is None else np.minimum(touched, whole)


def reaches_beyond(access: AccessCount, kept: float) -> bool:
    """Returns True if an access touches more bytes over the launch, or nobody knows how many."""
    return access.reach is None or access.reach > kept


class FootprintFamily(FeatureFamily):
    prefix = ("mem", "footprint")
    summary = "distinct bytes of global memory touched, by type, direction and variable (2016, Algorithm 2)"
    examples = (
        "f_mem_footprint_global",
        "f_mem_footprint_global_float32_load_var:{my_array}",
        "f_mem_footprint_global_load_granularity:workgroup_block:32",
    )

    def candidates(self, counts: KernelCounts) -> Iterable[str]:
        for direction in ("", "_load", "_store"):
            yield f"{self.name}_global{direction}"
            yield f"{self.name}_global{direction}_block:64"
            yield f"{self.name}_global{direction}_granularity:workgroup_block:32"

    def parse(self, name: FeatureName, words: tuple[Word, ...]) -> FootprintFeature:
        found = by_role(name, words, self.role)
        if "once" in found and "granularity" not in found:
            raise FeatureError(
                f"feature {name.text!r} counts every array once anyway; leave once out, or say granularity:workgroup"
            )
        if "brought" in found and found.get("direction") != "load":
            raise FeatureError(f"feature {name.text!r} is not of loads, which alone are brought; write load, too")
        return FootprintFeature(
            name,
            found.get("dtype"),
            found.get("direction", "any"),
            found.get("variable"),
            "granularity" in found,
            int(found["block"]) if "block" in found else None,
            float(found.get("beyond", 0)),
            "once" in found,
            "brought" in found,
        )

    def role(self, name: FeatureName, word: Word) -> tuple[str, str]:
        if word.key == "var" and word.condition and word.condition.strip():
            return "variable", word.condition.strip()
        if word.key == "granularity" and word.condition == "workgroup":
            return "granularity", word.condition
        if word.key in ("once", "brought") and word.condition is None:
            return word.key, word.key
        if word.key == "block" and word.condition and re.fullmatch(r"[1-9]\d{0,3}", word.condition, re.ASCII):
            return "block", word.condition
        if word.key == "beyond" and word.condition and re.fullmatch(r"[1-9]\d{0,11}", word.condition, re.ASCII):
            return "beyond", word.condition
        for role, known in ROLES.items():
            if word.condition is None and word.key in known:
                return role, word.key
        known_words = (
            *(k for known in ROLES.values() for k in known),
            "var",
            "granularity:workgroup",
            "block:64",
            "beyond:65536",
            "once",
            "brought",
        )
        raise unknown_word(name, word, known_words)
