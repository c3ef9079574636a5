"""Array arguments of a survey are described in words, or lie in files; here they become arrays."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel.basics.errors import KernelError
from perfmodel.kernels.array_contents import said_of_array
from perfmodel.kernels.image_words import image_argument
from perfmodel.kernels.size_expression import SizeExpression
from perfmodel.kernels.source_words import ARRAY_WORDS
from perfmodel.opencl_c import types as c

if TYPE_CHECKING:
    from numpy.typing import NDArray

FLOATS, INTEGERS = (0.5, 1.5), (1, 8)
"""Random numbers lie in these ranges where nothing is said, as those that kernels are measured with."""
MOST_BYTES = 2**32


def contents(name: str, said: Any, element: c.Type, folder: Path, seed: int) -> NDArray[Any]:
    """Returns the elements of an array argument, in memory order; bytes as numbers of the type that is said.

    Args:
        said: as in ``survey.json``; see docs/surveys.md.
        element: the type that the argument points to.
        folder: where files lie.

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
    expected = c.numpy_type(element)
    number = None if expected.base.kind == "V" else expected.base  # None for structs
    is_taken = number is None or number.itemsize == 1 or given.dtype is None or given.dtype.kind == "V"
    if not is_taken and given.dtype != number:  # bytes may be those of any type
        raise KernelError(f"{what} is said to have {given.dtype}, and the kernel takes {element}; say {number}")
    if given.array is not None:
        if given.array.nbytes % expected.itemsize:
            raise KernelError(f"{what}: {said} does not hold whole elements of {element}; save these")
        is_bytes = expected.base.itemsize == 1 and given.array.dtype.kind != "V"
        return np.frombuffer(given.array.tobytes(), given.array.dtype if is_bytes else expected.base)
    size = SizeExpression(what, given.elements(expected.itemsize), ()).at({})
    if not 1 <= size <= MOST_BYTES // expected.itemsize:
        raise KernelError(f"{what} is said to have {size} elements; give from 1 to {MOST_BYTES} bytes")
    array = np.zeros(size, expected)
    if given.kind != "zeros":
        numbers = array if given.dtype is None else array.view(np.uint8).view(given.dtype)
        _fill(numbers, np.random.default_rng(seed), given.bounds)
    return array.view(given.dtype) if expected.itemsize == 1 and given.dtype is not None else array


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
        low, high = map(int, bounds or INTEGERS)
        array[...] = rng.integers(low, high, array.shape, np.int64)
