"""The types of OpenCL C have these names in CUDA C++, and vectors are moved in these pieces."""

from __future__ import annotations

from collections.abc import Iterator
from math import isinf, isnan
from typing import Any

from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c.types import Image, Pointer, Sampler, Scalar, Type, Vector, element_of

NAMES = {
    "bool": "bool",
    "int8": "signed char",
    "uint8": "unsigned char",
    "int16": "short",
    "uint16": "unsigned short",
    "int32": "int",
    "uint32": "unsigned int",
    "int64": "long long",
    "uint64": "unsigned long long",
    "float16": "__half",
    "float32": "float",
    "float64": "double",
}
_VECTORS = {
    "int8": "char",
    "uint8": "uchar",
    "int16": "short",
    "uint16": "ushort",
    "int32": "int",
    "uint32": "uint",
    "int64": "longlong",
    "uint64": "ulonglong",
    "float16": "ushort",
    "float32": "float",
    "float64": "double",
}
_WIDEST = 16
"""NVIDIA's GPUs move up to so many bytes at once, in up to `_MOST` numbers."""
_MOST = 4


def name_of(type_: Type) -> str:
    """Returns the name of a scalar, of what a vector consists of, of an address, or of what stands for an image."""
    if isinstance(type_, Image | Sampler):
        return "unsigned long long"
    return "char *" if isinstance(type_, Pointer) else NAMES[element_of(type_).dtype]


def pieces(access: low.Access, is_stored: bool = False) -> Iterator[tuple[int, str, int]]:
    """Yields the accesses that an access is made of: the first number's place, the type, and how many numbers.

    NVIDIA's OpenCL loads an aligned vector of three with the number behind it, and stores two numbers and the third.
    """
    type_ = access.type
    if not isinstance(type_, Vector):
        yield 0, name_of(type_), 1
        return
    element = type_.element
    is_padded = access.bytes == type_.size and type_.width == 3
    count = 4 if is_padded and not is_stored else type_.width
    most = min(_WIDEST // element.size, _MOST) if access.alignment >= type_.alignment else 1
    place = 0
    while place < count:
        width = min(most, count - place)
        width = 2 if width == 3 else width
        yield place, f"{_VECTORS[element.dtype]}{width}" if width > 1 else NAMES[element.dtype], width
        place += width


def number_at(access: low.Access, name: str, address: str) -> str:
    """Returns what stands for a number in memory, or for several that are moved at once, to be read or given a value.

    Numbers within packed structs need not lie at multiples of their size: compilers move them in smaller parts.
    """
    size = access.type.size if isinstance(access.type, Pointer) else element_of(access.type).size
    if access.alignment < min(size, access.bytes):
        return f"((cl_packed<{name}, {access.alignment}> *)({address}))->number"
    return f"*({name} *)({address})"


def literal(type_: Scalar, value: Any) -> str:
    """Returns a number as C++ writes it."""
    name = NAMES[type_.dtype]
    if type_.is_float:
        number = float(value)
        if isnan(number) or isinf(number):
            bits = "0x7fffffff" if isnan(number) else "0x7f800000" if number > 0 else "0xff800000"
            return f"({name})__int_as_float({bits})"
        return f"({name}){number.hex()}"
    whole = int(value)
    if type_.dtype == "bool":
        return "true" if whole else "false"
    if whole == -(2**63):
        return "(long long)0x8000000000000000ull"
    return f"({name}){whole}{'ull' if whole >= 2**63 else 'll'}"
