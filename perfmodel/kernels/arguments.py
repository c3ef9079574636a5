"""Arguments of an OpenCL C kernel: as a program declares them, over its sizes, and as a launch gives them, bound."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from perfmodel.basics.errors import KernelError, nearest
from perfmodel.basics.image_sampling import Pixels

C_TYPES = {
    "int8": "char",
    "int16": "short",
    "int32": "int",
    "int64": "long",
    "uint8": "uchar",
    "uint16": "ushort",
    "uint32": "uint",
    "uint64": "ulong",
    "float16": "half",
    "float32": "float",
    "float64": "double",
}
"""OpenCL C's names for numpy's types."""
WORD_BYTES = 4
"""A struct of which only the size is known consists of words of so many bytes."""
ADDRESS_BYTES = 8
"""A pointer within a struct has so many bytes, and lies at a multiple of them."""


@dataclass(frozen=True)
class Array:
    """An array in global or constant memory.

    Attributes:
        dtype: of its elements, by numpy's name (a program takes the type itself, too); a vector type counts as its
            elements.
        extent: how many elements, as a whole number or an expression over the sizes.
        is_output: whether the kernel writes it.
    """

    name: str
    dtype: Any
    extent: int | str
    is_output: bool = False

    @property
    def size(self) -> int:
        """The number of elements, for an array of a launch."""
        return int(self.extent)


@dataclass(frozen=True, repr=False)
class Image(Array):
    """An image, an array whose elements are the channels of its pixels, row by row.

    Attributes:
        sizes: of its axes, the width first, as whole numbers or expressions over the sizes.
        channels: of a pixel: 1, 2 or 4.
        normalized: whether whole numbers stand for floats from 0 (or -1) to 1.
        form: its type in the source, such as ``image2d_t``.
        flags: how it is read where no sampler says it, as those of a `Sampler`.
    """

    sizes: tuple[int | str, ...] = ()
    channels: int = 4
    normalized: bool = False
    form: str = "image2d_t"
    flags: int = 0

    def __repr__(self) -> str:
        fields = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        if not self.flags:  # as stores have images that are read by samplers
            del fields["flags"]
        return f"Image({', '.join(f'{name}={value!r}' for name, value in fields.items())})"

    @property
    def pixels(self) -> Pixels:
        """The form of the pixels of a launch's image."""
        sizes = tuple(int(size) for size in self.sizes)
        return Pixels(sizes, self.channels, np.dtype(self.dtype), self.normalized)

    @property
    def pixel_bytes(self) -> int:
        """The bytes that a pixel takes in memory."""
        return self.channels * int(np.dtype(self.dtype).itemsize)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a launch's image as an array: the slowest axis first, several channels last."""
        axes = tuple(int(size) for size in reversed(self.sizes))
        return axes if self.channels == 1 else (*axes, self.channels)


@dataclass(frozen=True)
class Described(Array):
    """An array that a kernel of a GPU is given by a tensor map: its address with its shape, and the tiles to copy.

    Its axes have the names of `Derived` arguments, ``x_shape_0`` and ``x_strides_0``, the slowest first.

    Attributes:
        box: elements of a tile along the axes.
        element, swizzle: numbers of the elements' type, and of the pattern in which tiles lie in shared memory.
    """

    box: tuple[int, ...] = ()
    element: int = 0
    swizzle: int = 0
    sizes: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()


@dataclass(frozen=True, repr=False)
class Scalar:
    """A number passed by value; a size if its dtype is of whole numbers. Only a launch's has a value."""

    name: str
    dtype: Any
    value: float | None = None

    def __repr__(self) -> str:
        value = "" if self.value is None else f", value={self.value!r}"
        return f"Scalar(name={self.name!r}, dtype={self.dtype!r}{value})"

    @property
    def number(self) -> np.generic:
        """The value in its type, for a number of a launch.

        Raises:
            OverflowError, TypeError, ValueError: its type cannot hold the value, or is none.
        """
        found: np.generic = np.dtype(self.dtype).type(self.value)
        return found


