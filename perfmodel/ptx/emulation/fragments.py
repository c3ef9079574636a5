"""Fragments: where the elements of a matrix lie in the registers of a warp's lanes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.ptx.emulation.lanes import WARP, Mask
from perfmodel.ptx.emulation.narrow_floats import as_tf32, decoded
from perfmodel.ptx.emulation.registers import Registers
from perfmodel.ptx.syntax import Instruction, Operand, items_of
from perfmodel.ptx.types import TYPES, Type

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Layout:
    """The layout of a matrix over the lanes of a warp.

    Attributes:
        rows, columns: of the matrix.
        row, column: of each element that a lane holds, by lane and in the order of its registers.
    """

    rows: int
    columns: int
    row: NDArray[np.int64]
    column: NDArray[np.int64]

    @property
    def per_lane(self) -> int:
        return int(self.row.shape[1])

    def matrices(self, held: Array) -> Array:
        """Returns matrices by warp, of what lanes hold."""
        return held.reshape(-1, self.row.size)[:, self._order].reshape(-1, self.rows, self.columns)

    def held(self, matrices: Array) -> Array:
        """Returns what lanes hold of matrices by warp."""
        flat = matrices.reshape(-1, self.rows * self.columns)
        return flat[:, self._places].reshape(-1, self.per_lane)

    @cached_property
    def _places(self) -> NDArray[np.int64]:
        """The places in the matrix of what lanes hold."""
        return (self.row * self.columns + self.column).ravel()

    @cached_property
    def _order(self) -> NDArray[np.int64]:
        """The places among the lanes' numbers of the matrix' elements."""
        order = np.empty(self.rows * self.columns, np.int64)
        order[self._places] = np.arange(self.row.size)
        return order


def operand_layout(rows: int, columns: int, packed: int) -> Layout:
    """Returns the layout of an operand of ``mma`` whose registers hold so many neighbours of a row.

    The second factor has this layout as its transpose, and results hold pairs of neighbours.
    """
    count = rows * columns // WARP
    lane, element = np.arange(WARP)[:, None], np.arange(count)[None, :]
    group, place = lane // 4, lane % 4
    register, neighbour = element // packed, element % packed
    above = rows // 8
    row = group + 8 * (register % above) + 0 * element
    column = register // above * 4 * packed + place * packed + neighbour
    return Layout(rows, columns, row, column)


def linear_layout(rows: int, columns: int, count: int) -> Layout:
    """Returns a layout in which lanes hold runs of a row: that of ``wmma``, which PTX leaves open."""
    place = (np.arange(WARP)[:, None] * count + np.arange(count)[None, :]) % (rows * columns)
    return Layout(rows, columns, place // columns, place % columns)


def element_dtype(type_: Type) -> np.dtype[Any]:
    """Returns the type of an element's bits; of a narrow float, those of a whole number."""
    if type_.form and type_.form != "tf32":
        return np.dtype(f"u{type_.bits // 8}")
    return np.dtype(np.float32) if type_.form else type_.numpy


def computed_dtype(type_: Type) -> np.dtype[Any]:
    """Returns the type in which elements are multiplied without an error."""
    if not type_.is_float or type_.bits == 64:
        return np.dtype(np.float64)
    return np.dtype(np.float32)


def numbers(raw: Array, type_: Type) -> Array:
    """Returns elements as numbers to compute with."""
    if type_.form == "tf32":
        return np.asarray(as_tf32(raw))
    if type_.form:
        return decoded(raw, type_.form).astype(np.float32)
    return raw.astype(computed_dtype(type_))


def holder(operand: Operand, type_: Type, registers: Registers, instruction: Instruction) -> Callable[[], Array]:
    """Returns a function that gives what lanes hold in registers, element by element."""
    items = items_of(operand)
    dtype = element_dtype(type_)
    word = TYPES["b64"] if dtype.itemsize == 8 else TYPES["b32"]
    reads = [registers.reader(item, word, instruction) for item in items]
    total = registers.lanes.total

    def held() -> Array:
        words = np.empty((len(reads), total), word.raw)
        for place, read in enumerate(reads):
            words[place] = read()
        return np.ascontiguousarray(words.T).view(dtype)

    return held


def giver(
    operand: Operand, type_: Type, registers: Registers, instruction: Instruction
) -> Callable[[Array, Mask], None]:
    """Returns a function that gives registers what lanes then hold, element by element."""
    items = items_of(operand)
    dtype = element_dtype(type_)
    word = TYPES["b64"] if dtype.itemsize == 8 else TYPES["b32"]
    writes = [registers.writer(item, word, instruction) for item in items]

    def give(held: Array, mask: Mask) -> None:
        words = np.ascontiguousarray(np.ascontiguousarray(held).view(word.raw).T)
        for write, own in zip(writes, words, strict=True):
            write(own, mask)

    return give
