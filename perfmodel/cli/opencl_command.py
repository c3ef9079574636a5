"""Makes the kernels of ``.cl`` files that the command line describes, and what options say of arguments."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from perfmodel.basics.errors import KernelError
from perfmodel.cli.arguments import array_said, by_value, check_dtype, check_launch, no_such_argument, pairs
from perfmodel.kernels.arguments import Array, scalars_of
from perfmodel.kernels.arguments import Image as ImageArgument
from perfmodel.kernels.array_contents import ArrayContents, number_said
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.opencl_file import declared_arguments, kernel_of, read_source, unit_of
from perfmodel.kernels.opencl_program import OpenCLProgram
from perfmodel.kernels.ptx_program import PtxProgram
from perfmodel.kernels.size_expression import SizeExpression
from perfmodel.kernels.source_words import is_cuda, split
from perfmodel.opencl_c.types import Image, Pointer, Record, Sampler, Vector


def kernels_of(path: str, parsed: argparse.Namespace) -> dict[str, str]:
    """Returns the kernels of a file by name, each with its arguments.

    Raises:
        SourceError: for what cannot be read.
    """
    text, _ = read_source(Path(path), parsed.include)
    names = unit_of(text, tuple(parsed.option)).kernels
    if not names:
        raise KernelError(f"{path} defines no kernel; give it a function that is declared as __kernel void")
    found = {name: kernel_of(text, name, parsed.option).parameters for name in names}
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
    lowered = kernel_of(text, name, parsed.option)
    launch = {"--global 1024,1024": parsed.global_size, "--local 16,16": parsed.local_size}
    check_launch(path, launch, "the work-items")
    types = {parameter.name: parameter.type for parameter in lowered.parameters}
    arrays: dict[str, ArrayContents] = {}
    extents: dict[str, int | str] = {}
    others: dict[str, str] = {}
    for argument, value in pairs(parsed.arg, "--arg").items():
        type_ = types.get(argument)
        if isinstance(type_, Image | Sampler):
            extents[argument] = value
        elif isinstance(type_, Pointer):
            arrays[argument] = said = array_said(argument, value)
            extents[argument] = said.elements(type_.target.size)
        else:
            others[argument] = value
    declared = declared_arguments(lowered, extents)
    for array in declared:
        if isinstance(array, Array) and array.name in arrays:
            check_dtype(array, arrays[array.name], name)
    numbers = {scalar.name for argument in declared for scalar in scalars_of(argument)}
    scalars: dict[str, Any] = {}
    for argument, value in others.items():
        if argument in types or argument in numbers:
            scalars[argument] = by_value(f"--arg {argument}", value)
        elif not shared:
            raise no_such_argument(argument, name, types)
    statistics = pairs(parsed.statistic, "--statistic")
    global_size, local_size = (given.split(",") for given in (parsed.global_size, parsed.local_size))
    expected = {key: number_said(f"--statistic {key}", value) for key, value in statistics.items()}
    program = OpenCLProgram(text, name, global_size, local_size, declared, parsed.option, parsed.assume, expected)
    return with_budget(Kernel(program, {"generator": name}, None, **scalars), parsed)


def source_kernels(paths: Sequence[str], parsed: argparse.Namespace, shared: bool = False) -> list[Kernel]:
    """Returns the kernels of several files; those of one name are told apart by their files."""
    kernels = [with_budget(_made(path, parsed, shared or len(paths) > 1), parsed) for path in paths]
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


def _made(path: str, parsed: argparse.Namespace, shared: bool) -> Kernel:
    """Returns the kernel of a file of any language."""
    if is_cuda(path):
        from perfmodel.cli import cuda_command  # slow to import, and only for CUDA

        return cuda_command.source_kernel(path, parsed, shared)
    return source_kernel(path, parsed, shared)


def with_budget(kernel: Kernel, parsed: argparse.Namespace) -> Kernel:
    """Returns a kernel with the budget for counting that options give, where the command has one."""
    budget = getattr(parsed, "counting_budget", None)
    return kernel if budget is None else kernel.with_budget(budget)


def with_arguments(kernel: Kernel, parsed: argparse.Namespace, shared: bool = False) -> Kernel:
    """Returns a kernel that says itself how it is launched, with the numbers that options give its scalar arguments.

    Args:
        shared: see `source_kernel`.
    """
    if not parsed.arg or isinstance(kernel.program, PtxProgram):
        return kernel
    numbers: dict[str, Any] = {}
    types = {p.name: p.type for p in kernel.program.as_opencl().lowered.parameters}
    for argument, value in pairs(parsed.arg, "--arg").items():
        if argument in kernel.program.arguments or isinstance(types.get(argument), Record | Vector):
            numbers[argument] = by_value(f"--arg {argument}", value)
        elif shared:
            continue
        elif argument not in types:
            raise no_such_argument(argument, kernel.name, types)
        elif not array_said(argument, value).kind:
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
    for argument in pairs(parsed.arg, "--arg"):
        if argument not in names:
            raise no_such_argument(argument, kernels[-1].name, names)


def argument_names(kernel: Kernel) -> list[str]:
    """Returns the names of all arguments of a kernel, in the source's order."""
    if isinstance(kernel.program, PtxProgram):
        return [*(each.name for each in kernel.program.declared), *kernel.program.arguments]
    return [parameter.name for parameter in kernel.program.as_opencl().lowered.parameters]


def contents(kernel: Kernel, parsed: argparse.Namespace) -> dict[str, Any]:
    """Returns what arrays hold, those of which options say it, for `perfmodel.emulate`; nothing before all sizes are
    known."""
    found: dict[str, Any] = {}
    if not parsed.arg or len(kernel.sizes) < len(kernel.program.sizes):
        return {}
    if isinstance(kernel.program, PtxProgram):
        from perfmodel.cli import cuda_command  # slow to import, and only for CUDA

        return cuda_command.contents(kernel, pairs(parsed.arg, "--arg"))
    launched = {
        argument.name: argument for argument in kernel.launch().arrays() if not isinstance(argument, ImageArgument)
    }
    given = {name: array_said(name, text) for name, text in pairs(parsed.arg, "--arg").items() if name in launched}
    if not any(said.kind for said in given.values()):
        return {}

    types = {parameter.name: parameter.type for parameter in kernel.program.as_opencl().lowered.parameters}
    for name, said in given.items():
        type_ = types.get(name)
        if not said.kind or not isinstance(type_, Pointer):
            continue
        check_dtype(launched[name], said, kernel.name)
        length = launched[name].size * np.dtype(launched[name].dtype).itemsize // type_.target.size
        extent = SizeExpression(f"--arg {name}", said.elements(type_.target.size), kernel.program.sizes)
        if said.array is None and extent.at(kernel.sizes) != length:
            raise KernelError(
                f"--arg {name} has {extent.at(kernel.sizes)} elements, and that of kernel {kernel.name!r} {length}; "
                "give these"
            )
        found[name] = said
    return found


def countable(kernel: Kernel, parsed: argparse.Namespace) -> Kernel:
    """Returns a kernel to be counted: where data decide what it does, as observed on what options say of arrays."""
    given = contents(kernel, parsed)
    return kernel.as_countable(given) if given else kernel


def _only_kernel(text: str, file: str, options: Sequence[str]) -> str:
    kernels = unit_of(text, tuple(options)).kernels
    if not kernels:
        raise KernelError(f"{file} has no kernel; give a file with a function that is declared __kernel void")
    if len(kernels) != 1:
        raise KernelError(f"{file} has {len(kernels)} kernels ({', '.join(kernels)}); name one by --kernel")
    return kernels[0]
