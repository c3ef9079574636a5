"""Array arguments of a survey are described in words, or lie in files; here they become arrays."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel.basics.errors import KernelError
from perfmodel.opencl_c import types as c

if TYPE_CHECKING:
    from numpy.typing import NDArray

FORMS = "a number of elements, random:DTYPE:SIZE, random:DTYPE:SIZE:LOW:HIGH, zeros:DTYPE:SIZE, or FILE.npy"
FLOATS, INTEGERS = (0.5, 1.5), (1, 8)
"""Random numbers lie in these ranges where nothing is said, as those that kernels are measured with."""
MOST_BYTES = 2**32


def contents(name: str, said: Any, element: c.Type, folder: Path, seed: int) -> NDArray[Any]:
    """Returns the elements of an array argument, in memory order.

    Args:
        said: as in ``survey.json``; see docs/surveys.md.
        element: the type that the argument points to.
        folder: where files lie.

    Raises:
        KernelError: for what is not understood, or does not fit the argument.
    """
    if isinstance(said, str) and said.endswith(".npy"):
        return _loaded(name, said, element, folder)
    kind, dtype, size, low, high = _parts(name, said)
    expected = numpy_type(element)
    number = _number_type(expected)
    if dtype is not None and number is not None and dtype != number:
        raise KernelError(f"array {name!r} is said to have {dtype}, and the kernel takes {element}; say {number}")
    if not 1 <= size <= MOST_BYTES // expected.itemsize:
        raise KernelError(f"array {name!r} is said to have {size} elements; give from 1 to {MOST_BYTES} bytes")
    # What is said counts numbers where it names their type, and elements of the argument where it doesn't.
    count = size if dtype is None else -(-size * dtype.itemsize // expected.itemsize)
    array = np.zeros(count, expected)
    if kind == "random":
        _fill(array if dtype is None else array.view(np.uint8).view(dtype), np.random.default_rng(seed), low, high)
    return array


def numpy_type(type_: c.Type) -> np.dtype[Any]:
    """Returns numpy's type of the same bytes: structs become structured types, vectors and arrays sub-arrays."""
    match type_:
        case c.Scalar():
            return np.dtype("uint8") if type_.dtype == "bool" else type_.numpy
        case c.Vector():
            return np.dtype((type_.element.numpy, (type_.size // type_.element.size,)))
        case c.Array():
            return np.dtype((numpy_type(type_.element), (type_.length,)))
        case c.Record() if type_.fields:
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


def _parts(name: str, said: Any) -> tuple[str, np.dtype[Any] | None, int, float | None, float | None]:
    wrong = KernelError(f"array {name!r} is said to be {said!r:.60}, which is not understood; write {FORMS}")
    if isinstance(said, int) and not isinstance(said, bool):
        return "random", None, said, None, None
    kind, *parts = said.split(":") if isinstance(said, str) else [""]
    if kind not in ("random", "zeros") or len(parts) not in ((2, 4) if kind == "random" else (2,)):
        raise wrong
    try:
        low, high = map(float, parts[2:]) if parts[2:] else (None, None)
        dtype = np.dtype(parts[0])
        size = int(parts[1])
    except (TypeError, ValueError) as error:
        raise wrong from error
    if dtype.kind not in "biuf":
        raise wrong
    return kind, dtype, size, low, high


def _loaded(name: str, file: str, element: c.Type, folder: Path) -> NDArray[Any]:
    path = folder / file
    if not path.resolve().is_relative_to(folder.resolve()):
        raise KernelError(f"array {name!r} lies in {file!r}, outside the survey's folder; put it inside")
    try:
        array = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise KernelError(f"array {name!r}: {file} cannot be read; give a file that numpy.save wrote") from error
    expected = numpy_type(element)
    if not isinstance(array, np.ndarray) or not array.size or array.nbytes % expected.itemsize:
        raise KernelError(f"array {name!r}: {file} does not hold whole elements of {element}; save these")
    number, found = _number_type(expected), _number_type(array.dtype)
    if number is not None and found is not None and found != number:
        raise KernelError(f"array {name!r}: {file} holds {found}, and the kernel takes {element}; save {number}")
    return np.frombuffer(array.tobytes(), expected.base)


def _number_type(dtype: np.dtype[Any]) -> np.dtype[Any] | None:
    """Returns the type of the numbers that elements consist of; None for structs."""
    return None if dtype.base.kind == "V" else dtype.base


def _fill(array: NDArray[Any], rng: np.random.Generator, low: float | None, high: float | None) -> None:
    """Fills an array with random numbers of its type, struct by field."""
    if array.dtype.names:
        for field in array.dtype.names:
            _fill(array[field], rng, low, high)
    elif array.dtype.kind == "f":
        ends = FLOATS if low is None or high is None else (low, high)
        array[...] = rng.uniform(*ends, array.shape)
        below = np.nextafter(array.dtype.type(ends[1]), array.dtype.type(ends[0]))  # rounded, they may reach the end
        np.minimum(array, below, out=array)
    elif array.dtype.kind in "iu":
        bounds = INTEGERS if low is None or high is None else (int(low), int(high))
        array[...] = rng.integers(*bounds, array.shape, np.int64)
