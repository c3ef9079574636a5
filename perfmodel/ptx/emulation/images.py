"""Reads and writes of images' pixels, ``tex``, ``tld4``, ``suld`` and ``sust``; and their sizes, ``txq``, ``suq``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.errors import EmulationError
from perfmodel.basics.image_sampling import LINEAR, Pixels, chosen
from perfmodel.ptx.dataflow import address_of
from perfmodel.ptx.emulation.accesses import Accesses
from perfmodel.ptx.emulation.lanes import Mask
from perfmodel.ptx.emulation.launch import Image
from perfmodel.ptx.emulation.memory import Allocation
from perfmodel.ptx.emulation.registers import Read
from perfmodel.ptx.syntax import Instruction, items_of
from perfmodel.ptx.types import TYPES

Step = Callable[[Mask], None]
_AXES = {"1d": 1, "2d": 2, "3d": 3, "a1d": 2, "a2d": 3}
_SIZES = ("width", "height", "depth")
_ORDERS = {1: 0x10B0, 2: 0x10B2, 4: 0x10B5}
"""The orders of a pixel's numbers, by how many it has: OpenCL's CL_R, CL_RG and CL_RGBA."""
_TILED = ("2d", "3d", "a2d")
"""Images of these shapes lie in memory tile by tile."""
_GATHERED = ((0, 1), (1, 1), (1, 0), (0, 0))
"""The pixels around a place, in the order in which a gather returns them."""


def image_access(instruction: Instruction, accesses: Accesses, is_moved: bool = True) -> Step:
    """Returns a step that reads or writes pixels and notes where; with nothing moved, one that only notes."""
    return _ImageAccess(instruction, accesses, is_moved).step


def image_size(instruction: Instruction, accesses: Accesses) -> Step:
    """Returns a step that gives a register the width of an image, its height, its depth or its channels' order."""
    handles, _ = accesses.address(instruction)
    write = accesses.registers.writer(instruction.operands[0], instruction.types[0], instruction)
    axis = next((number for number, word in enumerate(_SIZES) if instruction.has(word)), None)

    def step(mask: Mask) -> None:
        if mask.count:
            _, image = _image_of(handles(), mask, instruction, accesses)
            pixels = image.pixels
            told = _ORDERS[pixels.channels] if axis is None else (*pixels.sizes, 1, 1)[axis]
            write(np.full(accesses.registers.lanes.total, told, instruction.types[0].numpy), mask)

    return step


def _image_of(handles: Any, mask: Mask, instruction: Instruction, accesses: Accesses) -> tuple[Allocation, Image]:
    """Returns the image that an instruction names by a register, which has to be one for all lanes."""
    handles = np.atleast_1d(handles)
    own = handles if len(handles) == 1 else handles[mask.index]
    line = instruction.line
    if (own != own[0]).any():
        raise EmulationError(f"threads access different images by line {line} of the PTX; give them one at a time")
    found = accesses.memory.allocation(int(own[0]))
    if found is None or found.image is None:
        raise EmulationError(
            f"line {line} of the PTX accesses an image, and is given none; say what the argument is, as by "
            "image:r:float32:WIDTH:HEIGHT"
        )
    return found, found.image


