"""Makes kernels of ``.cl`` files: the source with its includes, and the arguments that it declares."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from perfmodel.basics.errors import KernelError
from perfmodel.kernels.arguments import Argument, Array, LocalArray, Scalar, Struct, check_known
from perfmodel.kernels.given_source import (
    OPENCL_C,
    check_all_given,
    check_elements,
    check_list,
    given_args,
    given_text,
    is_text,
    read_as,
)
from perfmodel.kernels.image_words import image_argument, sampler_argument
from perfmodel.kernels.inclusion import included
from perfmodel.kernels.opencl_program import OpenCLProgram
from perfmodel.opencl_c import lowered_kernel
from perfmodel.opencl_c.lowered import LoweredKernel
from perfmodel.opencl_c.syntax import Unit
from perfmodel.opencl_c.types import SAMPLER, Pointer, Record, Type, Vector, element_of, numbers_within, width_of
from perfmodel.opencl_c.types import Array as ArrayType
from perfmodel.opencl_c.types import Image as ImageType
from perfmodel.opencl_c.types import Scalar as ScalarType

_INCLUDE_BY_MACRO = re.compile(r"^[ \t]*#[ \t]*include[ \t]+\w", re.MULTILINE)
_HELD = {"bool": "uint8"}
"""Numbers that no launch has a type for are held in memory as others."""


def opencl_program(
    source: str | Path,
    name: str,
    global_size: int | str | Sequence[int | str],
    local_size: int | str | Sequence[int | str],
    args: Mapping[str, int | str] | Sequence[Argument] | None,
    options: Sequence[str] = (),
    folders: Sequence[str | Path] = (),
    assumptions: str = "",
    statistics: Mapping[str, float] | None = None,
) -> OpenCLProgram:
    """Makes a program of OpenCL C source; see `perfmodel.Kernel.from_opencl`."""
    if not isinstance(name, str):
        raise KernelError(f"the kernel's name is {name!r}; give the one that it has in the source")
    check_list("folders", folders, "include")
    check_list("options", options, "-DWIDTH=8")
    said = given_args(name, args)
    text, _ = read_source(source, folders)
    options = [*options, *options_of_includes(source, text, folders)]
    declared = declared_arguments(kernel_of(text, name, options), said) if isinstance(said, Mapping) else said
    return OpenCLProgram(text, name, global_size, local_size, declared, options, assumptions, statistics)


def unit_of(text: str, options: tuple[str, ...] = ()) -> Unit:
    """Reads a source and returns its translation unit: which kernels it has, without what is in them.

    Raises:
        SourceError: for what is no OpenCL C, or not supported.
    """
    from perfmodel.opencl_c.reading import read  # slow to import

    with read_as(OPENCL_C, text):
        return read(text, options, kernels=())


def kernel_of(text: str, name: str, options: Sequence[str] = ()) -> LoweredKernel:
    """Reads a kernel of a source; see `perfmodel.opencl_c.lowered_kernel`."""
    with read_as(OPENCL_C, text):
        return lowered_kernel(text, name, options)


def read_source(source: str | Path, folders: Sequence[str | Path] = ()) -> tuple[str, str]:
    """Returns the text of a source with its includes, and its file's name.

    Raises:
        KernelError: for a file that cannot be read.
    """
    text, path = given_text(source, OPENCL_C)
    if path is None:
        return included(text, list(map(Path, folders))), "kernel.cl"
    return included(text, [path.parent, *map(Path, folders)], path.name), path.name


def options_of_includes(source: str | Path, text: str, folders: Sequence[str | Path]) -> list[str]:
    """Returns the ``-I`` options that the text still needs: where a macro names a file, a compiler must find it."""
    if not _INCLUDE_BY_MACRO.search(text):
        return []
    own = [] if is_text(source) else [Path(source).parent]
    return [f"-I{Path(folder).resolve()}" for folder in (*own, *folders)]


def declared_arguments(kernel: LoweredKernel, extents: Mapping[str, int | str]) -> list[Argument]:
    """Returns the arguments as the source declares them.

    Args:
        extents: elements of arrays, bytes of local memory, what images and samplers are (``image:rgba:float32:n:n``).

    Raises:
        KernelError: for an array without extent, an extent of nothing, and arguments that no launch can give.
    """
    check_known(kernel.name, extents, [parameter.name for parameter in kernel.parameters])
    missing = {
        each.name: "bytes a work-group" if each.type.space == "local" else "elements"
        for each in kernel.parameters
        if isinstance(each.type, Pointer) and each.name not in extents
    }
    check_all_given(kernel.name, missing)
    stored = {access.variable for access in kernel.accesses if access.direction != "load"}
    found: list[Argument] = []
    for parameter in kernel.parameters:
        match parameter.type:
            case ScalarType():
                found.append(Scalar(parameter.name, parameter.type.dtype))
            case Pointer():
                extent = extents[parameter.name]
                is_local = parameter.type.space == "local"
                check_elements(kernel.name, parameter.name, extent, "bytes" if is_local else "elements")
                if is_local:
                    found.append(LocalArray(parameter.name, extent))
                else:
                    dtype, times = _numbers(parameter.type.target)
                    elements = extent if times == 1 else f"({extent}) * {times}"
                    found.append(Array(parameter.name, dtype, elements, parameter.name in stored or None in stored))
            case ImageType():
                said = extents.get(parameter.name, "nothing")
                found.append(image_argument(parameter.name, parameter.type, said, parameter.name in stored))
            case _ if parameter.type == SAMPLER:
                found.append(sampler_argument(parameter.name, extents.get(parameter.name, "nothing")))
            case Record() | Vector():
                found.append(_struct(parameter.name, parameter.type))
            case _:
                raise KernelError(
                    f"argument {parameter.name!r} of kernel {kernel.name!r} is a {parameter.type} by value, which no "
                    "launch can give; pass its numbers one by one, or in an array"
                )
    return found


def _struct(name: str, type_: Record | Vector) -> Struct:
    """Returns a struct or vector by value with its numbers; of members that share memory the first one counts."""
    fields: list[Scalar] = []
    offsets: list[int] = []
    end = 0
    for field, start, number in numbers_within(type_, name):
        names = [f"{field}_{position}" for position in range(width_of(number))]
        element = element_of(number)
        for position, each in enumerate(names if isinstance(number, Vector) else [field]):
            offset = start + position * element.size
            if offset >= end:
                fields.append(Scalar(each, element.dtype))
                offsets.append(offset)
                end = offset + element.size
    return Struct(name, tuple(fields), tuple(offsets), type_.size)


def _numbers(type_: Type) -> tuple[str, int]:
    """Returns numpy's type of the numbers that an array's element consists of, and how many these are."""
    match type_:
        case ScalarType():
            return _HELD.get(type_.dtype, type_.dtype), 1
        case Vector():
            return type_.element.dtype, type_.size // type_.element.size
        case ArrayType():
            dtype, times = _numbers(type_.element)
            return dtype, times * type_.length
        case Record():
            inner = {_numbers(field.type)[0] for field in type_.fields}
            dtype = inner.pop() if len(inner) == 1 else "uint8"
            item = ScalarType("", dtype).size
            return dtype, type_.size // item
    return "uint8", max(type_.size, 1)
