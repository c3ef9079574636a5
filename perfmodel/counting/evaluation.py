"""Evaluates functions over whole arrays of sizes block by block; parts that several counts share are computed once.

A block's arrays stay in the processor's cache from one operation to the next, which whole arrays of a million sizes
would not.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

BLOCK = 1 << 16

_Method = TypeVar("_Method", bound=Callable[..., NDArray[Any]])


class Block(dict[str, NDArray[np.int64]]):
    """Some sizes, with what has already been computed from them.

    Args:
        sizes: whole numbers that broadcast against each other.
    """

    def __init__(self, sizes: Mapping[str, ArrayLike]) -> None:
        super().__init__({name: np.asarray(size, dtype=np.int64) for name, size in sizes.items()})
        self.shape = np.broadcast_shapes(*(size.shape for size in self.values()))
        self.known: dict[tuple[object, ...], tuple[Any, object]] = {}
        self._powers: dict[tuple[str, int, type[Any]], NDArray[Any]] = {}

    def power(self, name: str, exponent: int, dtype: type[Any]) -> NDArray[Any]:
        """Returns a size to a positive power."""
        key = name, exponent, dtype
        if key not in self._powers:
            self._powers[key] = power(self[name].astype(dtype), exponent)
        return self._powers[key]

    def value_of(self, count: Any) -> Any:
        """Returns the value of a count, a function of blocks, at these sizes."""
        return count.value(self)

    def once(self, key: tuple[object, ...], compute: Callable[[], Any]) -> Any:
        """Returns what is computed from the sizes the first time that it is asked for by this key."""
        if key not in self.known:
            self.known[key] = compute(), None
        return self.known[key][0]

    def where(self, chosen: NDArray[np.bool_]) -> Block:
        """Returns the sizes chosen by a mask of their common shape, in one dimension."""
        return Block({name: np.broadcast_to(size, self.shape)[chosen] for name, size in self.items()})


def once_per_block(method: _Method) -> _Method:
    """Lets a block remember what a method returns for each object and arguments; the array is shared and read-only."""

    @functools.wraps(method)
    def remembered(self: object, block: Block, *arguments: Any) -> NDArray[Any]:
        key = id(self), method, arguments
        found = block.known.get(key)
        if found is None:
            value = np.asarray(method(self, block, *arguments))
            value.flags.writeable = False
            # With the object itself: were it dropped, its id could become another's.
            block.known[key] = found = value, self
        array: NDArray[Any] = found[0]
        return array

    return cast(_Method, remembered)


def power(base: NDArray[Any], exponent: int) -> NDArray[Any]:
    """Returns base**exponent for a positive exponent, by multiplication: numpy's power is many times slower."""
    return np.asarray(functools.reduce(np.multiply, [base] * exponent), dtype=base.dtype)


def quotient(above: ArrayLike, below: Any, otherwise: float) -> NDArray[np.float64]:
    """Returns one number divided by another, or `otherwise` where that is not above 0; elementwise."""
    is_above = below > 0
    if isinstance(is_above, np.ndarray) and is_above.all():  # as nearly always
        return np.asarray(np.divide(above, below))
    return np.where(is_above, np.divide(above, np.where(is_above, below, 1.0)), otherwise)


def alike(values: Any) -> Any:
    """Returns one number for an array of equal ones, so that what follows from it is computed once; others as they
    are."""
    if isinstance(values, np.ndarray) and values.size > 1 and (values == values.flat[0]).all():
        return values.flat[0]
    return values


def blockwise(
    functions: Sequence[Callable[[Block], ArrayLike]], sizes: Mapping[str, ArrayLike]
) -> list[NDArray[np.float64]]:
    """Returns the functions' values at the sizes, each an array of the sizes' common shape.

    What is the same for all of many sizes is one number under that shape, and can't be written to.

    Args:
        functions: elementwise in the sizes; what they return broadcasts against the sizes that they are given.
        sizes: whole numbers that broadcast against each other.
    """
    arrays = {name: np.asarray(size, dtype=np.int64) for name, size in sizes.items()}
    shape = np.broadcast_shapes(*(array.shape for array in arrays.values()))
    count = math.prod(shape)
    if count <= BLOCK:
        block = Block(arrays)
        return [np.array(np.broadcast_to(f(block), shape), dtype=np.float64) for f in functions]
    flat = {
        name: array.reshape(()) if array.size == 1 else np.broadcast_to(array, shape).reshape(-1)
        for name, array in arrays.items()
    }
    results: list[NDArray[np.float64] | None] = [None] * len(functions)
    for start in range(0, count, BLOCK):
        part = slice(start, start + BLOCK)
        block = Block({name: array[part] if array.ndim else array for name, array in flat.items()})
        for place, function in enumerate(functions):
            found, result = function(block), results[place]
            if result is None or (np.ndim(found) and result.size == 1):
                before, result = result, np.empty(count if np.ndim(found) else 1)
                result[:start] = 0.0 if before is None else before
                results[place] = result
            result[part if result.size == count else slice(None)] = found
    return [
        np.broadcast_to(result, shape) if result.size == 1 else result.reshape(shape)
        for result in results
        if result is not None
    ]
