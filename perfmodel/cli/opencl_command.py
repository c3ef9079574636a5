"""Makes the kernel of a ``.cl`` file that the command line describes."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from perfmodel.basics.errors import KernelError, nearest
from perfmodel.cli.options import ARGUMENT_FORMS
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.opencl_file import declared_arguments, read_source, unit_of
from perfmodel.kernels.opencl_program import Array, OpenCLProgram
from perfmodel.opencl_c import lowered_kernel
from perfmodel.opencl_c.emulation import Random, Zeros
from perfmodel.opencl_c.types import Pointer


def source_kernel(path: str, parsed: argparse.Namespace) -> tuple[Kernel, dict[str, Any]]:
    """Returns the kernel of a file that a command's options describe, and what its arrays hold, for
    `perfmodel.emulate`.

    Raises:
        KernelError: for options that are missing or not understood; SourceError for what cannot be read.
    """
    text, file = read_source(Path(path), parsed.include)
    name = parsed.kernel or _only_kernel(text, file, parsed.option)
    for option, given in (("--global", parsed.global_size), ("--local", parsed.local_size)):
        if not given:
            raise KernelError(f"{path} needs {option}; write the work-items by axis, as {option} 1024,1024")
    lowered = lowered_kernel(text, name, parsed.option, (), file)
    types = {parameter.name: parameter.type for parameter in lowered.parameters}
    arrays: dict[str, _GivenArray] = {}
    scalars: dict[str, float] = {}
    for argument, value in _pairs(parsed.arg, "--arg").items():
        if argument not in types:
            raise KernelError(
                f"--arg {argument}: kernel {name!r} has no such argument{nearest(argument, types)} (it has "
                f"{', '.join(types) or 'none'})"
            )
        if isinstance(types[argument], Pointer):
            arrays[argument] = _array(argument, value)
        else:
            scalars[argument] = _number(f"--arg {argument}", value)
    declared = [
        _of_dtype(argument, arrays[argument.name], name) if isinstance(argument, Array) else argument
        for argument in declared_arguments(lowered, {each: given.elements for each, given in arrays.items()})
    ]
    statistics = _pairs(parsed.statistic, "--statistic")
    global_size, local_size = (given.split(",") for given in (parsed.global_size, parsed.local_size))
    numbers = {key: _number(f"--statistic {key}", value) for key, value in statistics.items()}
    program = OpenCLProgram(text, name, global_size, local_size, declared, parsed.option, parsed.assume, numbers)
    kernel = Kernel(program, {"generator": name}, None, **scalars)
    return kernel, _contents(kernel, program, arrays)


@dataclass(frozen=True)
class _GivenArray:
    """Holds what an option says of an array.

    Attributes:
        dtype: of its elements; None for that of the source.
        elements: as an expression over the sizes.
        content: how it is filled: "", ``zeros``, ``random``, or the array itself.
        bounds: of random numbers.
    """

    dtype: str | None
    elements: str | int
    content: str | np.ndarray[Any, Any] = ""
    bounds: tuple[float, ...] = ()


def _contents(kernel: Kernel, program: OpenCLProgram, arrays: Mapping[str, _GivenArray]) -> dict[str, Any]:
    """Returns what arrays hold, of those of which it is said; how long they are is known once all sizes are."""
    given = {name: array for name, array in arrays.items() if not isinstance(array.content, str) or array.content}
    if not given or len(kernel.sizes) < len(program.sizes):
        return {}
    types = {parameter.name: parameter.type for parameter in program.lowered.parameters}
    launched = {argument.name: argument for argument in kernel.launch().arrays()}
    found: dict[str, Any] = {}
    for position, (name, array) in enumerate(given.items()):
        type_ = types[name]
        assert isinstance(type_, Pointer)
        length = launched[name].size * np.dtype(launched[name].dtype).itemsize // type_.target.size
        if not isinstance(array.content, str):
            found[name] = array.content
        elif array.content == "zeros":
            found[name] = Zeros(length)
        elif array.bounds:
            found[name] = Random(length, position, *array.bounds)
    return found


def _only_kernel(text: str, file: str, options: Sequence[str]) -> str:
    kernels = unit_of(text, tuple(options), file).kernels
    if len(kernels) != 1:
        raise KernelError(f"{file} has {len(kernels)} kernels ({', '.join(kernels) or 'none'}); name one by --kernel")
    return kernels[0]


def _pairs(given: Sequence[str], option: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in given:
        name, mark, value = pair.partition("=")
        if not mark or not value or not name.isidentifier():
            raise KernelError(f"{option} {pair!r} gives no value; write {option} NAME=VALUE")
        if name in found:
            raise KernelError(f"{option} {name} is given twice; give it once")
        found[name] = value
    return found


def _number(what: str, text: str) -> float:
    try:
        return int(text, 0)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError as error:
        raise KernelError(f"{what}={text} is no number; write one, such as 1024 or 0.5") from error


def _array(name: str, text: str) -> _GivenArray:
    kind, *parts = text.split(":")
    if kind in ("random", "zeros"):
        if len(parts) not in ((2, 4) if kind == "random" else (2,)):
            raise KernelError(f"--arg {name}={text} is not understood; write {ARGUMENT_FORMS}")
        try:
            dtype = np.dtype(parts[0]).name
        except TypeError as error:
            raise KernelError(f"--arg {name}={text}: {parts[0]!r} is no type of numbers; write float32 …") from error
        low_and_high = tuple(_number(f"--arg {name}", bound) for bound in parts[2:])
        return _GivenArray(dtype, parts[1], kind, low_and_high)
    if text.endswith(".npy"):
        try:
            content = np.load(text, allow_pickle=False)
        except (OSError, ValueError) as error:
            raise KernelError(f"--arg {name}: {text} cannot be read; give a file that numpy.save wrote") from error
        return _GivenArray(content.dtype.name, content.size, content)
    if ":" in text:
        raise KernelError(f"--arg {name}={text} is not understood; write {ARGUMENT_FORMS}")
    return _GivenArray(None, text)


def _of_dtype(argument: Array, given: _GivenArray, kernel: str) -> Array:
    if given.dtype is None:
        return argument
    if given.dtype != argument.dtype and argument.dtype != "uint8":  # which structs are given as
        raise KernelError(
            f"--arg {argument.name} is an array of {given.dtype}, but argument {argument.name!r} of kernel {kernel!r} "
            f"is one of {argument.dtype}; write that"
        )
    return Array(argument.name, given.dtype, given.elements, argument.is_output)