@dataclass(frozen=True, repr=False)
class Struct:
    """A struct or a vector passed by value.

    Attributes:
        fields: the numbers that it consists of, each a scalar argument or size by itself, named after the struct, its
            fields and indices: ``shape_stride_0`` is ``shape.stride[0]``.
        offsets: where each of them lies, in bytes.
        n_bytes: of the whole.
        arrays: those that its pointers point to, arrays of the launch with names of their own.
        places: where the address of each of them lies, in bytes.
    """

    name: str
    fields: tuple[Scalar, ...]
    offsets: tuple[int, ...]
    n_bytes: int
    arrays: tuple[Array, ...] = ()
    places: tuple[int, ...] = ()

    def __repr__(self) -> str:
        plain = f"name={self.name!r}, fields={self.fields!r}, offsets={self.offsets!r}, n_bytes={self.n_bytes!r}"
        pointers = f", arrays={self.arrays!r}, places={self.places!r}" if self.arrays else ""
        return f"Struct({plain}{pointers})"

    @property
    def contents(self) -> bytes:
        """The bytes of a launch's struct; zeros between the fields, and for addresses.

        Raises:
            OverflowError, TypeError, ValueError: as for `Scalar.number`.
        """
        return self.contents_with({})

    def contents_with(self, addresses: Mapping[str, int]) -> bytes:
        """Returns the bytes of a launch's struct with the addresses of its arrays, by their names.

        Raises:
            OverflowError, TypeError, ValueError: as for `Scalar.number`.
        """
        found = bytearray(self.n_bytes)
        for array, place in zip(self.arrays, self.places, strict=True):
            found[place : place + ADDRESS_BYTES] = addresses.get(array.name, 0).to_bytes(ADDRESS_BYTES, "little")
        for field, offset in zip(self.fields, self.offsets, strict=True):
            data = field.number.tobytes()
            found[offset : offset + len(data)] = data
        return bytes(found)


@dataclass(frozen=True)
class Derived:
    """A whole number passed by value that follows from the sizes, such as an array's shape; nobody gives it.

    Attributes:
        extent: the number, as an expression over the sizes.
    """

    name: str
    dtype: Any
    extent: int | str


@dataclass(frozen=True)
class LocalArray:
    """Local memory that the launch provides: so many bytes a work-group, a whole number or an expression over the
    sizes."""

    name: str
    n_bytes: int | str

    @property
    def size(self) -> int:
        """The number of bytes, for local memory of a launch."""
        return int(self.n_bytes)


@dataclass(frozen=True)
class Sampler:
    """A sampler says how images are read.

    Attributes:
        flags: as OpenCL C numbers them: ``CLK_ADDRESS_CLAMP | CLK_FILTER_LINEAR``.
    """

    name: str
    flags: int


Argument: TypeAlias = Array | Scalar | Struct | LocalArray | Sampler


def scalars_of(argument: Argument | Derived) -> tuple[Scalar, ...]:
    """Returns the numbers that an argument passes by value: one, those of a struct, or none."""
    return (argument,) if isinstance(argument, Scalar) else argument.fields if isinstance(argument, Struct) else ()


def arrays_of(argument: Argument | Derived) -> tuple[Array, ...]:
    """Returns the arrays that an argument points to: itself, those of a struct's pointers, or none."""
    return (argument,) if isinstance(argument, Array) else argument.arrays if isinstance(argument, Struct) else ()


class WholeNumbers(NamedTuple):
    """The whole numbers that a type holds, from the least to the most."""

    least: int
    most: int
    dtype: str


def whole_numbers(dtypes: Mapping[str, Any]) -> dict[str, WholeNumbers]:
    """Returns the numbers that arguments of types of whole numbers can be, by name."""
    found = {name: np.dtype(dtype) for name, dtype in dtypes.items()}
    limits = {name: np.iinfo(dtype) for name, dtype in found.items() if dtype.kind in "iu"}
    return {name: WholeNumbers(int(each.min), int(each.max), each.dtype.name) for name, each in limits.items()}


def check_range(kernel: str, sizes: Mapping[str, Any], held: Mapping[str, WholeNumbers]) -> None:
    """Raises KernelError where the type of an argument cannot hold its value, a whole number or an array of them."""
    for name, type_ in held.items():
        value = sizes.get(name, 0)
        low, high = (value, value) if type(value) is int else (np.min(value, initial=0), np.max(value, initial=0))
        if low < type_.least or high > type_.most:
            wrong = int(high if high > type_.most else low)
            remedy = "give 0 or more" if wrong < type_.least == 0 else "declare a wider argument"
            raise KernelError(f"{name}={wrong} of kernel {kernel!r} does not fit into {type_.dtype}; {remedy}")


def check_known(kernel: str, given: Iterable[str], known: Iterable[str], what: str = "argument") -> None:
    """Raises KernelError for a name that is given, and is none of those known of a kernel."""
    known = list(known)
    for name in given:
        if not isinstance(name, str):
            raise KernelError(f"kernel {kernel!r} has no {what} {name!r}; name it by text")
        if name not in known:
            raise KernelError(
                f"kernel {kernel!r} has no {what} {name!r}{nearest(name, known)} (it has {', '.join(known) or 'none'})"
            )
