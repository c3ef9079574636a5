"""These built-in functions are no functions of values: sizes, memory, conversions, synchronization."""

from __future__ import annotations

import re
from dataclasses import dataclass

WORK_ITEM = frozenset(
    f"get_{name}"
    for name in (
        *("work_dim", "global_size", "global_id", "local_size", "local_id", "num_groups", "group_id"),
        *("global_offset", "enqueued_local_size", "global_linear_id", "local_linear_id"),
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
