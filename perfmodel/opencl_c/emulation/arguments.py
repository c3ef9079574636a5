"""A kernel's arguments are what users give; here they come into the emulated memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.errors import KernelError, nearest
from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c.emulation.address_space import CONSTANTS
from perfmodel.opencl_c.emulation.footprints import Bytes
from perfmodel.opencl_c.emulation.images import Image, ImageBuffer
from perfmodel.opencl_c.emulation.lanes import Values
from perfmodel.opencl_c.emulation.memory import (
    Buffer,
    Copied,
    Region,
    Scattered,
    ScatteredStructs,
    Source,
    Unwritten,
    drawn,
)
from perfmodel.opencl_c.types import (
    SAMPLER,
    UINT,
    Pointer,
    Record,
    Scalar,
    Type,
    Vector,
    Void,
    element_of,
    numbers_within,
    width_of,
)
from perfmodel.opencl_c.types import Image as ImageType


@dataclass(frozen=True)
class LocalBytes:
    """A parameter that points to local memory is given its size so."""

    size: int


@dataclass(frozen=True)
class Zeros:
    """This argument is a buffer of so many elements of the parameter's type, all zero, in memory only where touched."""

    length: int


@dataclass(frozen=True)
class Random:
    """This argument is a buffer of so many elements with random numbers from `low` up to, but without, `high`.

    They depend on `seed` and their position only. Without `high` it is 1 for floats and 100 for integers; structs then
    have floats from 0.5 to 1.5 and whole numbers from 1 to 7. `dtype` is their type where the parameter's says none.
    """

    length: int
    seed: int = 0
    low: float = 0.0
    high: float | None = None
    dtype: np.dtype[Any] | None = None


Argument: TypeAlias = "NDArray[Any] | np.generic | int | float | bool | bytes | LocalBytes | Zeros | Random | Image"


@dataclass
class Bound:
    """Holds all arguments of a launch.

    Attributes:
        buffers: by parameter. constants: the program's tables and variables.
        locals: of each parameter in local memory, where it starts and ends in the frame; `local_bytes` is the frame's.
        values: what registers of parameters start with, by position.
        private: bytes of parameters that lie in private memory, by position.
    """

    constants: Buffer
    local_bytes: int
    buffers: dict[str, Buffer] = field(default_factory=dict)
    locals: dict[str, tuple[int, int]] = field(default_factory=dict)
    values: dict[int, Values] = field(default_factory=dict)
    private: dict[int, Bytes] = field(default_factory=dict)


class UserMemory(Buffer):
    """This buffer is the user's own array."""

    def __init__(self, name: str, number: int, data: Bytes) -> None:
        super().__init__(name, number, 0, None)
        Region.__init__(self, name, self.origin, len(data), data)


