"""Arguments of kernels whose source has no types, as of Triton and Numba: what is given says what they are."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from perfmodel.basics.errors import KernelError
from perfmodel.kernels.arguments import Array, Scalar, check_known
from perfmodel.kernels.array_contents import ArrayContents, said_of_array
from perfmodel.kernels.size_expression import SizeExpression

NARROW: Mapping[str, tuple[str, tuple[int, int]]] = {
    "bfloat16": ("uint16", (0x3C00, 0x3F80)),
    "float8_e4m3fn": ("uint8", (0x20, 0x38)),
    "float8_e5m2": ("uint8", (0x30, 0x3C)),
}
"""Types that numpy lacks: the type that holds their bits, and between which bits small positive numbers lie."""


@dataclass(frozen=True, eq=False)
class GivenArray:
    """An array argument.

    Attributes:
        type: of its elements, numpy's name or one of `NARROW`.
        shape: whole numbers or expressions over sizes, the slowest axis first.
        contents: as for `perfmodel.emulate`; None for random ones.
    """

    type: str
    shape: tuple[int | str, ...]
    contents: Any = None

    @property
    def dtype(self) -> str:
        """The type by which numpy holds the elements."""
        return NARROW[self.type][0] if self.type in NARROW else "uint8" if self.type == "bool" else self.type

    @property
    def extent(self) -> str:
        """The number of elements, as an expression."""
        return " * ".join(f"({each})" for each in self.shape)


@dataclass(frozen=True)
class GivenNumber:
    """A number argument: its value, or an expression over sizes that it follows from.

    Attributes:
        dtype: numpy's name; empty where the front end chooses.
    """

    value: float | None = None
    expression: str = ""
    dtype: str = ""


@dataclass(frozen=True)
class GivenTiles:
    """A tensor descriptor: an array that is copied by tiles of a shape.

    Attributes:
        array: with its shape; `strides` are in elements.
    """

    array: GivenArray
    strides: tuple[int | str, ...]
    box: tuple[int, ...]


Given: TypeAlias = GivenArray | GivenNumber | GivenTiles


def by_name(
    kernel: str, names: Sequence[str], args: Mapping[str, Any] | Sequence[Any], numbers: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Returns what is given for a kernel's arguments, in their order or by name.

    Args:
        names: of the arguments.
        numbers: what else is given, by name.

    Raises:
        KernelError: for what the kernel doesn't have, or is given twice.
    """
    if isinstance(args, str) or not isinstance(args, Mapping | Sequence):
        raise KernelError(
            f"args={str(args)[:40]!r} of kernel {kernel!r} are no arguments; give them by name, or in order"
        )
    if not isinstance(args, Mapping):
        if len(args) > len(names):
            raise KernelError(f"kernel {kernel!r} takes {len(names)} arguments, and is given {len(args)}")
        args = dict(zip(names, args, strict=False))
    check_known(kernel, args, names)
    for name in args:
        if name in numbers:
            raise KernelError(f"argument {name!r} of kernel {kernel!r} is given twice; give it once")
    return args


def given(name: str, value: Any) -> Given:
    """Returns what a value says of an argument.

    Raises:
        KernelError: for what is neither array nor number.
    """
    match value:
        case Array():
            dtype = value.dtype if value.dtype in NARROW else np.dtype(value.dtype).name
            return _array(dtype, (value.extent,), None)
        case Scalar():
            return GivenNumber(value.value, "" if value.value is not None else name, np.dtype(value.dtype).name)
        case bool() | int() | float():
            return GivenNumber(value)
        case np.generic():
            return GivenNumber(value.item(), dtype=value.dtype.name)
        case str():
            return _said(name, value)
    if hasattr(value, "block_shape") and hasattr(value, "base"):  # Triton's TensorDescriptor
        array = given(name, value.base)
        if not isinstance(array, GivenArray):
            raise KernelError(f"the tensor descriptor {name!r} is of no array; give it one")
        described = GivenArray(array.type, tuple(value.shape), array.contents)
        return GivenTiles(described, tuple(value.strides), tuple(value.block_shape))
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    if dtype is None or shape is None:
        raise KernelError(
            f"argument {name!r} cannot be {str(value)[:40]!r}; give an array, a number, words such as "
            "'random:float32:n*n', or an expression over sizes"
        )
    word = str(getattr(dtype, "name", dtype)).rpartition(".")[2]
    contents = value if isinstance(value, np.ndarray) else None
    if contents is not None and word in NARROW:
        contents = np.ascontiguousarray(contents).view(NARROW[word][0])
    return _array(word, tuple(int(axis) for axis in shape) or (1,), contents)


def _array(dtype: str, shape: tuple[int | str, ...], contents: Any) -> GivenArray:
    if dtype in NARROW and contents is None:
        held, bounds = NARROW[dtype]
        contents = ArrayContents(extent="", dtype=np.dtype(held), kind="random", bounds=bounds)
    return GivenArray(dtype, shape, contents)


def _said(name: str, text: str) -> Given:
    """Returns what words say: ``random:float32:n*n``, ``zeros:int32:n, m``, ``values.npy``, or ``n * 2``."""
    kind, *parts = text.split(":")
    if kind in ("random", "zeros") and len(parts) >= 2:
        shape = tuple(axis.strip() for axis in parts[1].split(","))
        if parts[0] in NARROW:
            held, _ = NARROW[parts[0]]
            return _array(parts[0], shape, said_of_array(name, f"zeros:{held}:1") if kind == "zeros" else None)
        said = said_of_array(name, text)
        return _array(str(said.dtype), shape, said)
    if ":" in text or text.endswith(".npy"):
        said = said_of_array(name, text)
        assert said.array is not None
        return _array(said.array.dtype.name, said.array.shape, said.array)
    return GivenNumber(expression=text.strip())


def names_in(expressions: Sequence[int | str]) -> tuple[str, ...]:
    """Returns the names in expressions, in their order."""
    found: dict[str, None] = {}
    for text in map(str, expressions):
        for name in re.findall(r"[A-Za-z_]\w*", text):
            found[name] = None
    return tuple(found)


def with_numbers(expression: int | str, numbers: Mapping[str, int]) -> str:
    """Returns an expression with numbers in the place of names."""
    return re.sub(r"[A-Za-z_]\w*", lambda match: str(numbers.get(match[0], match[0])), str(expression))


def value_of(expression: str, sizes: Mapping[str, Any]) -> int | None:
    """Returns an expression's value where all its names are known."""
    if not all(name in sizes for name in names_in([expression])):
        return None
    known = {name: int(sizes[name]) for name in names_in([expression])}
    return SizeExpression("an argument", expression, list(known)).at(known)
