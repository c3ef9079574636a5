"""Makes programs of CUDA C++ and of PTX text, with the arguments that the source and its code say."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from perfmodel.basics.errors import KernelError, PerfmodelWarning, SourceError
from perfmodel.kernels.arguments import Argument, Array, Derived, Image, Scalar, Struct, check_known
from perfmodel.kernels.array_contents import ArrayContents, said_of_array
from perfmodel.kernels.cuda_declarations import full_name
from perfmodel.kernels.cuda_host import is_never_read, is_of_a_library
from perfmodel.kernels.cuda_refusals import NAMES, MissingHeadersError, not_named
from perfmodel.kernels.cuda_source import DeclaredArgument, arguments_of, kernels_in, template_parameters, without_types
from perfmodel.kernels.given_arguments import names_in
from perfmodel.kernels.given_source import (
    CUDA,
    PTX,
    check_all_given,
    check_elements,
    check_list,
    given_args,
    given_text,
    is_text,
    read_as,
)
from perfmodel.kernels.inclusion import folders_near, included
from perfmodel.kernels.ptx_program import PtxProgram
from perfmodel.kernels.size_expression import Extent, axes_of
from perfmodel.kernels.struct_pointers import how_to_give
from perfmodel.kernels.struct_words import StructWords, listed_words
from perfmodel.ptx.code import code_of
from perfmodel.ptx.parameters import Parameter, parameters_of
from perfmodel.ptx.reading.reader import read


@dataclass(frozen=True)
class CompiledKernel:
    """A kernel of a PTX text, of whose launch nothing is said yet.

    Attributes:
        entry: its name in the text; `name`: that in the source.
        declared: its arguments as the source declares them, or by the names of the text.
        parameters: the same as the code uses them.
    """

    text: str
    entry: str
    name: str
    declared: tuple[DeclaredArgument, ...]
    parameters: tuple[Parameter, ...]

    @property
    def pointers(self) -> tuple[str, ...]:
        """The names of the arguments that are arrays."""
        both = zip(self.declared, self.parameters, strict=True)
        return tuple(each.name for each, used in both if _is_pointer(each, used))

    @cached_property
    def structs(self) -> dict[str, StructWords]:
        """The structs by value of which only the size is known, by name."""
        both = zip(self.declared, self.parameters, strict=True)
        return {
            each.name: StructWords(
                kernel=self.name, name=each.name, n_bytes=used.n_bytes, pointers=used.held, loaded=used.loaded
            )
            for each, used in both
            if used.type is None and not each.is_pointer and each.numbers() is None
        }

    @cached_property
    def words(self) -> dict[str, StructWords]:
        """The names of all words of structs, each with its struct."""
        return {name: struct for struct in self.structs.values() for name in struct.names}

    def listed(self, said: Mapping[str, Any]) -> dict[str, Any]:
        """Returns what is said of arguments by name, structs' lists word by word; see
        `perfmodel.kernels.struct_words.listed_words`."""
        return listed_words(said, self.structs)

    def given_arrays(self, said: Mapping[str, Any]) -> tuple[str, ...]:
        """Returns the names of the arrays among what is said by name: pointers, and words of structs where one begins
        that an array is given for."""
        words = self.words
        return tuple(
            name for name in said if name in self.pointers or (name in words and words[name].is_array(name, said))
        )

    def sized(self, name: str, said: ArrayContents) -> Extent | Array:
        """Returns the number of elements of an array of which something is said, or the array, where that has a type
        and the source has none."""
        words = self.words
        if said.image is not None:
            return replace(said.image, name=name)
        if name not in words or said.dtype is None or said.dtype.kind not in "iuf":
            return said.elements(self.item_bytes(name))
        return Array(name, said.dtype.name, said.elements(said.dtype.itemsize))

    def element(self, name: str) -> tuple[str, int]:
        """Returns the type of the numbers that an element of an array consists of, and how many they are."""
        words = self.words
        if name in words:
            return words[name].element(name), 1
        place = self._place(name)
        return _element(self.declared[place], self.parameters[place])

    def item_bytes(self, name: str) -> int:
        """Returns the bytes of an element of an array."""
        dtype, times = self.element(name)
        return np.dtype(dtype).itemsize * times

    def is_known(self, name: str) -> bool:
        """Returns whether the source says which numbers an element of an array consists of; else its code does."""
        if name in self.words:
            return False
        declared = self.declared[self._place(name)]
        return declared.is_pointer and declared.numbers() is not None

    def _place(self, name: str) -> int:
        return [each.name for each in self.declared].index(name)

    def program(
        self,
        grid: Extent | Sequence[Extent],
        block: Extent | Sequence[Extent],
        args: Mapping[str, Extent] | Mapping[str, Extent | Array] | Sequence[Argument] | None,
        shared: Extent = 0,
        assumptions: str = "",
    ) -> PtxProgram:
        """Returns the kernel with its launch; see `perfmodel.Kernel.from_cuda`."""
        launch, said = (self.text, self.entry, self.name, grid, block), given_args(self.name, args)
        if not isinstance(said, Mapping):
            return PtxProgram(*launch, list(said), shared, assumptions)
        arrays = {name: said_of_array(repr(name), str(said[name])) for name in said if self._is_in_words(name, said)}
        images = {name: said_of_array(name, each) for name, each in said.items() if _is_image(each)}
        elements = {**said, **{name: self.sized(name, each) for name, each in (arrays | images).items()}}
        extents = [*axes_of("grid", self.name, grid), *axes_of("block", self.name, block)]
        sizes = names_in([*extents, shared, assumptions])
        return PtxProgram(*launch, declared_arguments(self, elements, sizes), shared, assumptions, arrays)

    def _is_in_words(self, name: str, args: Mapping[str, Any]) -> bool:
        said = args[name]
        return name in self.words and isinstance(said, str) and (":" in said or said.endswith(".npy"))


def cuda_kernel(
    source: str | Path, name: str | None, options: Sequence[str] = (), folders: Sequence[str | Path] = ()
) -> CompiledKernel:
    """Compiles a kernel of CUDA C++ source; see `perfmodel.Kernel.from_cuda`."""
    check_name(name)
    check_list("options", options, "-DWIDTH=8")
    check_list("folders", folders, "include")
    text = cuda_text(source, folders)
    with read_as(CUDA, text):
        try:
            return _compiled(text, name, "the source" if is_text(source) else str(source), options)
        except MissingHeadersError as error:
            near = [] if is_text(source) else folders_near(Path(source), error.headers)
            if not near:
                raise
            raise SourceError(f"{error}, as {' '.join(f'--include {folder}' for folder in near)}") from error


def _compiled(text: str, name: str | None, file: str, options: Sequence[str]) -> CompiledKernel:
    """Compiles a kernel of a text; `file` says whose it is, for errors."""
    from perfmodel.kernels.cuda_compiler import compiled  # slow to import, and only for CUDA C++

    name = name or only_kernel(text, file)
    plain, types = without_types(name)
    full = full_name(text, plain)
    ways = template_parameters(text, plain.rpartition("::")[2]) if "<" not in plain else []
    if len(ways) == 1 and not all("=" in each for each in ways[0]):
        raise KernelError(f"kernel {name!r} is a template <{', '.join(ways[0])}>; give it arguments: '{name}<…>'")
    endings = ["<>" if parameters else "" for parameters in ways] or [""]
    for ending in endings:
        called = f"{full}{ending}" if types is None else f"(void (*)({types})){full}{ending}"
        try:
            found = compiled(text, called, options)
            break
        except SourceError as error:
            place, _, why = str(error).partition(": ")
            if not place.startswith(NAMES):
                raise
            if ending == endings[-1]:
                raise KernelError(not_named(text, name, file, why, list(kernels_in(text)))) from error
    if f".entry {found.name}(" not in found.ptx:
        raise KernelError(f"kernel {name!r} is declared in {file} without a body; give the file that defines it")
    if own := [each for each in found.not_found if f'"{each}"' in text and not is_of_a_library(each)]:
        warnings.warn(
            f"kernel {name!r} is compiled without {', '.join(own)}, not found; give the folders (folders=, --include)",
            PerfmodelWarning,
            stacklevel=4,
        )
    return _with_arguments(found.ptx, found.name, name, arguments_of(text, name))


def ptx_kernel(text: str | Path, entry: str | None) -> CompiledKernel:
    """Reads a kernel of PTX text; see `perfmodel.Kernel.from_ptx`."""
    check_name(entry)
    text, _ = given_text(text, PTX)
    with read_as(PTX, text):
        return _read(text, entry)


def _read(text: str, entry: str | None) -> CompiledKernel:
    """Reads a kernel of a text."""
    if not entry:
        entries = read(text).entries
        if not entries:
            raise KernelError("the PTX text has no kernel; give one that has an .entry")
        if len(entries) != 1:
            raise KernelError(f"the PTX text has {len(entries)} kernels ({', '.join(entries)}); name one")
        entry = entries[0]
    return _with_arguments(text, entry, entry, None)


def _with_arguments(text: str, entry: str, name: str, declared: Sequence[DeclaredArgument] | None) -> CompiledKernel:
    parameters = parameters_of(code_of(text, entry))
    if declared is None or len(declared) != len(parameters):
        declared = [DeclaredArgument(each.name, "") for each in parameters]
    return CompiledKernel(text=text, entry=entry, name=name, declared=tuple(declared), parameters=parameters)


def cuda_text(source: str | Path, folders: Sequence[str | Path] = ()) -> str:
    """Returns the text of a source, with those of its includes that are found in its folder or these.

    Raises:
        KernelError: for a file that cannot be read.
    """
    text, path = given_text(source, CUDA)
    if path is None:
        return included(text, list(map(Path, folders)), is_marked=True, stays=is_never_read)
    return included(text, [path.parent, *map(Path, folders)], path.name, True, is_never_read)


def check_name(name: Any) -> None:
    """Refuses what names no kernel; None and nothing mean the only one."""
    if name is not None and not isinstance(name, str):
        raise KernelError(
            f"{name!r:.40} names no kernel; give its name in the source as text, or None for the only one"
        )


def only_kernel(text: str, file: str) -> str:
    """Returns the name of a source's only kernel."""
    names = list(kernels_in(text))
    if not names:
        raise KernelError(f"{file} has no kernel; give a file with a function that is declared __global__ void")
    if len(names) != 1:
        raise KernelError(f"{file} has {len(names)} kernels ({', '.join(names)}); name one")
    return names[0]


