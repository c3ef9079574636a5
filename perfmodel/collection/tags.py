"""Tags: the ways in which the kernels of a family vary, and what a filter may ask for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perfmodel.basics.errors import TagError, nearest
from perfmodel.collection.size_series import parse_range, parse_size

# Sets of work-groups (2016, section 4.1), for `lsizes`.
WORK_GROUP_SETS = {
    "1-D_Small": ((192,), (224,), (256,)),
    "1-D_Med": ((128,), (256,), (384,)),
    "1-D_Large": ((256,), (384,), (512,)),
    "2-D_Small": ((16, 12), (16, 14), (16, 16)),
    "2-D_Med": ((16, 12), (16, 16), (32, 16)),
    "2-D_Large": ((16, 16), (24, 16), (32, 16)),
}
MOST_OF_RANGE = 100_000
"""A filter may ask for so many numbers by one range."""

LSIZES = "lsizes"
"""The tag for whole work-groups: ``lsizes:16x12,32x16`` or ``lsizes:2-D_Med``, instead of ``lsize_0`` …"""


@dataclass(frozen=True)
class Tag:
    """One way in which a generator's kernels vary.

    Attributes:
        default: the values taken where a filter doesn't mention the tag.
        values: all values that ``name:*`` selects.
        is_open: whether a filter may ask for positive whole numbers beyond `values`.
        is_size: whether the tag is a size of the kernel, rather than a variant of its code.
        pattern: a regular expression of what else may be asked for where the tag is open, `others` in words.
        step, cases: of the series of powers of two that a size is measured at, see `SizeSeries`.
    """

    name: str
    summary: str
    default: tuple[str, ...]
    values: tuple[str, ...]
    is_open: bool = False
    is_size: bool = False
    step: int = 1
    cases: int = 4
    pattern: str = ""
    others: str = "other whole numbers"

    def select(self, asked: str | None) -> tuple[str, ...]:
        """Returns the values that a filter's ``a,b``, ``first..last`` or ``*`` selects.

        Raises:
            TagError: for a value that the tag does not have.
        """
        if asked is None:
            return self.default
        if asked == "*":
            return self.values
        parts = (value.strip() for value in asked.split(","))
        chosen = tuple(dict.fromkeys(value for part in parts for value in self._spread(part)))
        for value in chosen:
            if value not in self.values and not (self.is_open and self._opens(value)):
                others = f", 2^10, 2^(7+t), auto and {self.others}" if self.is_size else f" and {self.others}"
                raise TagError(
                    f"tag {self.name!r} has no value {value[:40]!r}{nearest(value, self.values)} (it has "
                    f"{', '.join(self.values)}{others if self.is_open else ''})"
                )
        return tuple(str(int(v)) if v.isdecimal() else v for v in chosen)

    def _spread(self, part: str) -> Sequence[str]:
        """Returns the numbers of a range where the tag is open, else the part itself."""
        found = parse_range(part) if self.is_open else None
        if found is None:
            return [part]
        if not 0 < len(found) <= MOST_OF_RANGE:
            raise TagError(
                f"range {part!r} of tag {self.name!r} has {len(found) or 'no'} numbers; give 1 to {MOST_OF_RANGE}, "
                "the smaller end first"
            )
        return [str(value) for value in found]

    def _opens(self, value: str) -> bool:
        if self.pattern and re.fullmatch(self.pattern, value):
            return True
        found = parse_size(value, self.step, self.cases)
        return found is not None and (self.is_size or value.isdecimal())


def choice(name: str, summary: str, *values: str, default: str | None = None) -> Tag:
    """Returns a tag with a fixed list of values; the first is the default unless said otherwise."""
    return Tag(name=name, summary=summary, default=(default or values[0],), values=values)


def number(name: str, summary: str, *values: int, default: int | None = None) -> Tag:
    """Returns a tag whose values are whole numbers; a filter may ask for others than those listed."""
    texts = tuple(str(v) for v in values)
    return Tag(
        name=name,
        summary=summary,
        default=(str(default if default is not None else values[0]),),
        values=texts,
        is_open=True,
    )


def size(name: str, summary: str, *values: int, step: int = 1, cases: int = 4) -> Tag:
    """Returns a size of the kernel; all listed values are taken unless a filter asks for others.

    Args:
        step, cases: ``name:auto`` takes `cases` powers of two, each ``2**step`` times the one before.
    """
    texts = tuple(str(v) for v in values)
    return Tag(
        name=name, summary=summary, default=texts, values=texts, is_open=True, is_size=True, step=step, cases=cases
    )


def work_group(*sides: int) -> tuple[Tag, ...]:
    """Returns the tags ``lsize_0`` … of a work-group, with default sides."""
    listed = (64, 128, 256, 512) if len(sides) == 1 else (8, 16, 32)
    return tuple(
        number(f"lsize_{axis}", f"work-items of a work-group along axis {axis}", *listed, default=side)
        for axis, side in enumerate(sides)
    )


DTYPE = choice("dtype", "element type", "float32", "float64", "float16")
GROUPS_FIT = choice(
    "groups_fit", "sizes are multiples of the work-group; else the kernel has remainders", "True", "False"
)


def assumed_multiples(variant: Mapping[str, str], size: str, *sides: int) -> str:
    """Returns, to be put behind other assumptions of a Loopy program, that a size is a multiple of a work-group's
    sides; nothing for variants with remainders, which `GROUPS_FIT` asks for."""
    return "".join(f" and {size} mod {side} = 0" for side in sides) if variant["groups_fit"] == "True" else ""


INDEX_TYPES = {"wide": "size_t", "signed": "int", "unsigned": "uint"}
"""Types of OpenCL C by the values of `INDEX`."""
INDEX = choice("index", "type of the indices: size_t, int or uint", *INDEX_TYPES)

WORK_REMOVED = choice("work_removed", "each kernel's distinct global accesses by themselves", "False", "True")
"""The tag that every family has beside its own: see `Kernel.with_each_access`."""


TRANSFERS = choice(
    "transfers", "the copies of inputs to the device and outputs from it are part of the launch", "False", "True"
)
"""The tag for kernels with their transfers, which every family has, too: see `Kernel.with_transfers`."""

COMMON = (WORK_REMOVED, TRANSFERS)
RESERVED = (*(tag.name for tag in COMMON), LSIZES, "generator", "kept")
"""Tags that kernels and filters have beside a family's own."""


