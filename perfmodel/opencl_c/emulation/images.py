"""Images are read and written here (OpenCL 1.2, chapter 8).

A pixel takes as many bytes as its channels have, and rows lie one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.errors import KernelError
from perfmodel.basics.image_sampling import ADDRESSING, LINEAR, Pixels
from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c.emulation.access_handlers import Handler
from perfmodel.opencl_c.emulation.batch_context import Context
from perfmodel.opencl_c.emulation.lanes import Integers, Mask, Values
from perfmodel.opencl_c.emulation.memory import Buffer, Copied
from perfmodel.opencl_c.image_properties import CHANNELS, image_property
from perfmodel.opencl_c.types import CHAR, FLOAT, HALF, INT, SHORT, UCHAR, UINT, USHORT, Scalar, Vector
from perfmodel.opencl_c.types import Image as ImageType

_STORED = {scalar.dtype: scalar for scalar in (CHAR, SHORT, INT, UCHAR, USHORT, UINT, HALF, FLOAT)}


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
        form: of its pixels.
        pixel: what they are in memory.
    """

    def __init__(self, name: str, number: int, image: Image, type_: ImageType) -> None:
        array = np.asarray(image.array)
        shape = array.shape if array.ndim == type_.axes else array.shape[:-1]
        channels = 1 if array.ndim == type_.axes else array.shape[-1]
        kind = array.dtype.str[1:]
        if len(shape) != type_.axes or channels not in (1, 2, 4) or (kind, image.normalized) not in CHANNELS:
            raise KernelError(
                f"image {name!r} is a {type_.name}; give an array with {type_.axes} axes, and one of 1, 2 or 4 "
                "channels behind them, of whole numbers or floats of up to 32 bits"
            )
        self.type = type_
        self.form = Pixels(tuple(shape[::-1]), channels, array.dtype, image.normalized)
        stored = _STORED[array.dtype.name]
        self.pixel: Scalar | Vector = stored if channels == 1 else Vector(stored, channels)
        self.element = stored.size
        super().__init__(name, number, self.form.count * self.pixel.size, Copied(np.ravel(array).view(np.uint8)))

    def pixels(self) -> NDArray[Any]:
        """Returns what memory holds, a row of channels for each pixel."""
        return self.data[: self.size].view(self.form.dtype).reshape(-1, self.form.channels)

    def contents(self) -> NDArray[Any]:
        """Returns the pixels as they were given."""
        axes, channels = self.form.sizes[::-1], self.form.channels
        shape = axes if channels == 1 else (*axes, channels)
        return self.pixels().copy().reshape(shape)

    def property(self, function: str) -> Any:
        """Returns what ``get_image_width`` and its like say."""
        numbers = image_property(self.form, self.type, function)
        if len(numbers) > 1:
            return np.array(numbers, np.int32)[:, np.newaxis]
        return (np.uint64 if function == "get_image_array_size" else np.int32)(numbers[0])


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
        flags, form = int(np.ravel(sampler)[0]), self.image.form
        places = form.places(self._rows(coordinates), flags, self.image.type.is_array)
        found = self._pixels(mask, [first for first, _, _ in places], flags)
        if flags & LINEAR:  # only the first one counts as an access
            found = form.mixed(places, self._held)
        return self._typed(found)

    def write(self, mask: Mask, value: Values, coordinates: Values) -> None:
        rows, form = [row.astype(np.int64) for row in self._rows(coordinates)], self.image.form
        pixels = np.zeros((form.channels, self.context.layout.lanes), self.dtype)
        values = value if value.ndim == 2 else np.atleast_1d(value)[np.newaxis]
        channels = min(form.channels, len(values))
        pixels[:channels] = form.held(values[:channels])
        # What is written outside of an image changes nothing.
        inside = np.broadcast_to(form.is_inside(rows), (self.context.layout.lanes,)) & mask.bits
        if not inside.any():
            return
        if not inside[mask.lanes].all():
            mask = Mask(inside, mask.layout)
        super().store(mask, pixels if self.is_vector else pixels[0], self._addresses_of(rows))

    def _rows(self, coordinates: Values) -> Values:
        lanes = self.context.layout.lanes
        rows = coordinates if coordinates.ndim == 2 else np.atleast_1d(coordinates)[np.newaxis]
        return np.broadcast_to(rows[: self.image.type.axes], (self.image.type.axes, lanes))

    def _addresses_of(self, places: Sequence[Integers]) -> Integers:
        return np.asarray(self.image.origin + self.image.form.numbers_of(places) * self.bytes)

    def _pixels(self, mask: Mask, places: list[Integers], flags: int) -> Values:
        form = self.image.form
        inside, addresses = form.is_inside(places), self._addresses_of(form.near(places))
        if not flags & ADDRESSING:  # nothing says what is there
            addresses = np.where(inside, addresses, self.image.origin + self.image.size)
        found = np.asarray(super().load(mask, addresses))
        return form.bordered(form.as_read(found if self.is_vector else np.atleast_1d(found)[np.newaxis]), inside)

    def _held(self, numbers: Integers) -> NDArray[Any]:
        """Returns the channels of pixels by their numbers, which is no access."""
        self.image.ensure(numbers * self.bytes)
        return self.image.pixels()[numbers]

    def _typed(self, pixels: Values) -> Values:
        assert isinstance(self.result, Scalar | Vector)
        if isinstance(self.result, Vector):
            return pixels.astype(self.result.element.numpy)
        return pixels[0].astype(self.result.numpy)