def declared_arguments(
    kernel: CompiledKernel, extents: Mapping[str, Extent | Array], sizes: Sequence[str] = ()
) -> list[Argument | Derived]:
    """Returns a kernel's arguments as its source declares them and its code uses them.

    Args:
        extents: elements of arrays, by the names of pointers and of the words of structs where pointers begin; 0 for a
            null pointer. An array of a struct may be given as one, with a type of its own.
        sizes: names from which the launch follows.

    Raises:
        KernelError: for an array without extent, and an extent of nothing.
    """
    structs, words = kernel.structs, kernel.words
    check_known(kernel.name, [each for each in extents if each not in words], [each.name for each in kernel.declared])
    plain: dict[str, Extent] = {}
    for name, extent in extents.items():
        if name in words:
            continue
        if name in structs:
            raise KernelError(_no_whole(structs[name]))
        if name not in kernel.pointers:
            raise KernelError(f"argument {name!r} of kernel {kernel.name!r} is no array; give its value, as {name}=…")
        if not isinstance(extent, Image):
            check_elements(kernel.name, name, extent)
        plain[name] = extent  # type: ignore[assignment]
    missing = {
        each.name: "elements"
        for parameter, each in zip(kernel.parameters, kernel.declared, strict=True)
        if each.name not in structs and each.name not in plain and _is_pointer(each, parameter)
    }
    check_all_given(kernel.name, missing)
    found: list[Argument | Derived] = []
    sizes = [*sizes, *names_in([each.extent if isinstance(each, Array) else each for each in extents.values()])]
    for parameter, each in zip(kernel.parameters, kernel.declared, strict=True):
        if each.name in structs:
            struct = structs[each.name]
            found.append(struct.struct({n: value for n, value in extents.items() if words.get(n) == struct}, sizes))
        else:
            found.append(_argument(kernel.name, parameter, each, plain.get(each.name)))
    return found