def bind(kernel: low.LoweredKernel, arguments: Mapping[str, Argument], write_back: bool) -> Bound:
    """Checks arguments and puts them into memory.

    Raises:
        KernelError: one is missing, unknown, or doesn't fit its parameter.
    """
    names = [parameter.name for parameter in kernel.parameters]
    for name in arguments:
        if name not in names:
            raise KernelError(f"kernel '{kernel.name}' has no parameter {name!r}{nearest(name, names)}")
    bound = Bound(_constants(kernel), -(-kernel.local_bytes // 128) * 128)
    written = {access.variable for access in kernel.accesses if access.direction != "load" and access.space == "global"}
    shared: dict[object, Buffer] = {}
    for position, parameter in enumerate(kernel.parameters):
        if parameter.name not in arguments:
            raise KernelError(f"parameter '{parameter.name}' of kernel '{kernel.name}' has no argument; give one")
        argument = arguments[parameter.name]
        what = f"argument '{parameter.name}' of kernel '{kernel.name}'"
        if isinstance(parameter.type, ImageType):
            if not isinstance(argument, Image):
                raise KernelError(f"{what} is an image; give Image(array)")
            number = CONSTANTS + 1 + position
            bound.buffers[parameter.name] = ImageBuffer(parameter.name, number, argument, parameter.type)
            bound.values[position] = np.int64(bound.buffers[parameter.name].origin)
        elif parameter.type == SAMPLER:
            _bind_value(bound, position, UINT, argument, what)
        elif not isinstance(parameter.type, Pointer):
            _bind_value(bound, position, parameter.type, argument, what)
        elif parameter.type.space == "local":
            if not isinstance(argument, LocalBytes) or argument.size < 0:
                raise KernelError(f"{what} points to local memory; give its size as LocalBytes(...)")
            bound.locals[parameter.name] = bound.local_bytes, bound.local_bytes + argument.size
            bound.values[position] = np.int64(bound.local_bytes)
            bound.local_bytes += -(-argument.size // 128) * 128
        else:
            number = CONSTANTS + 1 + position
            memory = _memory(argument)
            buffer = shared.get(memory) if memory is not None else None
            if buffer is None:
                is_written = bool(written & {parameter.name, None})
                if memory is not None and [_memory(each) for each in arguments.values()].count(memory) > 1:
                    is_written = bool(written)
                buffer = _buffer(parameter, number, argument, what, is_written, write_back)
                if memory is not None:
                    shared[memory] = buffer
            else:
                _check_array(parameter.type.target, np.asarray(argument), what)
            bound.buffers[parameter.name] = buffer
            bound.values[position] = np.int64(buffer.origin)
        if isinstance(parameter.type, Pointer):
            bound.private[position] = np.array([bound.values[position]]).view(np.uint8)
    return bound


def _memory(argument: Argument) -> object:
    """Returns what arrays have in common that are the same memory."""
    if not isinstance(argument, np.ndarray) or not argument.size:
        return None
    order = None if argument.flags.c_contiguous else argument.strides
    return argument.__array_interface__["data"][0], argument.nbytes, order


def _constants(kernel: low.LoweredKernel) -> Buffer:
    buffer = Buffer("constant memory", CONSTANTS, kernel.constant_bytes, None)
    for object_ in kernel.objects:
        if not object_.is_of_program:
            continue
        for offset, type_, value in object_.initial:
            data = _bytes_of(type_, value)
            start = object_.offset + offset
            buffer.data[start : start + len(data)] = data
    return buffer


def _bytes_of(type_: Type, value: Any) -> Bytes:
    if isinstance(type_, Pointer):
        return np.array([value], np.int64).view(np.uint8)
    dtype = element_of(type_).numpy
    numbers = np.broadcast_to(np.asarray(value), (width_of(type_),))
    if dtype.kind in "iu":
        numbers = np.array([int(number) & ((1 << 8 * dtype.itemsize) - 1) for number in numbers.tolist()], np.uint64)
    return np.ascontiguousarray(numbers.astype(dtype)).view(np.uint8)


# --- values


def _bind_value(bound: Bound, position: int, type_: Type, argument: Argument, what: str) -> None:
    if isinstance(type_, Record):
        data = _record(type_, argument, what)
    elif isinstance(type_, Vector):
        if isinstance(argument, bytes):  # as a launch has it
            argument = np.frombuffer(argument, type_.element.numpy)[: type_.width]
        numbers = _numbers(type_.element, argument, what)
        if numbers.shape != (type_.width,):
            raise KernelError(f"{what} is a {type_}, so give {type_.width} numbers")
        bound.values[position] = numbers[:, np.newaxis]
        data = numbers.view(np.uint8)
    elif isinstance(type_, Scalar):
        number = _numbers(type_, argument, what)
        if number.shape != ():
            raise KernelError(f"{what} is a {type_}, so give one number instead of an array")
        bound.values[position] = number[()]
        data = number.reshape(1).view(np.uint8)
    else:
        raise KernelError(f"{what} has type {type_}, which cannot be an argument")
    bound.private[position] = data


def number_at(data: Bytes, offset: int, type_: Type) -> Values:
    """Returns the scalar or vector that lies at an offset of a struct, as registers hold it."""
    width, element = width_of(type_), element_of(type_)
    numbers = data[offset : offset + width * element.size].copy().view(element.numpy)
    found: Values = numbers[:, np.newaxis] if isinstance(type_, Vector) else numbers[0]
    return found


def _record(type_: Record, argument: Argument, what: str) -> Bytes:
    if isinstance(argument, bytes):
        data = np.frombuffer(argument, np.uint8)
    elif isinstance(argument, np.ndarray | np.generic) and np.asarray(argument).dtype != object:
        data = np.frombuffer(np.ascontiguousarray(argument).tobytes(), np.uint8)
    else:
        raise KernelError(f"{what} is a {type_}; give its {type_.size} bytes, as bytes or a numpy record")
    if len(data) != type_.size:
        raise KernelError(f"{what} is a {type_} of {type_.size} bytes, but has {len(data)}")
    return data


def _numbers(type_: Scalar, argument: Argument, what: str) -> NDArray[Any]:
    if not isinstance(argument, Real | np.ndarray | np.generic | list | tuple):
        raise KernelError(f"{what} is a {type_}, so give a number instead of {argument!r}")
    given = np.asarray(argument)
    if given.dtype.kind not in "biuf" or (given.dtype.kind == "f" and not type_.is_float):
        raise KernelError(f"{what} is a {type_}, so give such a number instead of {argument!r}")
    if not type_.is_float:
        limits = _limits(type_.numpy)
        for number in given.ravel().tolist():
            if not limits.min <= int(number) <= limits.max:
                raise KernelError(f"{what} is a {type_}, which cannot hold {number}")
    return given.astype(type_.numpy)


_limits = cache(np.iinfo)


# --- buffers


def _buffer(
    parameter: low.Parameter, number: int, argument: Argument, what: str, is_written: bool, write_back: bool
) -> Buffer:
    assert isinstance(parameter.type, Pointer)
    target = parameter.type.target
    if isinstance(argument, Zeros | Random):
        if argument.length < 0:
            raise KernelError(f"{what} has a length of {argument.length}; give at least 0")
        size = argument.length * (1 if isinstance(target, Void) else target.size)
        source: Source | None = None
        if isinstance(argument, Random):
            source = drawn(_random(target, argument, what), size)
            if not is_written:
                return Unwritten(parameter.name, number, size, source)
        return Buffer(parameter.name, number, size, source)
    if not isinstance(argument, np.ndarray):
        raise KernelError(f"{what} is a pointer; give an array, Zeros(...) or Random(...) instead of {argument!r}")
    _check_array(target, argument, what)
    if write_back and is_written and not (argument.flags.c_contiguous and argument.flags.writeable):
        raise KernelError(f"{what} is to be written back, but is not contiguous or not writeable; give a copy of it")
    data = np.ascontiguousarray(argument).reshape(-1).view(np.uint8)
    if write_back or not is_written:
        return UserMemory(parameter.name, number, data)
    return Buffer(parameter.name, number, len(data), Copied(data))


def _random(target: Type, given: Random, what: str) -> Source:
    """Returns random numbers of the type that a parameter points to."""
    if given.dtype is not None or isinstance(target, Scalar | Vector):
        dtype = element_of(target).numpy if given.dtype is None else given.dtype
        high = given.high if given.high is not None else (1.0 if dtype.kind == "f" else 100)
        return Scattered(dtype, given.seed, given.low, high)
    numbers: list[tuple[int, Scattered]] = []
    for _, start, number in numbers_within(target):
        if isinstance(number, Pointer):
            continue
        element = element_of(number)
        usual = (0.5, 1.5) if element.is_float else (1, 8)
        low_, high = usual if given.high is None else (given.low, given.high)
        source = Scattered(element.numpy, given.seed, low_, high)
        numbers += [(start + position * element.size, source) for position in range(width_of(number))]
    if not numbers:
        raise KernelError(f"{what} points to {target}, which says no type of numbers; give an array")
    return ScatteredStructs(target.size, tuple(numbers))


def _check_array(target: Type, argument: NDArray[Any], what: str) -> None:
    if isinstance(target, Scalar | Vector):
        element = element_of(target)
        kinds = {argument.dtype.kind, element.numpy.kind}
        if argument.dtype.itemsize != element.size or (len(kinds) > 1 and not kinds <= set("biu")):
            raise KernelError(
                f"{what} holds {argument.dtype} numbers, but points to {target}; give an array of {element.numpy}"
            )
    if argument.dtype.hasobject:
        raise KernelError(f"{what} holds Python objects; give an array of numbers")
    if not isinstance(target, Void) and argument.nbytes % target.size and not isinstance(target, Vector):
        raise KernelError(f"{what} has {argument.nbytes} bytes, which are no whole number of {target}")
