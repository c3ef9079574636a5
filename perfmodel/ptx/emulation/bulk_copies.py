"""Copies of whole tiles between global and shared memory, as tensor maps describe them; done at once.

A row of a tile counts as an access to global memory by a warp, whose threads share it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.errors import EmulationError
from perfmodel.ptx.emulation.accesses import Accesses
from perfmodel.ptx.emulation.atomics import changed as changed_cells
from perfmodel.ptx.emulation.lanes import WARP, Mask
from perfmodel.ptx.emulation.mbarriers import changed
from perfmodel.ptx.emulation.narrow_floats import decoded
from perfmodel.ptx.emulation.recording import Tally
from perfmodel.ptx.syntax import Address, Instruction, Operand
from perfmodel.ptx.types import TYPES

Step = Callable[[Mask], None]
Array = NDArray[Any]
MAP_BYTES = 128
FIELDS: dict[str, tuple[int, str]] = {
    "global_address": (0, "b64"),
    "rank": (8, "b32"),
    "elemtype": (12, "b32"),
    "swizzle_mode": (16, "b32"),
    "interleave_layout": (20, "b32"),
    "fill_mode": (24, "b32"),
    "swizzle_atomicity": (28, "b32"),
    "box_dim": (32, "b32"),
    "global_dim": (52, "b32"),
    "element_stride": (72, "b32"),
    "global_stride": (96, "b64"),
}
"""The fields of a tensor map, with the place where each lies here, of which PTX says nothing, and its type."""
_ITEMS = (1, 2, 4, 4, 8, 8, 2, 4, 4, 8, 2, 4, 4)
"""The bytes of an element, by the number of its type."""
_TYPES = ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f32", "f64", "bf16", "f32", "f32")
_CHUNK = 16


@dataclass(frozen=True)
class TensorMap:
    """A tensor in global memory, and the box of it that a copy moves; the fastest axis first.

    Attributes:
        kind: the number of the elements' type.
        strides: in bytes.
        width: bytes of the pattern in which the box is swizzled.
    """

    start: int
    kind: int
    item: int
    box: tuple[int, ...]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    width: int

    @property
    def n_bytes(self) -> int:
        return self.item * int(np.prod(self.box))


def described(element: int, swizzle: int, box: Sequence[int], sizes: Sequence[int], strides: Sequence[int]) -> bytes:
    """Returns the bytes of a tensor map behind the address, the fastest axis first."""
    found = bytearray(MAP_BYTES)
    values: dict[str, Sequence[int]] = {"rank": [len(box) - 1], "elemtype": [element], "swizzle_mode": [swizzle]}
    values |= {"box_dim": box, "global_dim": sizes, "element_stride": [1] * len(box), "global_stride": strides}
    for name, numbers in values.items():
        start, type_ = FIELDS[name]
        n_bytes = TYPES[type_].bytes
        for place, number in enumerate(numbers):
            at = start + place * n_bytes
            found[at : at + n_bytes] = int(number).to_bytes(n_bytes, "little")
    return bytes(found[8:])


def tensor_map(contents: bytes, line: int) -> TensorMap:
    """Returns what the bytes of a tensor map say."""

    def field(name: str, place: int = 0) -> int:
        start, type_ = FIELDS[name]
        n_bytes = TYPES[type_].bytes
        return int.from_bytes(contents[start + place * n_bytes : start + (place + 1) * n_bytes], "little")

    rank, kind = field("rank") + 1, field("elemtype")
    if rank > 5 or kind >= len(_ITEMS) or field("interleave_layout") or field("swizzle_mode") > 3:
        raise EmulationError(f"line {line} of the PTX copies by a tensor map of a kind that is not known")
    item = _ITEMS[kind]
    axes = range(rank)
    strides = (item, *(field("global_stride", axis) for axis in range(rank - 1)))
    box, sizes = (tuple(field(name, axis) for axis in axes) for name in ("box_dim", "global_dim"))
    return TensorMap(
        start=field("global_address"),
        kind=kind,
        item=item,
        box=box,
        sizes=sizes,
        strides=strides,
        width=(16, 32, 64, 128)[field("swizzle_mode")],
    )


def changed_by(
    instruction: Instruction, kind: int, bytes_: Array, offsets: Array, held: NDArray[Any], own: Array
) -> None:
    """Changes elements in global memory by those of a tile in shared memory."""
    type_ = TYPES[_TYPES[kind]]
    name = next((word for word in ("add", "min", "max", "and", "or", "xor") if instruction.has(word)), "")
    if not name or held.dtype.itemsize != type_.bytes:
        raise EmulationError(f"line {instruction.line} of the PTX has a copy that is not known: {instruction.name}")
    values = held[own] if type_.form else held[own].view(type_.numpy)
    changed_cells(bytes_, offsets, type_, name, decoded(values, type_.form) if type_.form else values, None, False)


class BulkCopies:
    """Makes steps of copies of tiles and blocks of memory, and of instructions that write tensor maps.

    Args:
        tallies: takes how often each copy accesses memory, beside how often it is executed.
    """

    def __init__(self, accesses: Accesses, tallies: dict[Instruction, Tally], width: int) -> None:
        self.accesses, self.memory, self.tallies = accesses, accesses.memory, tallies
        self.lanes, self.width = accesses.registers.lanes, width

    def step(self, instruction: Instruction) -> Step:
        if instruction.has("commit_group", "wait_group", "prefetch"):
            return lambda mask: None
        if instruction.opcode == "tensormap.replace":
            return self._replace(instruction)
        if instruction.opcode == "tensormap.cp_fenceproxy":
            return self._publish(instruction)
        return self._copy(instruction)

    def _addresses(self, instruction: Instruction, operand: Operand) -> Callable[[], Array]:
        if not isinstance(operand, Address):
            raise EmulationError(f"line {instruction.line} of the PTX copies from no address: {instruction.name}")
        read = self.accesses.address_in(instruction, operand)
        return lambda: np.broadcast_to(read(), (self.lanes.total,)).astype(np.uint64).view(np.int64)

    def _replace(self, instruction: Instruction) -> Step:
        name = next((word for word in instruction.modifiers if word in FIELDS), "")
        if not name:
            raise EmulationError(
                f"line {instruction.line} of the PTX writes a field that is not known: {instruction.name}"
            )
        start, type_name = FIELDS[name]
        type_ = TYPES[type_name]
        at = self._addresses(instruction, instruction.operands[0])
        read = self.accesses.registers.reader(instruction.operands[-1], type_, instruction)
        axis = (
            self.accesses.registers.reader(instruction.operands[1], TYPES["u32"], instruction)
            if len(instruction.operands) > 2
            else lambda: np.uint32(0)
        )
        space = "shared" if instruction.has("shared::cta", "shared") else ""

        def replace(mask: Mask) -> None:
            index = mask.index
            if len(index):
                places = at()[index] + start + type_.bytes * int(np.max(axis()))
                values = np.broadcast_to(read(), (self.lanes.total,))[index]
                for _, _, bytes_, offsets, which in self._found(space, places, index, type_.bytes, instruction.line):
                    bytes_.view(type_.raw)[offsets // type_.bytes] = values if which is None else values[which]

        return replace

    def _found(self, space: str, places: Array, index: Array, n_bytes: int, line: int) -> Any:
        return self.memory.located(space, places.view(np.uint64), index, n_bytes, line)

    def _publish(self, instruction: Instruction) -> Step:
        to, source = (self._addresses(instruction, operand) for operand in instruction.operands[:2])

        def publish(mask: Mask) -> None:
            index = mask.index[np.unique(to()[mask.index], return_index=True)[1]]
            for lane in index.tolist():
                contents = self._bytes("shared", int(source()[lane]), lane, MAP_BYTES, instruction.line)
                self._bytes("", int(to()[lane]), lane, MAP_BYTES, instruction.line)[:] = contents

        return publish

    def _bytes(self, space: str, address: int, lane: int, n_bytes: int, line: int) -> NDArray[np.uint8]:
        """Returns bytes in memory, as one lane sees it."""
        place = np.asarray([address + n_bytes - 1])
        _, _, bytes_, offsets, _ = self._found(space, place, np.asarray([lane]), 1, line)[0]
        end = int(offsets[0]) + 1
        found: NDArray[np.uint8] = bytes_[end - n_bytes : end]
        return found

    def _copy(self, instruction: Instruction) -> Step:
        is_load = instruction.has("mbarrier::complete_tx::bytes")
        if instruction.opcode == "cp.reduce.async.bulk" and (is_load or not instruction.has("tensor")):
            raise EmulationError(f"line {instruction.line} of the PTX has a copy that is not known: {instruction.name}")
        operands = list(instruction.operands)
        sides = operands[:2] if is_load else [operands[1], operands[0]]
        shared, there = (self._addresses(instruction, each) for each in sides)
        of_map = sides[1]
        assert isinstance(of_map, Address)
        registers = self.accesses.registers
        coordinates = [registers.reader(each, TYPES["s32"], instruction) for each in of_map.coordinates]
        is_tensor = bool(coordinates)
        size = None if is_tensor else registers.reader(operands[2], TYPES["u32"], instruction)
        barrier = operands[2 if is_tensor else 3] if is_load else None
        cells = self.accesses.words_at(instruction, barrier) if isinstance(barrier, Address) else None
        tally = self.tallies.setdefault(instruction, Tally(self.lanes, self.width))
        total = self.lanes.total

        def copy(mask: Mask) -> None:
            index = mask.index
            if not len(index):
                return
            starts, bases = there()[index], shared()[index]
            if size is None:
                found = tensor_map(self._bytes("", int(starts[0]), index[0], MAP_BYTES, instruction.line).tobytes(), 0)
                maps = [found]
                for start, lane in zip(starts[1:].tolist(), index[1:].tolist(), strict=True):
                    maps.append(tensor_map(self._bytes("", start, lane, MAP_BYTES, instruction.line).tobytes(), 0))
                at = np.stack([np.broadcast_to(read(), (total,))[index] for read in coordinates], -1).astype(np.int64)
            else:
                n_bytes = np.broadcast_to(size(), (total,))[index].astype(int).tolist()
                maps = [
                    TensorMap(
                        start=int(s),
                        kind=0,
                        item=_CHUNK,
                        box=(n // _CHUNK,),
                        sizes=(n // _CHUNK,),
                        strides=(_CHUNK,),
                        width=16,
                    )
                    for s, n in zip(starts, n_bytes, strict=True)
                ]
                at = np.zeros((len(index), 1), np.int64)
            self._move(instruction, mask, maps, at, bases, is_load, tally)
            if cells is not None:
                words, places = cells(mask)
                changed(words, places, [-each.n_bytes for each in maps], 0)

        return copy

    def _move(
        self,
        instruction: Instruction,
        mask: Mask,
        maps: list[TensorMap],
        at: Array,
        bases: Array,
        is_load: bool,
        tally: Tally,
    ) -> None:
        """Moves tiles, one for each lane of a mask, and notes their rows as accesses."""
        first = maps[0]
        if any((each.item, each.box, each.width) != (first.item, first.box, first.width) for each in maps):
            raise EmulationError(f"line {instruction.line} of the PTX copies tiles of several shapes at once")
        item, index = first.item, mask.index
        rows = int(np.prod(first.box[1:], initial=1))
        cell = np.arange(first.box[0])
        row_at = np.stack(np.unravel_index(np.arange(rows), first.box[:0:-1]), -1)[:, ::-1] if rows > 1 else None
        starts = np.asarray([each.start for each in maps], np.int64)[:, None]
        inside = np.ones((len(maps), rows), bool)
        for axis in range(1, len(first.box)):
            of_row = row_at[:, axis - 1] if row_at is not None else np.zeros(1, np.int64)
            place = at[:, axis, None] + of_row
            inside &= (place >= 0) & (place < np.asarray([each.sizes[axis] for each in maps])[:, None])
            starts = starts + place * np.asarray([each.strides[axis] for each in maps])[:, None]
        along = at[:, 0, None] + cell
        there = (along >= 0) & (along < np.asarray([each.sizes[0] for each in maps])[:, None])
        whole = inside[:, :, None] & there[:, None]
        sources = (starts[:, :, None] + along[:, None] * item).reshape(-1)
        linear = (np.arange(rows)[:, None] * first.box[0] + cell) * item
        to = bases[:, None, None] + linear
        if first.width > _CHUNK:
            to = to ^ ((to >> 7 & (first.width // _CHUNK - 1)) << 4)
        to = (to + self.lanes.block_of[index][:, None, None] * self.memory.sizes["shared"]).reshape(-1) // item
        chosen = np.flatnonzero(whole.reshape(-1))
        dtype = np.dtype(f"u{item}") if item <= 8 else np.dtype("V16")
        held = self.memory.shared.view(dtype)
        if is_load:
            held[to] = np.zeros(1, dtype)[0]
        lanes = np.repeat(index, rows * len(cell))[chosen]
        for _, _, bytes_, offsets, which in self._found("", sources[chosen], lanes, item, instruction.line):
            own = to[chosen] if which is None else to[chosen][which]
            if is_load:
                held[own] = bytes_.view(dtype)[offsets // item]
            elif instruction.opcode == "cp.reduce.async.bulk":
                changed_by(instruction, maps[0].kind, bytes_, offsets, held, own)
            else:
                bytes_.view(dtype)[offsets // item] = held[own]
        chunk = 1 << min(4, max(0, (len(cell) * item // WARP).bit_length() - 1))
        if chunk > item:
            parts = np.add.reduceat(there, np.arange(0, len(cell), chunk // item), axis=1) > 0
        else:
            parts = np.repeat(there, item // chunk, axis=1)
        self._note(instruction, index, starts + at[:, 0, None] * item, inside, parts, chunk, tally)

    def _note(
        self,
        instruction: Instruction,
        index: Array,
        starts: Array,
        rows: Array,
        along: Array,
        n_bytes: int,
        tally: Tally,
    ) -> None:
        """Notes rows of tiles as accesses by the threads of the warps whose lanes copy.

        Args:
            starts: of the rows, in bytes, for each of the lanes; `rows`: which of them lie in the tensor.
            along: likewise, which parts of a row do, of so many bytes each.
        """
        warps = index // WARP * WARP
        for first in range(0, along.shape[1], WARP):
            part = along[:, first : first + WARP]
            thread = np.arange(part.shape[1])
            for row in range(rows.shape[1]):
                taking = part & rows[:, row, None]
                if not taking.any():
                    continue
                lanes = (warps[:, None] + thread)[taking]
                addresses = (starts[:, row, None] + n_bytes * (first + thread))[taking]
                active = np.zeros(self.lanes.total, bool)
                active[lanes] = True
                mask = Mask(self.lanes, active)
                tally.add(mask)
                if self.accesses.noted_execution is not None:
                    self.accesses.noted_execution(tally, mask)
                self.accesses.note_global(instruction, mask, addresses[np.argsort(lanes)], n_bytes)
