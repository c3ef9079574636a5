"""Emulates PTX kernels at a launch, with arrays as given or random."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.errors import EmulationError, KernelError
from perfmodel.counting.resampling import SAMPLES
from perfmodel.device.buffers import random_values
from perfmodel.kernels.arguments import Array, Described, Image, Scalar, Struct, check_known
from perfmodel.kernels.array_contents import ArrayContents, whole_numbers
from perfmodel.kernels.launch import Launch as KernelLaunch
from perfmodel.kernels.struct_pointers import unfollowed
from perfmodel.ptx.code import Code
from perfmodel.ptx.emulation.bulk_copies import described
from perfmodel.ptx.emulation.emulation import Emulation, emulate
from perfmodel.ptx.emulation.execution import MOST_STEPS
from perfmodel.ptx.emulation.launch import Buffer, Given, Holder, Launch
from perfmodel.ptx.emulation.launch import Image as EmulatedImage
from perfmodel.ptx.emulation.memory import NOWHERE, PAGE
from perfmodel.ptx.parameters import parameters_of

MOST_PAGES = 4096
"""So many pages of random contents are kept, which larger samples of a launch, and others, touch again: 64 MB."""


def emulated(
    code: Code,
    launch: KernelLaunch,
    arrays: Mapping[str, Any] | None = None,
    groups: Any = "sample",
    width: int = 32,
    seed: int = 0,
    steps: int | None = None,
    extrapolate: bool = False,
    budget: float = math.inf,
    samples: int = SAMPLES,
    outstanding: Collection[int] = (),
) -> Emulation:
    """Emulates blocks of a kernel's launch.

    Args:
        arrays: what arrays hold, as numpy arrays or as words say it (`perfmodel.kernels.array_contents`); the others
            hold random numbers, as in a measurement.
        groups, width, seed, steps, extrapolate, budget, samples, outstanding: see
            `perfmodel.ptx.emulation.emulation.emulate`.
    """
    names = [array.name for array in launch.arrays()]
    variables = [each.name for each in code.kernel.variables.values() if each.space in ("global", "const")]
    check_known(launch.kernel_name, arrays or {}, [*names, *variables], "array")
    given: list[Given] = []
    for position, argument in enumerate(launch.arguments):
        match argument:
            case Described():
                buffer = _buffer(argument, (arrays or {}).get(argument.name), seed + position)
                given.append(replace(buffer, behind=map_bytes(argument)))
            case Array():
                given.append(_buffer(argument, (arrays or {}).get(argument.name), seed + position))
            case Scalar():
                given.append(argument.number.tobytes())
            case Struct():
                first = seed + len(launch.arguments)
                held = {
                    place: _buffer(array, (arrays or {}).get(array.name), first + names.index(array.name))
                    for array, place in zip(argument.arrays, argument.places, strict=True)
                }
                given.append(Holder(argument.contents, held) if held else argument.contents)
    grid = tuple(total // block for total, block in zip(launch.global_size, launch.local_size, strict=True))
    contents = {name: np.asarray(value) for name, value in (arrays or {}).items() if name not in names}
    shape = Launch(
        grid=grid, block=launch.local_size, arguments=tuple(given), shared=launch.shared_bytes, variables=contents
    )
    blocks, steps = _blocks(groups, grid), steps or MOST_STEPS
    try:
        return emulate(code, shape, blocks, width, seed, steps, extrapolate, budget, samples, outstanding)
    except EmulationError as error:
        if NOWHERE not in str(error) or not (hint := unfollowed(launch.arguments, parameters_of(code))):
            raise
        raise EmulationError(f"{error}, {hint}") from error


def _blocks(groups: Any, grid: tuple[int, ...]) -> Any:
    """Returns linear numbers of blocks that are given by their ids."""
    if isinstance(groups, str):
        return groups
    found = []
    for each in groups:
        ids = (each,) if isinstance(each, int) else tuple(each)
        linear, step = 0, 1
        for place, extent in zip(ids, grid, strict=False):
            linear += int(place) * step
            step *= extent
        found.append(linear)
    return found


def map_bytes(array: Described) -> bytes:
    """Returns the bytes of an array's tensor map behind its address."""
    item = np.dtype(array.dtype).itemsize
    strides = [item * stride for stride in array.strides[-2::-1]]
    return described(array.element, array.swizzle, array.box[::-1], array.sizes[::-1], strides)


def _buffer(array: Array, content: Any, seed: int) -> Buffer:
    """Returns an array with its contents, or with random ones."""
    if isinstance(array, Image):
        plain = Array(array.name, array.dtype, array.extent)
        return replace(_buffer(plain, content, seed), image=EmulatedImage(array.pixels, array.flags))
    dtype = np.dtype(array.dtype)
    n_bytes = array.size * dtype.itemsize
    if content is None:
        return Buffer(array.name, n_bytes, None, _random(dtype, seed, ()))
    if isinstance(content, ArrayContents):
        if content.array is not None:
            content = content.array
        else:
            is_random = content.kind == "random"
            fill = _random(content.dtype or dtype, seed, content.bounds) if is_random else None
            return Buffer(array.name, n_bytes, None, fill)
    found = np.ascontiguousarray(content)
    if found.nbytes != n_bytes:
        raise KernelError(
            f"array {array.name!r} holds {array.size} numbers of {array.dtype}, {n_bytes} bytes, and is given "
            f"{found.nbytes} bytes; give an array of these"
        )
    return Buffer(array.name, n_bytes, found)


def _random(dtype: np.dtype[Any], seed: int, bounds: tuple[float, ...]) -> Callable[[NDArray[np.uint8], int], None]:
    def fill(page: NDArray[np.uint8], number: int) -> None:
        page[:] = _random_page(dtype, seed, bounds, number)[: len(page)]

    return fill


@lru_cache(MOST_PAGES)
def _random_page(dtype: np.dtype[Any], seed: int, bounds: tuple[float, ...], number: int) -> NDArray[np.uint8]:
    random = np.random.default_rng([seed, number])
    count = PAGE // dtype.itemsize
    if not bounds:
        values = random_values(random, dtype.name, count)
    elif dtype.kind == "f":
        values = random.uniform(bounds[0], bounds[1], count).astype(dtype)
    else:
        values = whole_numbers(random, bounds, count).astype(dtype)
    return np.ascontiguousarray(values).view(np.uint8)