def parted(word: str) -> tuple[str, str, str]:
    """Returns the name, the mark and the values of ``n:512`` or ``n=512``; a name alone has neither."""
    found = re.fullmatch(r"([^:=]*)([:=])(.*)", word.strip(), re.DOTALL)
    return (found[1].strip(), found[2], found[3]) if found else (word.strip(), "", "")


def work_groups(asked: str, rank: int) -> list[tuple[int, ...]]:
    """Returns the work-groups that ``lsizes`` names, each of them once; sets and shapes of another rank are an
    error."""
    found: list[tuple[int, ...]] = []
    for text in asked.split(","):
        name = text.strip().replace(" ", "_")
        sets = {key.lower(): groups for key, groups in WORK_GROUP_SETS.items()}
        if name.lower() in sets:
            groups: Sequence[tuple[int, ...]] = sets[name.lower()]
        elif name and all(side.isdecimal() and 0 < int(side) < 2**31 for side in name.split("x")):
            groups = [tuple(int(side) for side in name.split("x"))]
        else:
            raise TagError(
                f"{LSIZES} has no value {name[:40]!r}{nearest(name, WORK_GROUP_SETS)} (it has "
                f"{', '.join(WORK_GROUP_SETS)}, and shapes like 256 or 16x12)"
            )
        for group in groups:
            if len(group) != rank:
                raise TagError(f"{LSIZES}:{name} is for work-groups of {len(group)} axes; these kernels' have {rank}")
            if group not in found:
                found.append(group)
    return found
