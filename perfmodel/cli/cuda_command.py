"""Makes the kernels of ``.cu`` and ``.ptx`` files that the command line describes."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from perfmodel.basics.errors import KernelError
from perfmodel.cli.arguments import array_said, by_value, check_dtype, check_launch, no_such_argument, pairs
from perfmodel.kernels.arguments import Array, Struct
from perfmodel.kernels.array_contents import number_said
from perfmodel.kernels.cuda_file import cuda_kernel, cuda_text, ptx_kernel
from perfmodel.kernels.cuda_source import kernels_in
from perfmodel.kernels.given_source import CUDA, PTX, given_text, read_as
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.ptx_program import PtxProgram
from perfmodel.kernels.source_words import split
from perfmodel.kernels.struct_words import listed_words
from perfmodel.ptx.reading.reader import read


def kernels_of(path: str, parsed: argparse.Namespace) -> dict[str, str]:
    """Returns the kernels of a file by name, each with its arguments.

    Raises:
        KernelError: for a file that cannot be read; SourceError for what is no PTX.
    """
    if path.endswith(".ptx"):
        text, _ = given_text(Path(path), PTX)
        functions = read(text).functions
        found = {name: [each.name for each in functions[name].parameters] for name in read(text).entries}
    else:
        text = cuda_text(path, parsed.include)
        found = {name: [each.name for each in arguments] for name, arguments in kernels_in(text).items()}
    with read_as(PTX if path.endswith(".ptx") else CUDA, text):
        if not found:
            raise KernelError(f"{path} defines no kernel; give it a function that is declared as __global__ void")
    return {name: f"kernel ({', '.join(arguments)})" for name, arguments in found.items()}


def source_kernel(path: str, parsed: argparse.Namespace, shared: bool = False) -> Kernel:
    """Returns the kernel of a ``FILE.cu`` or ``FILE.cu:KERNEL`` that a command's options describe; of PTX likewise.

    Args:
        shared: whether the options are those of other kernels, too, and may name arguments that this one has not.

    Raises:
        KernelError: for options that are missing or not understood; SourceError for what cannot be read.
    """
    path, named = split(path)
    name = named or parsed.kernel
    is_ptx = path.endswith(".ptx")
    source = ptx_kernel(Path(path), name) if is_ptx else cuda_kernel(Path(path), name, parsed.option, parsed.include)
    launch = {"--grid '(n+255)/256'": parsed.grid, "--block 256": parsed.block_size}
    check_launch(path, launch, "blocks and threads")
    texts = pairs(parsed.arg, "--arg")
    names = [each.name for each in source.declared]
    numbers = {name: _number_or_text(text) for name, text in texts.items() if name in source.words}
    said = with_lists({**texts, **numbers}, source.structs)
    extents = {name: array_said(name, str(said[name] or 0)) for name in source.given_arrays(said)}
    elements = {name: source.sized(name, each) for name, each in extents.items()}
    grid, block = (given.split(",") for given in (parsed.grid, parsed.block_size))
    program = source.program(grid, block, elements, parsed.shared_bytes or 0, parsed.assume)
    for array in program.declared:
        if isinstance(array, Array) and array.name in extents:
            check_dtype(array, extents[array.name], program.name)
    scalars: dict[str, Any] = {}
    for name, value in said.items():
        if name in extents:
            continue
        if name in names or name in program.arguments:
            scalars[name] = by_value(f"--arg {name}", value) if isinstance(value, str) else value
        elif not shared:
            raise no_such_argument(name, program.name, [*names, *program.arguments])
    return Kernel(program, {"generator": program.name}, None, **scalars)


def contents(kernel: Kernel, said: Mapping[str, str]) -> dict[str, Any]:
    """Returns what the arrays of a PTX kernel hold, those of which options say it."""
    program = kernel.program
    assert isinstance(program, PtxProgram)
    arrays = [each.name for each in program.declared_arrays]
    listed = with_lists(said, [each.name for each in program.declared if isinstance(each, Struct)])
    found = {name: array_said(name, listed[name]) for name in arrays if name in listed}
    return {name: each for name, each in found.items() if each.kind}


def _number_or_text(text: str) -> float | str:
    with suppress(KernelError):
        return number_said("", text)
    return text


def with_lists(said: Mapping[str, Any], structs: Iterable[str]) -> dict[str, Any]:
    """Returns what options say, with structs' lists in JSON word by word."""
    lists = {name: by_value(f"--arg {name}", said[name]) for name in structs if str(said.get(name))[:1] == "["}
    return listed_words({**said, **lists}, lists)
