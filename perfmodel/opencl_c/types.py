"""The types of OpenCL C (OpenCL C 1.2, section 6.1) have the sizes that all devices give them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

POINTER_BYTES = 8
"""Every device that perfmodel meets has addresses, and so size_t, of 64 bits."""


@dataclass(frozen=True)
class Scalar:
    """A scalar is a number; `dtype` is numpy's name of it. ``bool`` is only what comparisons give, in C an int."""

    name: str
    dtype: str

    @property
    def size(self) -> int:
        return self.numpy.itemsize

    alignment = size

    @cached_property
    def numpy(self) -> np.dtype:
        return np.dtype(self.dtype)

    @property
    def is_float(self) -> bool:
        return self.numpy.kind == "f"

    @property
    def is_signed(self) -> bool:
        return self.numpy.kind in "if"

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Vector:
    """A vector holds 2, 3, 4, 8 or 16 numbers; three take the room of four."""

    element: Scalar
    width: int

    @property
    def size(self) -> int:
        return self.element.size * (4 if self.width == 3 else self.width)

    alignment = size

    def __str__(self) -> str:
        return f"{self.element}{self.width}"


@dataclass(frozen=True)
class Pointer:
    """A pointer is an address in one of the spaces ``global``, ``local``, ``constant`` and ``private``."""

    target: Type
    space: str

    size = alignment = POINTER_BYTES

    def __str__(self) -> str:
        return f"{self.space} {self.target}*"


@dataclass(frozen=True)
class Array:
    element: Type
    length: int

    @property
    def size(self) -> int:
        return self.element.size * self.length

    @property
    def alignment(self) -> int:
        return self.element.alignment

    def __str__(self) -> str:
        return f"{self.element}[{self.length}]"


@dataclass(frozen=True)
class Field:
    name: str
    type: Type
    offset: int


@dataclass(frozen=True)
class Record:
    """A record is a struct or a union, laid out: it has fields by their byte offsets."""

    name: str
    fields: tuple[Field, ...]
    size: int
    alignment: int

    def field(self, name: str) -> Field:
        return next(field for field in self.fields if field.name == name)

    @property
    def is_union(self) -> bool:
        return len(self.fields) > 1 and all(field.offset == 0 for field in self.fields)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Void:
    size = alignment = 1

    def __str__(self) -> str:
        return "void"


@dataclass(frozen=True)
class Image:
    """An image has pixels of four numbers along one to three axes.

    Attributes:
        name: as in the source, e.g. ``image2d_array_t``. axes: those of a pixel's coordinates, an array's number too.
    """

    name: str
    axes: int
    is_array: bool

    size = alignment = POINTER_BYTES

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Sampler:
    """A sampler says how images are read; it is a number made of the constants ``CLK_…``."""

    size = alignment = POINTER_BYTES

    def __str__(self) -> str:
        return "sampler_t"


Type: TypeAlias = Scalar | Vector | Pointer | Array | Record | Void | Image | Sampler

SAMPLER = Sampler()

VOID = Void()
BOOL = Scalar("bool", "bool")
CHAR, UCHAR = Scalar("char", "int8"), Scalar("uchar", "uint8")
SHORT, USHORT = Scalar("short", "int16"), Scalar("ushort", "uint16")
INT, UINT = Scalar("int", "int32"), Scalar("uint", "uint32")
LONG, ULONG = Scalar("long", "int64"), Scalar("ulong", "uint64")
HALF, FLOAT, DOUBLE = Scalar("half", "float16"), Scalar("float", "float32"), Scalar("double", "float64")

SCALARS = {
    scalar.name: scalar for scalar in (BOOL, CHAR, UCHAR, SHORT, USHORT, INT, UINT, LONG, ULONG, HALF, FLOAT, DOUBLE)
}
WIDTHS = (2, 3, 4, 8, 16)


def numbers_within(type_: Type, name: str = "", offset: int = 0) -> Iterator[tuple[str, int, Type]]:
    """Iterates over the scalars, vectors and pointers that a type consists of; a union is its largest member.

    Yields:
        The name, made of `name`, fields and indices (``shape_stride_0``), the offset in bytes, and the type.
    """
    match type_:
        case Array():
            for position in range(type_.length):
                yield from numbers_within(type_.element, f"{name}_{position}", offset + position * type_.element.size)
        case Record():
            fields = type_.fields
            if type_.is_union:
                fields = (max(fields, key=lambda field: field.type.size),)
            for field in fields:
                yield from numbers_within(field.type, f"{name}_{field.name}", offset + field.offset)
        case Scalar() | Vector() | Pointer():
            yield name, offset, type_


def numpy_type(type_: Type) -> np.dtype:
    """Returns numpy's type of the same bytes: structs become structured types, vectors and arrays sub-arrays."""
    match type_:
        case Scalar():
            return np.dtype("uint8") if type_.dtype == "bool" else type_.numpy
        case Vector():
            return np.dtype((type_.element.numpy, (type_.size // type_.element.size,)))
        case Array():
            return np.dtype((numpy_type(type_.element), (type_.length,)))
        case Record() if type_.fields:
            fields = {field.name: field for field in type_.fields}
            return np.dtype(
                {
                    "names": list(fields),
                    "formats": [numpy_type(field.type) for field in fields.values()],
                    "offsets": [field.offset for field in fields.values()],
                    "itemsize": type_.size,
                }
            )
    return np.dtype((np.void, type_.size)) if type_.size > 1 else np.dtype("uint8")


def element_of(type_: Type) -> Scalar:
    """Returns the scalar that a scalar or a vector consists of."""
    if isinstance(type_, Vector):
        return type_.element
    if isinstance(type_, Scalar):
        return type_
    raise TypeError(f"{type_} is no scalar or vector")


def width_of(type_: Type) -> int:
    return type_.width if isinstance(type_, Vector) else 1


def like(type_: Type, element: Scalar) -> Scalar | Vector:
    """Returns a scalar or vector of the same width with other elements."""
    return Vector(element, type_.width) if isinstance(type_, Vector) else element


def is_float(type_: Type) -> bool:
    """Returns whether a type is a floating-point number, or a vector of such."""
    return isinstance(type_, Scalar | Vector) and element_of(type_).is_float
