"""Images are read and written here: addressing, filtering, and what their channels can hold (OpenCL 1.2, chapter 8).

A pixel takes as many bytes as its channels have, and rows lie one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.errors import KernelError
from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c.emulation.access_handlers import Handler
from perfmodel.opencl_c.emulation.batch_context import Context
from perfmodel.opencl_c.emulation.lanes import Integers, Mask, Values
from perfmodel.opencl_c.emulation.memory import Buffer, Copied
from perfmodel.opencl_c.types import CHAR, FLOAT, HALF, INT, SHORT, UCHAR, UINT, USHORT, Scalar, Vector
from perfmodel.opencl_c.types import Image as ImageType

_NORMALIZED, _LINEAR = 1, 0x20
_CLAMP_TO_EDGE, _CLAMP, _REPEAT, _MIRRORED = 2, 4, 6, 8
_ADDRESSING = 0xE

_ORDERS = {"r": 0x10B0, "rg": 0x10B2, "rgba": 0x10B5}
_CHANNELS = {
    ("i1", False): 0x10D7,
    ("i2", False): 0x10D8,
    ("i4", False): 0x10D9,
    ("u1", False): 0x10DA,
    ("u2", False): 0x10DB,
    ("u4", False): 0x10DC,
    ("i1", True): 0x10D0,
    ("i2", True): 0x10D1,
    ("u1", True): 0x10D2,
    ("u2", True): 0x10D3,
    ("f2", False): 0x10DD,
    ("f4", False): 0x10DE,
}
_STORED = {scalar.dtype: scalar for scalar in (CHAR, SHORT, INT, UCHAR, USHORT, UINT, HALF, FLOAT)}
Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Image:
    """An image as an argument: an array with the slowest axis first, and the channels as an axis behind if several.

    Attributes:
        array: of 8, 16 or 32 bits a channel; with 1, 2 or 4 channels.
        normalized: whole numbers stand for floats from 0 (or -1) to 1.
    """

    array: NDArray[Any]
    normalized: bool = False


class ImageBuffer(Buffer):
    """An image in emulated memory.

    Attributes:
        sizes: of its axes, that of the first coordinate first. scalar: what its pixels are read as.
        pixel: what they are in memory.
    """

    def __init__(self, name: str, number: int, image: Image, type_: ImageType) -> None:
        array = np.asarray(image.array)
        shape = array.shape if array.ndim == type_.axes else array.shape[:-1]
        channels = 1 if array.ndim == type_.axes else array.shape[-1]
        kind = array.dtype.str[1:]
        if len(shape) != type_.axes or channels not in (1, 2, 4) or (kind, image.normalized) not in _CHANNELS:
            raise KernelError(
                f"image {name!r} is a {type_.name}; give an array with {type_.axes} axes, and one of 1, 2 or 4 "
                "channels behind them, of whole numbers or floats of up to 32 bits"
            )
        self.type, self.sizes, self.channels, self.dtype = type_, tuple(shape[::-1]), channels, array.dtype
        self.normalized = image.normalized
        is_float = image.normalized or array.dtype.kind == "f"
        self.scalar: Scalar = FLOAT if is_float else INT if array.dtype.kind == "i" else UINT
        stored = _STORED[array.dtype.name]
        self.pixel: Scalar | Vector = stored if channels == 1 else Vector(stored, channels)
        self.element = stored.size
        super().__init__(name, number, prod(shape) * self.pixel.size, Copied(np.ravel(array).view(np.uint8)))

    def as_read(self, channels: Values) -> Values:
        """Returns the four numbers that pixels are read as, which have an axis in front like their channels."""
        pixels = np.zeros((4, *channels.shape[1:]), self.scalar.numpy)
        pixels[3] = 1
        if self.normalized:
            most = np.float32(np.iinfo(self.dtype).max)
            channels = np.asarray(np.maximum(channels.astype(np.float32) / most, -1))
        pixels[: self.channels] = channels
        return pixels

    def held(self, values: Values) -> Values:
        """Returns what the channels make of values that are written."""
        if self.normalized:
            limits = np.iinfo(self.dtype)
            least = -1 if limits.min else 0
            values = np.nan_to_num(np.rint(np.clip(values, least, 1) * np.float32(limits.max)))
        elif self.dtype.kind != "f":
            limits = np.iinfo(self.dtype)
            values = np.clip(values, limits.min, limits.max)
        return values.astype(self.dtype)

    def pixels(self) -> NDArray[Any]:
        """Returns what memory holds, a row of channels for each pixel."""
        return self.data[: self.size].view(self.dtype).reshape(-1, self.channels)

    def contents(self) -> NDArray[Any]:
        """Returns the pixels as they were given."""
        shape = self.sizes[::-1] if self.channels == 1 else (*self.sizes[::-1], self.channels)
        return self.pixels().copy().reshape(shape)

    def property(self, function: str) -> Any:
        """Returns what ``get_image_width`` and its like say."""
        width, *others = self.sizes
        height, depth = (*others, 1, 1)[:2]
        match function:
            case "get_image_width":
                return np.int32(width)
            case "get_image_height":
                return np.int32(height)
            case "get_image_depth":
                return np.int32(depth)
            case "get_image_array_size":
                return np.uint64(self.sizes[-1])
            case "get_image_dim":
                sizes = [width, height] if self.type.axes - self.type.is_array == 2 else [width, height, depth, 0]
                return np.array(sizes, np.int32)[:, np.newaxis]
            case "get_image_channel_order":
                return np.int32(_ORDERS["rgba"[: self.channels]])
        return np.int32(_CHANNELS[self.dtype.str[1:], self.normalized])


class ImageHandler(Handler):
    """Reads or writes an image at one place of the source."""

    def __init__(self, context: Context, access: low.Access, scale: int, fold: Callable[[Handler], None]) -> None:
        image = context.regions.buffers[access.variable or ""]
        assert isinstance(image, ImageBuffer)
        super().__init__(context, replace(access, type=image.pixel, alignment=image.pixel.size), 1, fold)
        self.result = access.type

    def begin(self) -> None:
        image = self.context.regions.buffers[self.access.variable or ""]
        assert isinstance(image, ImageBuffer)
        self.image = image
        super().begin()

    def end(self) -> None:
        super().end()
        del self.image

    def read(self, mask: Mask, coordinates: Values, sampler: Values) -> Values:
        rows = self._rows(coordinates)
        mode = int(np.ravel(sampler)[0])
        is_float = rows.dtype.kind == "f"
        places = [
            self._along(axis, row, mode, is_float, bool(mode & _LINEAR) and not self._is_layer(axis))
            for axis, row in enumerate(rows)
        ]
        found = self._pixels(mask, [axis[0] for axis in places], mode)
        if mode & _LINEAR:
            found = self._filtered(places, found, mode)
        return self._typed(found)

    def write(self, mask: Mask, value: Values, coordinates: Values) -> None:
        rows = [row.astype(np.int64) for row in self._rows(coordinates)]
        pixels = np.zeros((self.image.channels, self.context.layout.lanes), self.dtype)
        values = value if value.ndim == 2 else np.atleast_1d(value)[np.newaxis]
        channels = min(self.image.channels, len(values))
        pixels[:channels] = self.image.held(values[:channels])
        # What is written outside of an image changes nothing.
        inside = np.broadcast_to(self._is_inside(rows), (self.context.layout.lanes,)) & mask.bits
        if not inside.any():
            return
        if not inside[mask.lanes].all():
            mask = Mask(inside, mask.layout)
        super().store(mask, pixels if self.is_vector else pixels[0], self._addresses_of(rows))

    def _rows(self, coordinates: Values) -> Values:
        lanes = self.context.layout.lanes
        rows = coordinates if coordinates.ndim == 2 else np.atleast_1d(coordinates)[np.newaxis]
        return np.broadcast_to(rows[: self.image.type.axes], (self.image.type.axes, lanes))

    def _is_layer(self, axis: int) -> bool:
        return self.image.type.is_array and axis == self.image.type.axes - 1

    # --- one axis

    def _along(
        self, axis: int, row: Values, mode: int, is_float: bool, is_linear: bool
    ) -> tuple[Integers, Integers, Floats]:
        """Returns the pixels along one axis between which a coordinate lies, and the share of the second one."""
        size = self.image.sizes[axis]
        none = np.zeros(len(row))
        if self._is_layer(axis):
            layer = np.clip(np.rint(row).astype(np.int64), 0, size - 1)
            return layer, layer, none
        if not is_float:
            at = self._addressed(row.astype(np.int64), size, mode)
            return at, at, none
        u = row.astype(np.float64)
        addressing = mode & _ADDRESSING
        if mode & _NORMALIZED:
            if addressing == _REPEAT:
                u = (u - np.floor(u)) * size
            elif addressing == _MIRRORED:
                u = np.abs(u - 2 * np.rint(0.5 * u)) * size
            else:
                u = u * size
        u = np.nan_to_num(u)
        if not is_linear:
            first = self._addressed(np.floor(u).astype(np.int64), size, mode)
            return first, first, none
        first = np.floor(u - 0.5).astype(np.int64)
        share = u - 0.5 - first
        return self._addressed(first, size, mode), self._addressed(first + 1, size, mode), share

    def _addressed(self, at: Integers, size: int, mode: int) -> Integers:
        match mode & _ADDRESSING:
            case 2:  # to the edge
                return np.clip(at, 0, size - 1)
            case 4:  # the border's pixels lie just outside
                return np.clip(at, -1, size)
            case 6:
                return at % size
            case 8:
                return np.clip(at, 0, size - 1)
        return at

    # --- pixels

    def _is_inside(self, places: Sequence[Integers]) -> NDArray[np.bool_]:
        inside = np.ones(len(places[0]), bool)
        for at, size in zip(places, self.image.sizes, strict=True):
            inside &= (at >= 0) & (at < size)
        return inside

    def _addresses_of(self, places: Sequence[Integers]) -> Integers:
        index, apart = np.zeros(len(places[0]), np.int64), 1
        for at, size in zip(places, self.image.sizes, strict=True):
            index, apart = index + at * apart, apart * size
        return np.asarray(self.image.origin + index * self.bytes)

    def _pixels(self, mask: Mask, places: list[Integers], mode: int) -> Values:
        inside = self._is_inside(places)
        near = [np.clip(at, 0, size - 1) for at, size in zip(places, self.image.sizes, strict=True)]
        addresses = self._addresses_of(near)
        if not mode & _ADDRESSING:  # nothing says what is there
            addresses = np.where(inside, addresses, self.image.origin + self.image.size)
        found = np.asarray(super().load(mask, addresses))
        return self._bordered(self.image.as_read(found if self.is_vector else np.atleast_1d(found)[np.newaxis]), inside)

    def _bordered(self, pixels: Values, inside: NDArray[np.bool_]) -> Values:
        border = np.zeros((4, 1), pixels.dtype)
        border[3] = self.image.channels != 4
        return np.where(inside, pixels, border)

    def _filtered(self, places: list[tuple[Integers, Integers, Floats]], nearest: Values, mode: int) -> Values:
        """Returns the mean of the pixels around, by how near they are; only the first one counts as an access."""
        total = np.zeros(nearest.shape)
        for corner in product((0, 1), repeat=len(places)):
            at = [axis[1] if side else axis[0] for axis, side in zip(places, corner, strict=True)]
            near = [np.clip(one, 0, size - 1) for one, size in zip(at, self.image.sizes, strict=True)]
            offsets = self._addresses_of(near) - self.image.origin
            self.image.ensure(offsets)
            weight = np.ones(len(at[0]))
            for axis, side in zip(places, corner, strict=True):
                weight = weight * (axis[2] if side else 1 - axis[2])
            pixels = self.image.as_read(self.image.pixels()[offsets // self.bytes].T)
            total += weight * self._bordered(pixels, self._is_inside(at))
        return total

    def _typed(self, pixels: Values) -> Values:
        assert isinstance(self.result, Scalar | Vector)
        if isinstance(self.result, Vector):
            return pixels.astype(self.result.element.numpy)
        return pixels[0].astype(self.result.numpy)
