"""Makes the kernels of ``.cl`` files that the command line describes, and what options say of arguments."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from perfmodel.basics.errors import KernelError, nearest
from perfmodel.cli.options import ARGUMENT_FORMS
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.opencl_file import declared_arguments, read_source, split, unit_of
from perfmodel.kernels.opencl_program import Array, OpenCLProgram
from perfmodel.kernels.size_expression import SizeExpression
from perfmodel.opencl_c import lowered_kernel
from perfmodel.opencl_c.emulation import Random, Zeros
from perfmodel.opencl_c.types import Pointer


def kernels_of(path: str, parsed: argparse.Namespace) -> dict[str, str]:
    """Returns the kernels of a file by name, each with its arguments.

    Raises:
        SourceError: for what cannot be read.
    """
    text, file = read_source(Path(path), parsed.include)
    names = unit_of(text, tuple(parsed.option), file).kernels
    if not names:
        raise KernelError(f"{path} defines no kernel; give it a function that is declared as __kernel void")
    found = {name: lowered_kernel(text, name, parsed.option, (), file).parameters for name in names}
    return {name: f"kernel ({', '.join(each.name for each in parameters)})" for name, parameters in found.items()}


def source_kernel(path: str, parsed: argparse.Namespace, shared: bool = False) -> Kernel:
    """Returns the kernel of a ``FILE.cl`` or ``FILE.cl:KERNEL`` that a command's options describe.

    Args:
        shared: whether the options are those of other kernels, too, and may name arguments that this one has not.

    Raises:
        KernelError: for options that are missing or not understood; SourceError for what cannot be read.
    """
    path, named = split(path)
    text, file = read_source(Path(path), parsed.include)
    name = named or parsed.kernel or _only_kernel(text, file, parsed.option)
    for option, given in (("--global", parsed.global_size), ("--local", parsed.local_size)):
        if not given:
            raise KernelError(f"{path} needs {option}; write the work-items by axis, as {option} 1024,1024")
    lowered = lowered_kernel(text, name, parsed.option, (), file)
    types = {parameter.name: parameter.type for parameter in lowered.parameters}
    arrays: dict[str, _GivenArray] = {}
    scalars: dict[str, float] = {}
    for argument, value in _pairs(parsed.arg, "--arg").items():
        if argument not in types:
            if shared:
                continue
            raise _no_such_argument(argument, name, types)
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
    return Kernel(program, {"generator": name}, None, **scalars)


def source_kernels(paths: Sequence[str], parsed: argparse.Namespace, shared: bool = False) -> list[Kernel]:
    """Returns the kernels of several files; those of one name are told apart by their files."""
    kernels = [source_kernel(path, parsed, shared or len(paths) > 1) for path in paths]
    names = [kernel.name for kernel in kernels]
    return [
        Kernel(
            kernel.program,
            {"generator": f"{Path(split(path)[0]).name}:{kernel.name}"},
            None,
            **kernel.bound,
        )
        if names.count(kernel.name) > 1
        else kernel
        for path, kernel in zip(paths, kernels, strict=True)
    ]


def with_arguments(kernel: Kernel, parsed: argparse.Namespace, shared: bool = False) -> Kernel:
    """Returns a kernel that says itself how it is launched, with the numbers that options give its scalar arguments.

    Args:
        shared: see `source_kernel`.
    """
    if not parsed.arg:
        return kernel
    numbers: dict[str, float] = {}
    for argument, value in _pairs(parsed.arg, "--arg").items():
        if argument in kernel.program.arguments:
            numbers[argument] = _number(f"--arg {argument}", value)
        elif shared:
            continue
        elif argument not in (names := argument_names(kernel)):
            raise _no_such_argument(argument, kernel.name, names)
        elif not _array(argument, value).content_is_said:
            raise KernelError(
                f"kernel {kernel.name!r} says itself how many elements {argument!r} has; leave --arg {argument} out"
            )
    return kernel.at(**numbers)


def check_arguments(kernels: Sequence[Kernel], parsed: argparse.Namespace) -> None:
    """Refuses a value for an argument that none of several kernels has."""
    if not parsed.arg:
        return
    programs = {id(kernel.program): kernel for kernel in kernels}
    names = list(dict.fromkeys(name for kernel in programs.values() for name in argument_names(kernel)))
    for argument in _pairs(parsed.arg, "--arg"):
        if argument not in names:
            raise _no_such_argument(argument, kernels[-1].name, names)


def argument_names(kernel: Kernel) -> list[str]:
    """Returns the names of all arguments of a kernel, in the source's order."""
    return [parameter.name for parameter in kernel.program.as_opencl().lowered.parameters]


def _no_such_argument(argument: str, kernel: str, known: Iterable[str]) -> KernelError:
    return KernelError(
        f"--arg {argument}: kernel {kernel!r} has no such argument{nearest(argument, known)} (it has "
        f"{', '.join(known) or 'none'})"
    )


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

    @property
    def content_is_said(self) -> bool:
        return not isinstance(self.content, str) or bool(self.content)


def contents(kernel: Kernel, parsed: argparse.Namespace) -> dict[str, Any]:
    """Returns what arrays hold, those of which options say it, for `perfmodel.emulate`; nothing before all sizes are
    known."""
    found: dict[str, Any] = {}
    if not parsed.arg or len(kernel.sizes) < len(kernel.program.sizes):
        return {}
    types = {parameter.name: parameter.type for parameter in kernel.program.as_opencl().lowered.parameters}
    launched = {argument.name: argument for argument in kernel.launch().arrays()}
    position = 0
    for name, text in _pairs(parsed.arg, "--arg").items():
        type_ = types.get(name)
        if name not in launched or not isinstance(type_, Pointer):
            continue
        array = _array(name, text)
        if not array.content_is_said:
            continue
        dtype = launched[name].dtype
        if array.dtype not in (None, dtype) and dtype != "uint8":
            raise _wrong_dtype(name, str(array.dtype), dtype, kernel.name)
        length = launched[name].size * np.dtype(dtype).itemsize // type_.target.size
        said = SizeExpression(f"--arg {name}", array.elements, kernel.program.sizes).at(kernel.sizes)
        if isinstance(array.content, str) and said != length:
            raise KernelError(
                f"--arg {name} has {said} elements, and that of kernel {kernel.name!r} {length}; give these"
            )
        if not isinstance(array.content, str):
            found[name] = array.content
        elif array.content == "zeros":
            found[name] = Zeros(length)
        elif array.bounds:
            found[name] = Random(length, position, *array.bounds)
        position += 1
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
        raise _wrong_dtype(argument.name, given.dtype, str(argument.dtype), kernel)
    return Array(argument.name, given.dtype, given.elements, argument.is_output)


def _wrong_dtype(argument: str, given: str, dtype: str, kernel: str) -> KernelError:
    return KernelError(
        f"--arg {argument} is an array of {given}, but argument {argument!r} of kernel {kernel!r} is one of {dtype}; "
        "write that"
    )
