"""These built-in functions are no functions of values: sizes, memory, conversions, synchronization."""

from __future__ import annotations

import re
from dataclasses import dataclass

WORK_ITEM = frozenset(
    f"get_{name}"
    for name in (
        *("work_dim", "global_size", "global_id", "local_size", "local_id", "num_groups", "group_id"),
        *("global_offset", "enqueued_local_size", "global_linear_id", "local_linear_id"),
        *("sub_group_size", "max_sub_group_size", "num_sub_groups", "enqueued_num_sub_groups"),
        *("sub_group_id", "sub_group_local_id"),
    )
)

FENCES = {
    "barrier": True,
    "work_group_barrier": True,
    "mem_fence": False,
    "read_mem_fence": False,
    "write_mem_fence": False,
    "atomic_work_item_fence": False,
}
"""The value says whether work-items wait there for each other."""

COPIES = frozenset(("async_work_group_copy", "async_work_group_strided_copy"))

ATOMICS = {
    **dict.fromkeys(("add", "sub", "xchg", "min", "max", "and", "or", "xor", "store"), 1),
    **dict.fromkeys(("inc", "dec", "load"), 0),
    "cmpxchg": 2,
}
"""The operations of atomics, with the number of their operands."""

_ATOMICS_OF_2_0 = {
    **{f"fetch_{name}": name for name in ("add", "sub", "min", "max", "and", "or", "xor")},
    "exchange": "xchg",
    "load": "load",
    "store": "store",
    "init": "store",
}


def atomic_operation(name: str) -> str:
    """Returns the operation of ``atomic_add``, ``atom_add``, ``atomic_fetch_add`` or ``atomic_fetch_add_explicit``."""
    operation = name.removeprefix("atomic_").removeprefix("atom_").removesuffix("_explicit")
    return _ATOMICS_OF_2_0.get(operation, operation)


ROUGH = (
    *("cos", "divide", "exp", "exp2", "exp10", "log", "log2", "log10", "powr", "recip", "rsqrt", "sin", "sqrt", "tan"),
)
"""OpenCL C also has these, less precisely, with ``half_`` and ``native_``; here they are as precise as others."""

BY_POINTER = frozenset(("fract", "modf", "sincos", "frexp", "remquo", "lgamma_r"))
"""These functions have a second result, stored where their last argument points to."""

_JOINING = r"(?P<kind>reduce|scan_inclusive|scan_exclusive)_(?P<by>(?:logical_)?(?:and|or|xor)|add|mul|min|max)"
_COLLECTIVE = re.compile(
    rf"""(?P<scope>work|sub)_group_(?P<name>
        (?:non_uniform_|clustered_)?{_JOINING} | (?:non_uniform_)?(?:all|any) | non_uniform_all_equal | elect
        | (?:non_uniform_)?broadcast | broadcast_first | (?:clustered_)?rotate | shuffle(?:_xor|_up|_down)?
        | ballot(?:_inclusive_scan|_exclusive_scan|_bit_count|_bit_extract|_find_lsb|_find_msb)? | inverse_ballot
    ) | get_sub_group_(?P<mask>eq|ge|gt|le|lt)_mask | intel_sub_group_(?P<intel>shuffle(?:_xor|_up|_down)?)""",
    re.VERBOSE,
)
_BLOCK_ACCESS = re.compile(r"intel_sub_group_block_(read|write)(?:_(?:uc|us|ui|ul))?(2|4|8|16)?")
_KINDS = {"scan_inclusive": "scan", "scan_exclusive": "scan"}


@dataclass(frozen=True)
class CollectiveFunction:
    """A collective function lets work-items of a group or sub-group exchange values.

    Attributes:
        operation: what it does: ``reduce``, ``shuffle_up`` …; `by`: by which operation values are joined.
        kind: ``reduce``, ``scan``, ``broadcast``, ``shuffle`` or ``vote``.
    """

    is_of_group: bool
    operation: str
    by: str
    kind: str

    @classmethod
    def of(cls, name: str) -> CollectiveFunction | None:
        found = _COLLECTIVE.fullmatch(name)
        if not found:
            return None
        if found["mask"]:
            return cls(is_of_group=False, operation=f"mask_{found['mask']}", by="", kind="vote")
        if found["intel"]:
            return cls(is_of_group=False, operation=f"intel_{found['intel']}", by="", kind="shuffle")
        operation = found["name"].removeprefix("non_uniform_")
        if found["kind"]:
            operation = operation.removesuffix(f"_{found['by']}")
            kind = _KINDS.get(found["kind"], found["kind"])
        elif "broadcast" in operation:
            kind = "broadcast"
        else:
            kind = "shuffle" if "shuffle" in operation or "rotate" in operation else "vote"
        return cls(found["scope"] == "work", operation, found["by"] or "", kind)


def block_access(name: str) -> tuple[bool, int] | None:
    """Returns whether ``intel_sub_group_block_read4`` or its like stores, and how many numbers it moves."""
    found = _BLOCK_ACCESS.fullmatch(name)
    return (found[1] == "write", int(found[2] or 1)) if found else None


_CONVERSION = re.compile(r"convert_[a-z]+\d*(_sat)?(?:_(rt[eznp]))?")
_VECTOR_ACCESS = re.compile(r"v(load|store)(a?)(_half)?(\d*)(?:_(rt[eznp]))?")


@dataclass(frozen=True)
class Conversion:
    saturate: bool
    rounding: str

    @classmethod
    def of(cls, name: str) -> Conversion | None:
        found = _CONVERSION.fullmatch(name)
        return cls(bool(found[1]), found[2] or "") if found else None


@dataclass(frozen=True)
class VectorAccess:
    """An access to a vector is ``vload4``, ``vstore_half2_rtz``, ``vloada_half3``.

    Attributes:
        is_aligned: vectors lie at multiples of their size; three numbers then take the room of four.
    """

    is_half: bool
    is_aligned: bool
    width: int
    rounding: str

    @classmethod
    def of(cls, name: str) -> VectorAccess | None:
        found = _VECTOR_ACCESS.fullmatch(name)
        if not found:
            return None
        _, aligned, half, width, rounding = found.groups()
        return cls(bool(half), bool(aligned), int(width or 1), rounding or "")
