"""Loads and stores of matrices by warps: ``ldmatrix``, ``stmatrix``, and those of ``wmma``."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.errors import EmulationError
from perfmodel.ptx.emulation.accesses import Accesses
from perfmodel.ptx.emulation.fragments import Layout, element_dtype, giver, holder, linear_layout
from perfmodel.ptx.emulation.lanes import WARP, Mask
from perfmodel.ptx.matrix_shapes import shape_of
from perfmodel.ptx.syntax import Instruction, Operand, items_of
from perfmodel.ptx.types import TYPES, Type

Step = Callable[[Mask], None]
_ROW_BYTES = 16


def matrix_access(instruction: Instruction, accesses: Accesses) -> Step:
    """Returns a load or store of matrices."""
    match instruction.opcode:
        case "ldmatrix":
            return _load_rows(instruction, accesses)
        case "stmatrix":
            return _store_rows(instruction, accesses)
    return _of_fragments(instruction, accesses)


def noting(instruction: Instruction, accesses: Accesses) -> Step:
    """Returns a step that notes where an access goes, and moves nothing."""
    opcode = instruction.opcode
    if "matrix" in opcode:
        read, space = accesses.address(instruction)
        count = _matrices(instruction)

        def note_rows(mask: Mask) -> None:
            giving = _giving(mask, count)
            if giving.count:
                accesses.parts(instruction, space, giving, read(), _ROW_BYTES)

        return note_rows
    if opcode.startswith("wmma."):
        each_run = _runs(instruction, accesses)

        def note_runs(mask: Mask) -> None:
            for _ in each_run(mask):
                pass

        return note_runs
    return accesses.noting(instruction)


def _matrices(instruction: Instruction) -> int:
    if not instruction.has("m8n8") or instruction.types[-1].bits != 16:
        raise EmulationError(f"line {instruction.line} of the PTX has matrices of a kind that is not known")
    return next((int(word[1:]) for word in instruction.modifiers if word in ("x1", "x2", "x4")), 1)


def _giving(mask: Mask, count: int) -> Mask:
    """Returns the lanes that give the addresses of rows."""
    chosen = mask.active & (np.arange(len(mask.active)) % WARP < 8 * count)
    return Mask(mask.lanes, chosen)


def _load_rows(instruction: Instruction, accesses: Accesses) -> Step:
    count, type_ = _matrices(instruction), TYPES["b16"]
    read, space = accesses.address(instruction)
    give = giver(instruction.operands[0], type_, accesses.registers, instruction)
    total = accesses.registers.lanes.total

    def load(mask: Mask) -> None:
        giving = _giving(mask, count)
        if not giving.count:
            return
        rows = np.zeros((total // WARP, WARP, 8), np.uint16)
        for bytes_, offsets, which in accesses.parts(instruction, space, giving, read(), _ROW_BYTES):
            index = giving.index if which is None else giving.index[which]
            rows[index // WARP, index % WARP] = bytes_.view(np.uint16)[offsets[:, None] // 2 + np.arange(8)]
        found = rows[:, : 8 * count].reshape(-1, count, 8, 8)
        if instruction.has("trans"):
            found = found.transpose(0, 1, 3, 2)
        pairs = found.reshape(-1, count, WARP, 2).transpose(0, 2, 1, 3)
        give(pairs.reshape(total, 2 * count), mask)

    return load


def _store_rows(instruction: Instruction, accesses: Accesses) -> Step:
    count, type_ = _matrices(instruction), TYPES["b16"]
    read, space = accesses.address(instruction)
    held = holder(instruction.operands[1], type_, accesses.registers, instruction)

    def store(mask: Mask) -> None:
        giving = _giving(mask, count)
        if not giving.count:
            return
        found = held().reshape(-1, WARP, count, 2).transpose(0, 2, 1, 3).reshape(-1, count, 8, 8)
        if instruction.has("trans"):
            found = found.transpose(0, 1, 3, 2)
        rows = found.reshape(-1, 8 * count, 8)
        for bytes_, offsets, which in accesses.parts(instruction, space, giving, read(), _ROW_BYTES):
            index = giving.index if which is None else giving.index[which]
            bytes_.view(np.uint16)[offsets[:, None] // 2 + np.arange(8)] = rows[index // WARP, index % WARP]

    return store


Run = tuple[int, NDArray[np.uint8], NDArray[np.int64], NDArray[np.intp]]


def _runs(instruction: Instruction, accesses: Accesses) -> Callable[[Mask], Iterator[Run]]:
    """Returns what accesses run by run of what each lane holds: the first element, bytes, offsets there, and lanes."""
    type_, registers = instruction.types[-1], accesses.registers
    layout, is_along = _layout(instruction, instruction.operands[_held(instruction)], type_)
    item = element_dtype(type_).itemsize
    read, space = accesses.address(instruction)
    pitch = (
        registers.reader(instruction.operands[2], TYPES["u32"], instruction)
        if len(instruction.operands) > 2
        else lambda: np.uint32(layout.columns if is_along else layout.rows)
    )
    at_once = _at_once(instruction)
    lanes = registers.lanes
    lane = np.arange(lanes.total) % WARP

    def runs(mask: Mask) -> Iterator[Run]:
        start = np.broadcast_to(read(), (lanes.total,))
        step = np.broadcast_to(pitch(), (lanes.total,)).astype(np.int64)
        for first in range(0, layout.per_lane, at_once):
            row, column = layout.row[lane, first], layout.column[lane, first]
            away = (row * step + column if is_along else column * step + row) * item
            addresses = start + away.astype(np.uint64)
            for bytes_, offsets, which in accesses.parts(instruction, space, mask, addresses, at_once * item):
                yield first, bytes_, offsets, mask.index if which is None else mask.index[which]

    return runs


def _held(instruction: Instruction) -> int:
    """Returns the place of the operand that holds a fragment."""
    return 0 if instruction.opcode == "wmma.load" else 1


def _at_once(instruction: Instruction) -> int:
    """Returns how many elements a lane accesses at once."""
    type_ = instruction.types[-1]
    layout, is_along = _layout(instruction, instruction.operands[_held(instruction)], type_)
    return min(_ROW_BYTES // element_dtype(type_).itemsize, layout.per_lane) if is_along else 1


def _of_fragments(instruction: Instruction, accesses: Accesses) -> Step:
    """Returns a load or store of ``wmma``."""
    type_, registers = instruction.types[-1], accesses.registers
    operand = instruction.operands[_held(instruction)]
    layout, _ = _layout(instruction, operand, type_)
    dtype, at_once, runs = element_dtype(type_), _at_once(instruction), _runs(instruction, accesses)
    if instruction.opcode == "wmma.load":
        give = giver(operand, type_, registers, instruction)

        def load(mask: Mask) -> None:
            found = np.zeros((registers.lanes.total, layout.per_lane), dtype)
            for first, bytes_, offsets, index in runs(mask):
                at = offsets[:, None] // dtype.itemsize + np.arange(at_once)
                found[index, first : first + at_once] = bytes_.view(dtype)[at]
            give(found, mask)

        return load
    held = holder(operand, type_, registers, instruction)

    def store(mask: Mask) -> None:
        values = held()
        for first, bytes_, offsets, index in runs(mask):
            at = offsets[:, None] // dtype.itemsize + np.arange(at_once)
            bytes_.view(dtype)[at] = values[index, first : first + at_once]

    return store


def _layout(instruction: Instruction, operand: Operand, type_: Type) -> tuple[Layout, bool]:
    """Returns how a fragment lies in registers, and whether the neighbours of a row are neighbours in memory."""
    m, n, k = shape_of(instruction)
    count = len(items_of(operand)) * max(4 // element_dtype(type_).itemsize, 1)
    if instruction.has("a"):
        return linear_layout(m, k, count), instruction.has("row")
    if instruction.has("b"):
        return linear_layout(n, k, count), instruction.has("col")
    return linear_layout(m, n, count), instruction.has("row")
