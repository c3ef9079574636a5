"""Array arguments of a survey are described in words, or lie in files; here they become arrays."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel.basics.errors import KernelError
from perfmodel.kernels.array_contents import ArrayContents, said_of_array, whole_numbers
from perfmodel.kernels.image_words import image_argument
from perfmodel.kernels.size_expression import SizeExpression
from perfmodel.kernels.source_words import ARRAY_WORDS
from perfmodel.opencl_c import types as c

if TYPE_CHECKING:
    from numpy.typing import NDArray

FLOATS, INTEGERS = (0.5, 1.5), (1, 8)
"""Random numbers lie in these ranges where nothing is said, as those that kernels are measured with."""
MOST_BYTES = 2**32


def checked(
    name: str, said: Any, expected: np.dtype[Any], told: str, folder: Path, is_any: bool = False
) -> ArrayContents:
    """Returns what is said of an array argument.

    Args:
        said: as in ``survey.json``; see docs/surveys.md.
        expected: the type that the argument points to; `told`: as the source calls it.
        folder: where files lie.
        is_any: whether the elements may be numbers of any type, as those of bytes and structs may.

    Raises:
        KernelError: for what is not understood, or does not fit the argument.
    """
    what = f"array {name!r}"
    if isinstance(said, bool) or not isinstance(said, str | int):
        raise KernelError(f"{what} is said to be {said!r:.60}, which is not understood; write {ARRAY_WORDS}")
    if (
        isinstance(said, str)
        and said.endswith(".npy")
        and not (folder / said).resolve().is_relative_to(folder.resolve())
    ):
        raise KernelError(f"{what} lies in {said!r}, outside the survey's folder; put it inside")
    given = said_of_array(what, str(said), folder)
    if given.image is not None:
        return given
    is_any = is_any or _is_bytes(expected) or expected.base.kind == "V"
    if not is_any and given.dtype is not None and not _has_the_bits_of(given.dtype, expected.base):
        raise KernelError(f"{what} is said to have {given.dtype}, and the kernel takes {told}; say {expected.base}")
    if given.array is not None and given.array.nbytes % expected.itemsize:
        raise KernelError(f"{what}: {said} does not hold whole elements of {told}; save these")
    if given.array is None:
        _elements(what, given, expected)
    return given


def contents(name: str, given: ArrayContents, expected: np.dtype[Any], seed: int) -> NDArray[Any]:
    """Returns the elements of an array argument, in memory order; bytes as numbers of the type that is said.

    Args:
        given: what `checked` returns; `expected`: as given to it.
    """
    if given.array is not None:
        is_own = _is_bytes(expected) and given.array.dtype.kind != "V"
        return np.frombuffer(given.array.tobytes(), given.array.dtype if is_own else expected.base)
    if given.image is not None:
        expected = np.dtype(given.image.dtype)
    array = np.zeros(_elements(f"array {name!r}", given, expected), expected)
    if given.kind != "zeros":
        numbers = array if given.dtype is None else array.view(np.uint8).view(given.dtype)
        _fill(numbers, np.random.default_rng(seed), given.bounds)
    return array.view(given.dtype) if _is_bytes(expected) and given.dtype is not None else array


def bytes_of(name: str, given: ArrayContents, expected: np.dtype[Any]) -> int:
    """Returns the size of an array argument, of which nothing is made.

    Args:
        given: what `checked` returns; `expected`: as given to it.
    """
    if given.array is not None:
        return given.array.nbytes
    return _elements(f"array {name!r}", given, expected) * expected.itemsize


def _has_the_bits_of(given: np.dtype[Any], expected: np.dtype[Any]) -> bool:
    """Returns whether elements of a type are what a kernel takes: of the same type, whole numbers with a sign or
    without, or structs."""
    both = {given.kind, expected.kind}
    return given.kind == "V" or given == expected or (both == {"i", "u"} and given.itemsize == expected.itemsize)


def _is_bytes(expected: np.dtype[Any]) -> bool:
    return expected.base.kind != "V" and expected.base.itemsize == 1


def _elements(what: str, given: ArrayContents, expected: np.dtype[Any]) -> int:
    size = SizeExpression(what, given.elements(expected.itemsize), ()).at({})
    if not 1 <= size <= MOST_BYTES // expected.itemsize:
        raise KernelError(f"{what} is said to have {size} elements; give from 1 to {MOST_BYTES} bytes")
    return int(size)


def pixels(name: str, said: Any, type_: c.Image, seed: int) -> NDArray[Any]:
    """Returns the pixels of an image argument, random ones.

    Raises:
        KernelError: for what is not understood.
    """
    image = image_argument(name, type_, said, is_output=True)
    size = SizeExpression(f"image {name!r}", image.extent, ()).at({})
    if not 1 <= size <= MOST_BYTES // np.dtype(image.dtype).itemsize:
        raise KernelError(f"image {name!r} is said to have {size} numbers; give from 1 to {MOST_BYTES} bytes")
    array = np.zeros(size, image.dtype)
    _fill(array, np.random.default_rng(seed), ())
    return array


def _fill(array: NDArray[Any], rng: np.random.Generator, bounds: Sequence[float]) -> None:
    """Fills an array with random numbers of its type, struct by field."""
    if array.dtype.names:
        for field in array.dtype.names:
            _fill(array[field], rng, bounds)
    elif array.dtype.kind == "f":
        low, high = bounds or FLOATS
        array[...] = rng.uniform(low, high, array.shape)
        below = np.nextafter(array.dtype.type(high), array.dtype.type(low))  # rounded, they may reach the end
        np.minimum(array, below, out=array)
    elif array.dtype.kind in "iu":
        array[...] = whole_numbers(rng, bounds or INTEGERS, array.shape)
