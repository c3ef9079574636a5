"""A struct by value of which only the size is known is given word by word, and arrays where its pointers begin."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from perfmodel.basics.errors import KernelError
from perfmodel.kernels.arguments import ADDRESS_BYTES, WORD_BYTES, Array, Scalar, Struct
from perfmodel.kernels.size_expression import Extent
from perfmodel.ptx.parameters import HeldPointer

TYPES = ("float32", "float64", "int32", "uint32", "int64", "uint64")
"""Types of the numbers in a list of a struct's parts that says them: ``{"float32": 1.5}``."""

SIZES = {1: "uint8", 2: "uint16", 3: "uint16", 4: "int32"}
OTHERS = {1: "bool", 2: "float16", 3: "float16", 4: "float32"}
"""Types of so many bytes of a struct: of sizes, and of what needs no value."""


@dataclass(frozen=True)
class StructWords:
    """The words of a struct by value, four bytes each, or what is left of the last one, named ``p_0``, ``p_1`` … after
    the argument.

    Attributes:
        kernel: whose argument it is, for errors.
        pointers: those in it that the kernel's code follows.
        loaded: the bytes that it loads; None for any.
    """

    kernel: str
    name: str
    n_bytes: int
    pointers: tuple[HeldPointer, ...]
    loaded: frozenset[int] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"{self.name}_{place}" for place in range(-(-self.n_bytes // WORD_BYTES)))

    @property
    def followed(self) -> tuple[str, ...]:
        """The words where the pointers begin that the code follows."""
        return tuple(f"{self.name}_{pointer.offset // WORD_BYTES}" for pointer in self.pointers)

    def element(self, name: str) -> str:
        """Returns the type of what the code mostly accesses where the pointer at a word points to."""
        found = self._pointer(name)
        return found.dtype if found else "float32"

    def _pointer(self, name: str) -> HeldPointer | None:
        return dict(zip(self.followed, self.pointers, strict=True)).get(name)

    def is_array(self, name: str, said: Mapping[str, Any]) -> bool:
        """Returns whether what is said of a word means an array: text, None for a null pointer, or a number of elements
        where the code follows a pointer whose other word has no number."""
        if said[name] is None or isinstance(said[name], str):
            return True
        after = f"{self.name}_{self.names.index(name) + 1}"
        return name in self.followed and after not in said

    def struct(self, given: Mapping[str, Extent | Array], sizes: Collection[str] = ()) -> Struct:
        """Returns the argument as a program declares it.

        Args:
            given: arrays by the words where their pointers begin, or numbers of elements of the type that the code
                accesses; 0 for a null pointer.
            sizes: names from which the launch or an array's extent follow.

        Raises:
            KernelError: for a word where no pointer can begin, and what is no array.
        """
        arrays, places, taken = [], [], set()
        for name, value in given.items():
            place = self._place(name)
            taken |= {place, place + WORD_BYTES}
            array = self._array(name, value)
            if array.extent not in (0, "0"):
                arrays.append(array)
                places.append(place)
        offsets = [number * WORD_BYTES for number in range(len(self.names))]
        both = [(n, offset) for n, offset in zip(self.names, offsets, strict=True) if offset not in taken]
        return Struct(
            name=self.name,
            fields=tuple(Scalar(name, self._dtype(offset, not given or name in sizes)) for name, offset in both),
            offsets=tuple(offset for _, offset in both),
            n_bytes=self.n_bytes,
            arrays=tuple(arrays),
            places=tuple(places),
        )

    def _dtype(self, offset: int, is_size: bool) -> str:
        """Returns the type of a word, or of the bytes that are left of one: that of sizes where the code loads it or
        `is_size`, or else one that needs no value."""
        n_bytes = min(self.n_bytes - offset, WORD_BYTES)
        word = range(offset, offset + n_bytes)
        is_loaded = self.loaded is None or not self.loaded.isdisjoint(word)
        return (SIZES if is_loaded or (is_size and n_bytes == WORD_BYTES) else OTHERS)[n_bytes]

    def _place(self, name: str) -> int:
        place = self.names.index(name) * WORD_BYTES
        if place % ADDRESS_BYTES or place + ADDRESS_BYTES > self.n_bytes:
            others = f", as {' and '.join(self.followed)}" if self.followed else ""
            raise KernelError(
                f"{name!r} of kernel {self.kernel!r} is given an array, but no pointer can begin at byte {place} of a "
                f"struct of {self.n_bytes}; give it to a word at a multiple of {ADDRESS_BYTES} bytes{others}"
            )
        return place

    def _array(self, name: str, value: Extent | Array) -> Array:
        pointer = self._pointer(name)
        # Where the code is not seen to follow the pointer, it may well write there.
        is_output = pointer is None or pointer.is_output
        if isinstance(value, Array):
            return replace(value, name=name, is_output=value.is_output or is_output)
        if isinstance(value, bool) or not isinstance(value, str | int | np.integer):
            raise KernelError(
                f"{name!r} of kernel {self.kernel!r} is given {type(value).__name__}, not the number of elements of an "
                "array; give the number in args, and the array itself by kernel.as_observed(…)"
            )
        return Array(name, self.element(name), value if isinstance(value, str) else int(value), is_output)


def listed_words(said: Mapping[str, Any], structs: Iterable[str]) -> dict[str, Any]:
    """Returns what is said of arguments by name, structs' lists word by word.

    A list has a struct's parts in their order, as lists of their own where these are arrays: a whole number for each
    word, ``{"float32": 1.5}`` for numbers of a type, words for an array that a pointer points to, None for a null
    pointer; both take two words.

    Raises:
        KernelError: for a part that is not understood, or does not begin where its type can.
    """
    structs = set(structs)
    listed = {name: value for name, value in said.items() if name in structs and isinstance(value, list | tuple)}
    found = {name: value for name, value in said.items() if name not in listed}
    for name, value in listed.items():
        place = 0
        for part in _parts(value):
            words = {f"{name}_{place + number}": each for number, each in _words(name, place, part)}
            if twice := next((word for word in words if word in found), None):
                raise KernelError(f"{twice!r} is given twice, by itself and in the list of {name!r}; give it once")
            found |= words
            place += 2 if part is None or isinstance(part, str) else len(words)
    return found


def _parts(values: Sequence[Any]) -> Iterable[Any]:
    for each in values:
        yield from _parts(each) if isinstance(each, list | tuple) else [each]


def _words(name: str, place: int, part: Any) -> list[tuple[int, Any]]:
    """Returns the words that a part of a struct takes, numbered from its first; of a pointer, that one alone."""
    if part is None or isinstance(part, str):
        _check_begin(name, place, "a pointer", ADDRESS_BYTES)
        return [(0, part)]
    if not isinstance(part, Mapping):
        return [(0, part)]
    ((dtype, numbers),) = part.items() if len(part) == 1 else [("", 0)]
    if dtype not in TYPES:
        raise KernelError(
            f"word {place} of struct {name!r} is said to be {part!r:.60}, which is not understood; write a whole "
            'number, a type with its numbers as {"float32": 1.5}, or an array as "random:float32:1024"'
        )
    try:
        raw = np.atleast_1d(np.asarray(numbers))
        if raw.dtype.kind not in "iuf" or (raw.dtype.kind == "f" and not dtype.startswith("float")):
            raise ValueError(numbers)
        held = np.asarray(raw.tolist(), np.dtype(dtype))
    except (OverflowError, TypeError, ValueError) as error:
        raise KernelError(
            f"word {place} of struct {name!r}: {numbers!r:.60} is no {dtype}; give such numbers"
        ) from error
    _check_begin(name, place, dtype, held.itemsize)
    return list(enumerate(held.view(np.int32).ravel().tolist()))


def _check_begin(name: str, place: int, what: str, n_bytes: int) -> None:
    if place * WORD_BYTES % n_bytes:
        raise KernelError(
            f"{what} in struct {name!r} begins at its byte {place * WORD_BYTES}, no multiple of {n_bytes}; give "
            "a 0 before it for the bytes that C++ leaves free"
        )
