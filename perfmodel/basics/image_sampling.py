"""Says which pixels coordinates in an image name, and what they are read as (OpenCL 1.2, chapter 8).

Flags of samplers are numbered as OpenCL C numbers them: ``CLK_ADDRESS_CLAMP | CLK_FILTER_LINEAR``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

NORMALIZED, LINEAR, ADDRESSING = 1, 0x20, 0xE

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Place = tuple[Integers, Integers, Floats]
"""Two pixels along one axis between which a coordinate lies, and the share of the second one."""


@dataclass(frozen=True)
class Pixels:
    """The form of an image's pixels, which lie row by row.

    Attributes:
        sizes: of its axes, the width first.
        channels: of a pixel: 1, 2 or 4.
        dtype: of a channel.
        is_normalized: whether whole numbers stand for floats from 0 (or -1) to 1.
    """

    sizes: tuple[int, ...]
    channels: int
    dtype: np.dtype[Any]
    is_normalized: bool = False

    @property
    def n_bytes(self) -> int:
        """The bytes of a pixel."""
        return self.channels * self.dtype.itemsize

    @property
    def count(self) -> int:
        return prod(self.sizes)

    @cached_property
    def numbers(self) -> np.dtype[Any]:
        """The type of the numbers that pixels are read as."""
        is_float = self.is_normalized or self.dtype.kind == "f"
        return np.dtype(np.float32 if is_float else f"{self.dtype.kind}4")

    def as_read(self, channels: NDArray[Any]) -> NDArray[Any]:
        """Returns the four numbers that pixels are read as, which have an axis in front like their channels."""
        pixels = np.zeros((4, *channels.shape[1:]), self.numbers)
        pixels[3] = 1
        if self.is_normalized:
            most = np.float32(np.iinfo(self.dtype).max)
            channels = np.asarray(np.maximum(channels.astype(np.float32) / most, -1))
        pixels[: self.channels] = channels
        return pixels

    def held(self, values: NDArray[Any]) -> NDArray[Any]:
        """Returns what the channels make of values that are written."""
        if self.is_normalized:
            limits = np.iinfo(self.dtype)
            least = -1 if limits.min else 0
            values = np.nan_to_num(np.rint(np.clip(values, least, 1) * np.float32(limits.max)))
        elif self.dtype.kind != "f":
            limits = np.iinfo(self.dtype)
            values = np.clip(values, limits.min, limits.max)
        return values.astype(self.dtype)

    def bordered(self, pixels: NDArray[Any], inside: NDArray[np.bool_]) -> NDArray[Any]:
        """Returns pixels with those that are not inside of the image replaced by its border."""
        border = np.zeros((4, 1), pixels.dtype)
        border[3] = self.channels != 4
        return np.where(inside, pixels, border)

    def is_inside(self, places: Sequence[Integers]) -> NDArray[np.bool_]:
        """Returns whether places, by axis, are in the image."""
        inside = np.ones(len(places[0]), bool)
        for at, size in zip(places, self.sizes, strict=True):
            inside &= (at >= 0) & (at < size)
        return inside

    def numbers_of(self, places: Sequence[Integers]) -> Integers:
        """Returns the numbers of pixels in their order, by their places along the axes."""
        apart = [prod(self.sizes[:axis]) for axis in range(len(self.sizes))]
        return np.asarray(sum(at * step for at, step in zip(places, apart, strict=True)), np.int64)

    def near(self, places: Sequence[Integers]) -> list[Integers]:
        """Returns the places in the image that are nearest to some."""
        return [np.clip(at, 0, size - 1) for at, size in zip(places, self.sizes, strict=True)]

    def places(
        self, coordinates: Sequence[NDArray[Any]], flags: int, has_layers: bool, is_mixed: bool = False
    ) -> list[Place]:
        """Returns the pixels between which coordinates lie, for each axis.

        Args:
            coordinates: by axis, whole numbers or floats.
            flags: of the sampler.
            has_layers: whether the last coordinate is the number of an image among several.
            is_mixed: whether the pixels around are asked for, whatever the sampler's filter is.
        """
        found = []
        for axis, (along, size) in enumerate(zip(coordinates, self.sizes, strict=True)):
            if has_layers and axis == len(self.sizes) - 1:
                layers = np.clip(np.rint(along).astype(np.int64), 0, size - 1)
                found.append((layers, layers, np.zeros(len(along))))
            else:
                found.append(_along_axis(along, size, flags, is_mixed or bool(flags & LINEAR)))
        return found

    def at(self, places: Sequence[Integers], held: Callable[[Integers], NDArray[Any]]) -> NDArray[Any]:
        """Returns the four numbers that pixels at some places are read as, outside of the image those of the border.

        Args:
            held: returns the channels of pixels, a row for each, by their numbers.
        """
        channels = held(self.numbers_of(self.near(places)))
        return self.bordered(self.as_read(channels.T), self.is_inside(places))

    def mixed(self, places: Sequence[Place], held: Callable[[Integers], NDArray[Any]]) -> NDArray[Any]:
        """Returns the mean of the pixels around, by how near they are; see `at`."""
        total = np.zeros((4, len(places[0][0])))
        for sides in product((0, 1), repeat=len(places)):
            weight = np.ones(total.shape[1])
            for (_, _, share), side in zip(places, sides, strict=True):
                weight = weight * (share if side else 1 - share)
            total += weight * self.at(chosen(places, sides), held)
        return total


def chosen(places: Sequence[Place], sides: Sequence[int]) -> list[Integers]:
    """Returns the pixels on one side along each axis: the first one, or with a 1 the second."""
    return [second if side else first for (first, second, _), side in zip(places, sides, strict=True)]


def _along_axis(coordinates: NDArray[Any], size: int, flags: int, is_linear: bool) -> Place:
    """Returns the pixels along one axis between which coordinates lie."""
    none = np.zeros(len(coordinates))
    if coordinates.dtype.kind != "f":
        at = _addressed(coordinates.astype(np.int64), size, flags)
        return at, at, none
    u = coordinates.astype(np.float64)
    if flags & NORMALIZED:
        match flags & ADDRESSING:
            case 6:  # repeated
                u = (u - np.floor(u)) * size
            case 8:  # mirrored
                u = np.abs(u - 2 * np.rint(0.5 * u)) * size
            case _:
                u = u * size
    u = np.nan_to_num(u)
    if not is_linear:
        first = _addressed(np.floor(u).astype(np.int64), size, flags)
        return first, first, none
    first = np.floor(u - 0.5).astype(np.int64)
    share = u - 0.5 - first
    return _addressed(first, size, flags), _addressed(first + 1, size, flags), share


def _addressed(at: Integers, size: int, flags: int) -> Integers:
    """Returns the pixels along one axis that stand for some, which may lie outside."""
    match flags & ADDRESSING:
        case 2 | 8:  # to the edge; mirrored, they were brought inside before
            return np.clip(at, 0, size - 1)
        case 4:  # the border's pixels lie just outside
            return np.clip(at, -1, size)
        case 6:  # repeated
            return at % size
    return at