def _is_image(said: object) -> bool:
    """Returns whether words say an image, as of a texture."""
    return isinstance(said, str) and said.startswith("image:")


def _no_whole(struct: StructWords) -> str:
    """Returns why a struct is given no number of elements, and how it is given arrays."""
    names = struct.followed or (f"{struct.name}_0",)
    where = "" if struct.followed else ", say,"
    return (
        f"argument {struct.name!r} of kernel {struct.kernel!r} is a struct of {struct.n_bytes} bytes; give the arrays "
        f"of its pointers by the words where these begin{where} ({how_to_give(names)}), and the other words as numbers"
    )


def _argument(
    kernel: str, parameter: Parameter, declared: DeclaredArgument, extent: Extent | Image | None
) -> Argument | Derived:
    if _is_pointer(declared, parameter):
        assert extent is not None  # or it had been refused
        if isinstance(extent, Image):
            return replace(extent, is_output=parameter.is_output)
        if extent in (0, "0"):
            return Derived(declared.name, "uint64", "0")
        dtype, times = _element(declared, parameter)
        return Array(declared.name, dtype, extent if times == 1 else f"({extent}) * {times}", parameter.is_output)
    numbers = declared.numbers()
    if parameter.type is None and numbers:
        return _vector(declared.name, parameter.n_bytes, *numbers)
    assert parameter.type is not None  # of other structs, words are given
    return Scalar(declared.name, numbers[0] if numbers else parameter.type.dtype)


def _is_pointer(declared: DeclaredArgument, parameter: Parameter) -> bool:
    """Returns whether an argument is an array: as the source says, or else as the code uses it."""
    return declared.is_pointer or (parameter.is_pointer and declared.numbers() is None)


def _element(declared: DeclaredArgument, parameter: Parameter) -> tuple[str, int]:
    """Returns the type of the numbers that an array's element consists of, and how many they are."""
    return (declared.numbers() if declared.is_pointer else None) or (parameter.dtype or "uint8", 1)


def _vector(name: str, n_bytes: int, dtype: str, times: int) -> Struct:
    item = np.dtype(dtype).itemsize
    fields = tuple(Scalar(f"{name}_{place}", dtype) for place in range(times))
    return Struct(name, fields, tuple(place * item for place in range(times)), n_bytes)