class _ImageAccess:
    """Reads or writes pixels by one instruction."""

    def __init__(self, instruction: Instruction, accesses: Accesses, is_moved: bool) -> None:
        self.instruction, self.accesses, self.is_moved = instruction, accesses, is_moved
        self.shape = next(word for word in instruction.modifiers if word in _AXES)
        self.is_surface = instruction.opcode.startswith("su")
        self.has_bytes = instruction.has("b") and self.is_surface
        registers, address = accesses.registers, address_of(instruction)
        assert address is not None
        self.handles, _ = accesses.address(instruction)
        of_place = TYPES["s32"] if self.is_surface else instruction.types[0]
        given = address.coordinates[: _AXES[self.shape]]
        is_layered = self.shape.startswith("a")
        types = [TYPES["u32"] if is_layered and not axis else of_place for axis in range(len(given))]
        reads = [registers.reader(each, type_, instruction) for each, type_ in zip(given, types, strict=True)]
        self.coordinates = [*reads[1:], reads[0]] if is_layered else reads  # a layer stands first
        self.type = instruction.types[-1]
        moved = items_of(instruction.operands[1 if instruction.opcode == "sust" else 0])
        if instruction.opcode == "sust":
            self.values = [registers.reader(each, self.type, instruction) for each in moved]
        else:
            self.writes = [registers.writer(each, self.type, instruction) for each in moved]

    def step(self, mask: Mask) -> None:
        if not mask.count:
            return
        own, image = self._image(mask)
        rows = [self._by_lane(read, mask) for read in self.coordinates]
        if self.is_surface:
            self._of_surface(mask, own, image.pixels, [row.astype(np.int64) for row in rows])
        else:
            self._of_texture(mask, own, image, rows)

    def _by_lane(self, read: Read, mask: Mask) -> NDArray[Any]:
        """Returns a register's values, of each lane that takes part."""
        return np.broadcast_to(read(), (self.accesses.registers.lanes.total,))[mask.index]

    def _image(self, mask: Mask) -> tuple[Allocation, Image]:
        found, image = _image_of(self.handles(), mask, self.instruction, self.accesses)
        axes = len(image.pixels.sizes)
        if axes != _AXES[self.shape]:
            raise EmulationError(
                f"line {self.instruction.line} of the PTX accesses {found.name!r} by {_AXES[self.shape]} coordinates, "
                f"which has {axes} axes; give an image with as many"
            )
        return found, image

    def _note(self, mask: Mask, own: Allocation, pixels: Pixels, offsets: NDArray[np.int64]) -> None:
        row_bytes = pixels.sizes[0] * pixels.n_bytes if self.shape in _TILED else 0
        self.accesses.note_global(self.instruction, mask, own.base + offsets, pixels.n_bytes, row_bytes)

    # --- textures

    def _of_texture(self, mask: Mask, own: Allocation, image: Image, rows: list[NDArray[Any]]) -> None:
        pixels, flags = image.pixels, image.flags
        if self.type.is_float and pixels.numbers.kind != "f":
            pixels = replace(pixels, is_normalized=True)
        is_gathered = self.instruction.opcode == "tld4"
        places = pixels.places(rows, flags, self.shape.startswith("a"), is_gathered)
        nearest = [first for first, _, _ in places]
        offsets = pixels.numbers_of(pixels.near(nearest)) * pixels.n_bytes
        self._note(mask, own, pixels, offsets)
        if flags & LINEAR and not is_gathered:
            self.accesses.filtered.add(self.instruction)
        if not self.is_moved:
            return
        held = partial(self._held, own, pixels)
        if is_gathered:
            channel = next((at for at, word in enumerate("rgba") if self.instruction.has(word)), 0)
            found = np.stack([pixels.at(chosen(places, sides), held)[channel] for sides in _GATHERED])
        elif flags & LINEAR:
            found = pixels.mixed(places, held).astype(pixels.numbers)
        else:
            found = pixels.at(nearest, held)
        self._write(mask, list(found))

    def _held(self, own: Allocation, pixels: Pixels, numbers: NDArray[np.int64]) -> NDArray[Any]:
        if self.accesses.memory.is_filled:
            own.touch(numbers * pixels.n_bytes)
        return _channels(own, pixels)[numbers]

    def _write(self, mask: Mask, values: list[NDArray[Any]]) -> None:
        """Gives registers numbers, of which there is one for each lane that takes part."""
        total = self.accesses.registers.lanes.total
        for write, own in zip(self.writes, values, strict=False):
            wide = np.zeros(total, self.type.numpy)
            wide[mask.index] = own if own.dtype.kind == "f" or not self.type.is_float else own.view(self.type.numpy)
            write(wide, mask)

    # --- surfaces

    def _of_surface(self, mask: Mask, own: Allocation, pixels: Pixels, rows: list[NDArray[np.int64]]) -> None:
        places = [rows[0] // pixels.n_bytes, *rows[1:]] if self.has_bytes else rows
        inside = pixels.is_inside(places)
        offsets = pixels.numbers_of(pixels.near(places)) * pixels.n_bytes
        self._note(mask, own, pixels, offsets)
        if not self.is_moved:
            return
        if self.has_bytes:
            offsets = offsets + rows[0] % pixels.n_bytes
        if self.instruction.opcode == "sust":
            self._store(mask, own, pixels, offsets, inside)
        elif self.has_bytes:
            own.touch(offsets)
            words = own.bytes.view(self.type.raw)[(offsets // self.type.bytes)[:, None] + np.arange(len(self.writes))]
            self._write(mask, [np.where(inside, word, 0).astype(word.dtype) for word in words.T])
        else:
            held = self._held(own, pixels, offsets // pixels.n_bytes)
            self._write(mask, list(pixels.bordered(pixels.as_read(held.T), inside)))

    def _store(
        self, mask: Mask, own: Allocation, pixels: Pixels, offsets: NDArray[np.int64], inside: NDArray[np.bool_]
    ) -> None:
        values = [self._by_lane(read, mask)[inside] for read in self.values]
        offsets = offsets[inside]
        own.touch(offsets)
        if self.has_bytes:
            words = own.bytes.view(self.type.raw)
            for place, value in enumerate(values):
                words[offsets // self.type.bytes + place] = value.view(self.type.raw)
        else:
            numbers = np.stack([value.view(pixels.numbers) for value in values[: pixels.channels]])
            _channels(own, pixels)[offsets // pixels.n_bytes] = pixels.held(numbers).T


def _channels(own: Allocation, pixels: Pixels) -> NDArray[Any]:
    """Returns what an image holds, a row of channels for each pixel."""
    return own.bytes[: own.n_bytes].view(pixels.dtype).reshape(-1, pixels.channels)
