"""Makes kernels of ``.cl`` files: the source with its includes, and the arguments that it declares."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

from perfmodel.basics.errors import KernelError
from perfmodel.kernels.arguments import Argument, Array, LocalArray, Scalar, Struct, check_known
from perfmodel.kernels.image_words import image_argument, sampler_argument
from perfmodel.kernels.opencl_program import OpenCLProgram
from perfmodel.kernels.source_words import source_text
from perfmodel.opencl_c import lowered_kernel
from perfmodel.opencl_c.lowered import LoweredKernel
from perfmodel.opencl_c.syntax import Unit
from perfmodel.opencl_c.types import SAMPLER, Pointer, Record, Type, Vector, element_of, numbers_within, width_of
from perfmodel.opencl_c.types import Array as ArrayType
from perfmodel.opencl_c.types import Image as ImageType
from perfmodel.opencl_c.types import Scalar as ScalarType

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">].*$', re.MULTILINE)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)
_INCLUDE_BY_MACRO = re.compile(r"^[ \t]*#[ \t]*include[ \t]+\w", re.MULTILINE)
_CONDITION = re.compile(r"^[ \t]*#[ \t]*(?:else|elif|endif)\b(?:.*[^\\\n])?$", re.MULTILINE)
_FIRST_DIRECTIVES = re.compile(r"^[ \t]*#.*$", re.MULTILINE)
_GUARD = re.compile(r"\s*#[ \t]*(?:ifndef|if[ \t]+![ \t]*defined)[ \t(]+(\w+)")
_ONCE = "#pragma once"
_BRANCHING = re.compile(r"^[ \t]*#[ \t]*(if|ifdef|ifndef|endif)\b", re.MULTILINE)
_HELD = {"bool": "uint8"}
"""Numbers that no launch has a type for are held in memory as others."""
MOST_INCLUDES, DEEPEST_INCLUDE = 5000, 40


def opencl_program(
    source: str | Path,
    name: str,
    global_size: int | str | Sequence[int | str],
    local_size: int | str | Sequence[int | str],
    args: Mapping[str, int | str] | Sequence[Argument],
    options: Sequence[str] = (),
    folders: Sequence[str | Path] = (),
    assumptions: str = "",
    statistics: Mapping[str, float] | None = None,
) -> OpenCLProgram:
    """Makes a program of OpenCL C source; see `perfmodel.Kernel.from_opencl`."""
    if not isinstance(name, str):
        raise KernelError(f"the kernel's name is {name!r}; give the one that it has in the source")
    if isinstance(folders, str):
        raise KernelError(f"folders {folders!r} are a string; give a list of them")
    text, _ = read_source(source, folders)
    if isinstance(options, str):
        raise KernelError(f"options {options!r} of kernel {name!r} are no strings; give a list of them")
    options = [*options, *options_of_includes(source, text, folders)]
    if isinstance(args, Mapping):
        args = declared_arguments(lowered_kernel(text, name, options), args)
    return OpenCLProgram(text, name, global_size, local_size, args, options, assumptions, statistics)


def unit_of(text: str, options: tuple[str, ...] = ()) -> Unit:
    """Reads a source and returns its translation unit: which kernels it has, without what is in them.

    Raises:
        SourceError: for what is no OpenCL C, or not supported.
    """
    from perfmodel.opencl_c.reading import read  # slow to import

    return read(text, options, kernels=())


def read_source(source: str | Path, folders: Sequence[str | Path] = ()) -> tuple[str, str]:
    """Returns the text of a source with its includes, and its file's name.

    Raises:
        KernelError: for a file that cannot be read.
    """
    if not isinstance(source, str | Path) or not str(source).strip() or str(source) == ".":
        raise KernelError(f"{source!r:.40} is no source; give the text of OpenCL C, or the path of a .cl file")
    if isinstance(source, str) and ("{" in source or "\n" in source):
        return included(source, list(map(Path, folders))), "kernel.cl"
    path = Path(source)
    try:
        text = source_text(path)
        return included(text, [path.parent, *map(Path, folders)], path.name), path.name
    except OSError as error:
        raise KernelError(
            f"source file {path} cannot be read ({error.strerror}); give the path of a .cl file"
        ) from error
    except ValueError as error:
        raise KernelError(f"source file {path} is no text in UTF-8; save it so") from error


def options_of_includes(source: str | Path, text: str, folders: Sequence[str | Path]) -> list[str]:
    """Returns the ``-I`` options that the text still needs: where a macro names a file, a compiler must find it."""
    if not _INCLUDE_BY_MACRO.search(text):
        return []
    own = [] if isinstance(source, str) and ("{" in source or "\n" in source) else [Path(source).parent]
    return [f"-I{Path(folder).resolve()}" for folder in (*own, *folders)]


def included(
    text: str,
    folders: Sequence[Path],
    file: str = "",
    is_marked: bool = False,
    stays: Callable[[str], bool] = lambda header: False,
) -> str:
    """Returns the text with included files in place of their ``#include`` lines, so that it can be built anywhere.

    ``#line`` keeps the lines' numbers as they are in the files.

    Args:
        is_marked: whether ``#line`` stands behind conditions too, as a compiler passes over those that are between
            ``#if`` and ``#endif``; and whether a guarded header that no condition decides on stands there once only.
        stays: tells the headers whose ``#include`` lines stay as they are.

    Raises:
        KernelError: for files that include each other without end.
    """
    seen: list[Path] = []
    open_: list[Path] = []
    is_guarded = cache(_is_guarded)  # a header is asked about wherever it is included

    def expanded(content: str, name: str, known: set[Path]) -> str:
        """Returns content with its includes; ``known`` are headers that it has for certain, its own among them."""
        comments = _comments_with_includes(content)
        free = _free_of_conditions(content, is_guarded(content)) if is_marked else []

        def replaced(match: re.Match[str]) -> str:
            if any(start <= match.start() < end for start, end in comments):
                return match[0].replace("#", "", 1)
            if stays(match[1]):
                return match[0]
            beside = [open_[-1].parent] if open_ else []
            path = match[1].replace("\\", "/")
            searched = (_within(folders, folder / path) for folder in (*beside, *folders))
            found = next((each for each in searched if each is not None), None)
            if found is None:
                return match[0]  # whether that matters, the reader says with line and column
            line = content.count("\n", 0, match.start()) + 2
            is_free = any(start <= match.start() < end for start, end in free)
            return f"{included_once(found, known if is_free else set(known))}\n{_line(line, name)}"

        def marked(match: re.Match[str]) -> str:
            return f"{match[0]}\n{_line(content.count(chr(10), 0, match.start()) + 2, name)}"

        if not is_marked or not _INCLUDE.search(content):
            return _INCLUDE.sub(replaced, content)
        both = re.compile(f"{_INCLUDE.pattern}|{_CONDITION.pattern}", re.MULTILINE)
        return both.sub(lambda match: replaced(match) if match[1] else marked(match), content)

    def included_once(path: Path, known: set[Path]) -> str:
        content = path.read_text(encoding="utf-8-sig", errors="replace")
        if path in known or (path in open_ and (_ONCE in content or is_guarded(content))):
            return ""
        guard = ""
        if _ONCE in content:
            if path in seen and not is_marked:
                return ""
            content = content.replace(_ONCE, "")
            if is_marked:  # it may stand under conditions of which only the compiler knows
                place = seen.index(path) if path in seen else len(seen)
                guard = f"ONCE_{place}_{re.sub(r'[^0-9A-Za-z]', '_', path.name)}"
        if is_marked and (guard or is_guarded(content)):
            known.add(path)
        seen.append(path)
        open_.append(path)
        if len(seen) > MOST_INCLUDES or len(open_) > DEEPEST_INCLUDE:
            raise KernelError(f"{path.name!r} includes itself, directly or by others; include it by a macro's name")
        found = f"{_line(1, path.name)}\n{expanded(content, path.name, known)}"
        open_.pop()
        return f"#ifndef {guard}\n#define {guard}\n{found}\n#endif" if guard else found

    own = expanded(text, file, set()) if folders else text
    return f"{_line(1, file)}\n{own}" if file else own


def _comments_with_includes(content: str) -> list[tuple[int, int]]:
    """Returns where comments begin and end that may have an ``#include`` in them."""
    if "/*" not in content:
        return []
    return [found.span() for found in _COMMENT.finditer(content) if found[0].startswith("/*") and "#" in found[0]]


