"""Kernels from ``.cl`` files: the source with its includes, and the arguments that it declares."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from perfmodel.errors import KernelError, nearest
from perfmodel.opencl_c import lowered_kernel
from perfmodel.opencl_c.lowered import LoweredKernel
from perfmodel.opencl_c.types import Array as ArrayType
from perfmodel.opencl_c.types import Pointer, Record, Type, Vector
from perfmodel.opencl_c.types import Scalar as ScalarType
from perfmodel.opencl_program import Array, LocalArray, OpenCLProgram, Scalar

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">].*$', re.MULTILINE)
MOST_INCLUDES = 200


def opencl_program(
    source: str | Path,
    name: str,
    global_size: int | str | Sequence[int | str],
    local_size: int | str | Sequence[int | str],
    args: Mapping[str, int | str] | Sequence[Array | Scalar | LocalArray],
    build_options: Sequence[str] = (),
    folders: Sequence[str | Path] = (),
    assumptions: str = "",
    statistics: Mapping[str, float] | None = None,
) -> OpenCLProgram:
    """See `perfmodel.Kernel.from_opencl`."""
    text, file, around = _read(source)
    text = included(text, [*around, *map(Path, folders)])
    if isinstance(args, Mapping):
        if isinstance(build_options, str):
            raise KernelError(f"build options {build_options!r} of kernel {name!r} are no strings; give a list of them")
        args = declared_arguments(lowered_kernel(text, name, build_options, (), file), args)
    return OpenCLProgram(text, name, global_size, local_size, args, build_options, assumptions, statistics)


def _read(source: str | Path) -> tuple[str, str, list[Path]]:
    """The text, its file's name, and the folder that it lies in."""
    if isinstance(source, str) and ("{" in source or "\n" in source):
        return source, "kernel.cl", []
    path = Path(source)
    try:
        return path.read_text(encoding="utf-8"), path.name, [path.parent]
    except OSError as error:
        raise KernelError(
            f"source file {path} cannot be read ({error.strerror}); give the path of a .cl file"
        ) from error
    except (UnicodeDecodeError, ValueError) as error:
        raise KernelError(f"source file {path} is no text; give OpenCL C source, as compilers take it") from error


def included(text: str, folders: Sequence[Path]) -> str:
    """The text with the files that it includes in their place, so that it can be built anywhere.

    Raises:
        KernelError: for files that include each other without end.
    """
    budget = [MOST_INCLUDES]

    def replaced(match: re.Match[str]) -> str:
        for folder in folders:
            path = folder / match[1]
            inside = path.resolve().is_relative_to(folder.resolve())
            if inside and path.is_file():
                budget[0] -= 1
                if budget[0] < 0:
                    raise KernelError(f"{match[1]!r} includes itself, directly or by others; guard it by #ifndef")
                return included_once(path)
        return match[0]  # whether that matters, the reader says with line and column

    seen: list[Path] = []

    def included_once(path: Path) -> str:
        content = path.read_text(encoding="utf-8", errors="replace")
        if "#pragma once" in content:
            if path in seen:
                return ""
            content = content.replace("#pragma once", "")
        seen.append(path)
        return _INCLUDE.sub(replaced, content)

    return _INCLUDE.sub(replaced, text) if folders else text


def declared_arguments(kernel: LoweredKernel, extents: Mapping[str, int | str]) -> list[Array | Scalar | LocalArray]:
    """The arguments as the source declares them; extents are elements of arrays, and bytes of local memory.

    Raises:
        KernelError: for an array without extent, an extent of nothing, and arguments that no launch can give.
    """
    names = [parameter.name for parameter in kernel.parameters]
    for name in extents:
        if name not in names:
            raise KernelError(
                f"kernel {kernel.name!r} has no argument {name!r}{nearest(name, names)} (it has {', '.join(names)})"
            )
    stored = {access.variable for access in kernel.accesses if access.direction != "load"}
    found: list[Array | Scalar | LocalArray] = []
    for parameter in kernel.parameters:
        match parameter.type:
            case ScalarType():
                found.append(Scalar(parameter.name, parameter.type.dtype))
            case Pointer():
                if parameter.name not in extents:
                    what = "bytes a work-group" if parameter.type.space == "local" else "elements"
                    raise KernelError(
                        f"kernel {kernel.name!r} needs the number of {what} of its argument {parameter.name!r}; give "
                        f"it in args, as {{{parameter.name!r}: …}}"
                    )
                extent = extents[parameter.name]
                if parameter.type.space == "local":
                    found.append(LocalArray(parameter.name, extent))
                else:
                    dtype, times = _numbers(parameter.type.target)
                    elements = extent if times == 1 else f"({extent}) * {times}"
                    found.append(Array(parameter.name, dtype, elements, parameter.name in stored or None in stored))
            case _:
                raise KernelError(
                    f"argument {parameter.name!r} of kernel {kernel.name!r} is a {parameter.type} by value, which no "
                    "Kernel can be given yet; pass its numbers one by one, or in an array"
                )
    return found


def _numbers(type_: Type) -> tuple[str, int]:
    """The numbers that an element of an array consists of: numpy's name of their type, and how many."""
    match type_:
        case ScalarType():
            return type_.dtype, 1
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
