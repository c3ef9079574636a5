"""Products of matrices by tensor cores: of fragments in registers, and of tiles that descriptors find in shared
memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.distinct import distinct
from perfmodel.basics.errors import EmulationError
from perfmodel.ptx.emulation.fragments import (
    Layout,
    computed_dtype,
    element_dtype,
    giver,
    holder,
    linear_layout,
    numbers,
    operand_layout,
)
from perfmodel.ptx.emulation.lanes import WARP, Mask
from perfmodel.ptx.emulation.memory import Memory
from perfmodel.ptx.emulation.registers import Registers
from perfmodel.ptx.matrix_shapes import shape_of
from perfmodel.ptx.syntax import Immediate, Instruction, Operand, Vector, items_of
from perfmodel.ptx.types import PREDICATE, TYPES, Type

Step = Callable[[Mask], None]
Array = NDArray[Any]
_GROUP = 4
"""So many warps make one product of ``wgmma`` together."""


def product(instruction: Instruction, registers: Registers, memory: Memory) -> Step:
    """Returns a product of matrices."""
    if instruction.opcode == "wgmma.mma_async":
        return _of_groups(instruction, registers, memory)
    m, n, k = shape_of(instruction)
    a, b, c, d = (instruction.operands[place] for place in (1, 2, 3, 0))
    if len(instruction.types) == 2:  # wmma of halves says only those of the result and of what is added
        to, added = instruction.types
        left = right = TYPES["f16"]
    else:
        to, left, right, added = instruction.types
    if instruction.opcode == "mma":
        packed = [max(4 // element_dtype(type_).itemsize, 1) for type_ in (left, right)]
        layouts = operand_layout(m, k, packed[0]), operand_layout(n, k, packed[1]), operand_layout(m, n, 2)
    else:
        counts = [len(items_of(o)) * _per_register(t) for o, t in ((a, left), (b, right), (c, added))]
        layouts = linear_layout(m, k, counts[0]), linear_layout(n, k, counts[1]), linear_layout(m, n, counts[2])
    for operand, type_, layout in zip((a, b, c), (left, right, added), layouts, strict=True):
        _check(instruction, operand, type_, layout)
    holds = [holder(o, t, registers, instruction) for o, t in ((a, left), (b, right), (c, added))]
    give = giver(d, to, registers, instruction)

    def multiply(mask: Mask) -> None:
        if not mask.count:
            return
        own = (layout.matrices(numbers(held(), type_)) for layout, held, type_ in both)
        x, y, z = own
        give(layouts[2].held(_rounded(np.matmul(x, y.transpose(0, 2, 1)) + z, to)), mask)

    both = list(zip(layouts, holds, (left, right, added), strict=True))
    return multiply


def _per_register(type_: Type) -> int:
    return max(4 // element_dtype(type_).itemsize, 1)


def _check(instruction: Instruction, operand: Operand, type_: Type, layout: Layout) -> None:
    if len(items_of(operand)) * _per_register(type_) != layout.per_lane:
        raise EmulationError(
            f"line {instruction.line} of the PTX gives {instruction.name!r} {len(items_of(operand))} registers of "
            f"{type_.name}, which are no matrix of its shape"
        )


def _rounded(values: Array, type_: Type) -> Array:
    if type_.is_float:
        return values.astype(type_.numpy)
    return np.asarray(values.astype(np.int64).astype(type_.numpy))


def _of_groups(instruction: Instruction, registers: Registers, memory: Memory) -> Step:
    """Returns a product of ``wgmma``, four warps at a time, done at once."""
    m, n, k = shape_of(instruction)
    to, left, right = instruction.types
    d, a, b, *rest = instruction.operands
    if isinstance(a, Vector):
        has_fragments = True
        layout_a = operand_layout(16, k, _per_register(left))
        _check(instruction, a, left, layout_a)
        held_a = holder(a, left, registers, instruction)
    else:
        has_fragments = False
    layout_d = operand_layout(16, n, 2)
    _check(instruction, d, to, layout_d)
    held_d, give = holder(d, to, registers, instruction), giver(d, to, registers, instruction)
    adds = registers.reader(rest[0], PREDICATE, instruction) if rest else lambda: np.bool_(True)
    flags = [int(each.value) for each in rest[1:] if isinstance(each, Immediate)]
    signs = (*(flags[:2] if left.is_float else ()), 1, 1)[:2]
    transposed = (*([0] if has_fragments else []), *flags[2:], 0, 0)[:2]
    lanes, total = registers.lanes, registers.lanes.total
    if lanes.per_block % (_GROUP * WARP):
        raise EmulationError(
            f"line {instruction.line} of the PTX multiplies by groups of four warps, which there aren't"
        )
    of_group = np.arange(0, total, _GROUP * WARP)
    tiles = Tiles(memory, instruction)
    find_a = None if has_fragments else tiles.finder(a, left, m, k, bool(transposed[0]), registers)
    find_b = tiles.finder(b, right, n, k, bool(transposed[1]), registers)

    def multiply(mask: Mask) -> None:
        active = of_group[mask.active[of_group]]
        if not len(active):
            return
        if find_a is None:
            whole = layout_a.matrices(numbers(held_a(), left)).reshape(-1, 64, k)
            x = whole[active // (_GROUP * WARP)]
        else:
            x = find_a(active)
        y = find_b(active)
        found = np.matmul(x, y.transpose(0, 2, 1)) * (signs[0] * signs[1])
        old = layout_d.matrices(numbers(held_d(), to)).reshape(-1, 64, n)
        added = np.broadcast_to(adds(), (total,))[of_group]
        new = np.where(added[:, None, None], old, 0).astype(computed_dtype(to))
        new[active // (_GROUP * WARP)] += found
        give(layout_d.held(_rounded(new.reshape(-1, 16, n), to)), mask)

    return multiply


class Tiles:
    """Finds tiles in shared memory, as the descriptors of ``wgmma`` say where they lie."""

    def __init__(self, memory: Memory, instruction: Instruction) -> None:
        self.memory, self.instruction = memory, instruction
        self._places: dict[tuple[int, int], NDArray[np.int64]] = {}

    def finder(
        self, operand: Operand, type_: Type, rows: int, columns: int, is_transposed: bool, registers: Registers
    ) -> Callable[[NDArray[np.intp]], Array]:
        """Returns a function that gives the tiles of some groups of warps, by their first lanes."""
        read = registers.reader(operand, TYPES["b64"], self.instruction)
        dtype, memory = element_dtype(type_), self.memory
        block_of, size = registers.lanes.block_of, memory.sizes["shared"]
        total = registers.lanes.total
        known: dict[int, NDArray[np.int64]] = {}

        def find(first: NDArray[np.intp]) -> Array:
            descriptors = np.broadcast_to(read(), (total,))[first]
            found = np.empty((len(first), rows, columns), np.float64 if not type_.is_float else np.float32)
            for descriptor in distinct(descriptors).tolist():
                if descriptor not in known:
                    known[descriptor] = places_of(descriptor, rows, columns, dtype.itemsize, is_transposed)
                places = known[descriptor]
                if places.max() + dtype.itemsize > size:
                    raise EmulationError(
                        f"line {self.instruction.line} of the PTX multiplies what lies beyond {size} bytes of shared "
                        "memory; give the size of its dynamic shared memory"
                    )
                which = np.flatnonzero(descriptors == descriptor)
                bases = block_of[first[which]] * (size // dtype.itemsize)
                raw = memory.shared.view(dtype)[bases[:, None, None] + (places // dtype.itemsize)[None]]
                found[which] = numbers(raw, type_)
            return found

        return find


def places_of(descriptor: int, rows: int, columns: int, item: int, is_transposed: bool) -> NDArray[np.int64]:
    """Returns where the elements of a tile lie in shared memory, in bytes, by row and column.

    Rows and columns of the second factor are those of its transpose: sums run along columns.

    Args:
        descriptor: as the PTX ISA manual has it: start, two strides, and the swizzling.
        is_transposed: whether neighbours in memory are in a column.
    """
    start = (descriptor & 0x3FFF) << 4
    leading, stride = ((descriptor >> shift & 0x3FFF) << 4 for shift in (16, 32))
    width = {0: 16, 1: 128, 2: 64, 3: 32}[descriptor >> 62 & 3]
    row, column = np.arange(rows)[:, None], np.arange(columns)[None, :]
    across, along = (row, column) if is_transposed else (column, row)
    per = width // item  # neighbours in one line of a pattern of 8 lines
    steps = (stride, leading) if is_transposed and width == 16 else (leading, stride)
    found = start + across % per * item + across // per * steps[0] + along % 8 * width + along // 8 * steps[1]
    if width > 16:
        found = found ^ ((found >> 7 & (width // 16 - 1)) << 4)
    return np.asarray(found)