def _free_of_conditions(content: str, is_guarded: bool) -> list[tuple[int, int]]:
    """Returns the parts of a file that no condition decides on but its own guard."""
    depth, start = (-1 if is_guarded else 0), 0
    free: list[tuple[int, int]] = []
    for found in _BRANCHING.finditer(content):
        if depth <= 0:
            free.append((start, found.start()))
        depth += -1 if found[1] == "endif" else 1
        start = found.end()
    return [*free, (start, len(content))] if depth <= 0 else free


def _is_guarded(content: str) -> bool:
    """Returns whether a header has nothing for those who include it a second time, by a macro that it defines."""
    first = _FIRST_DIRECTIVES.search(content)
    guard = _GUARD.match(content, first.start()) if first else None
    if guard is None:
        return False
    is_defined, is_taken_back = (
        re.search(rf"^[ \t]*#[ \t]*{word}[ \t]+{guard[1]}\b", content, re.MULTILINE) for word in ("define", "undef")
    )
    return bool(is_defined) and not is_taken_back


def _within(folders: Sequence[Path], path: Path) -> Path | None:
    """Returns a file's one path where it lies in one of some folders; None where there is none, or beyond them."""
    place = Path(os.path.normpath(path))
    is_inside = any(path.resolve().is_relative_to(folder.resolve()) for folder in folders)
    return place if is_inside and path.is_file() else None


def _line(number: int, file: str) -> str:
    name = re.sub(r'["\\\n]', "_", file)
    return f'#line {number} "{name}"' if name else f"#line {number}"


def declared_arguments(kernel: LoweredKernel, extents: Mapping[str, int | str]) -> list[Argument]:
    """Returns the arguments as the source declares them.

    Args:
        extents: elements of arrays, bytes of local memory, what images and samplers are (``image:rgba:float32:n:n``).

    Raises:
        KernelError: for an array without extent, an extent of nothing, and arguments that no launch can give.
    """
    check_known(kernel.name, extents, [parameter.name for parameter in kernel.parameters])
    stored = {access.variable for access in kernel.accesses if access.direction != "load"}
    found: list[Argument] = []
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
