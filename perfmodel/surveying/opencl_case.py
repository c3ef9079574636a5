"""Cases of OpenCL C: kernels of ``.cl`` files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from perfmodel.basics.errors import KernelError
from perfmodel.device import OPENCL
from perfmodel.kernels.arguments import check_known
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.opencl_file import opencl_program, options_of_includes, read_source
from perfmodel.opencl_c import lowered_kernel
from perfmodel.opencl_c.types import Image as ImageType
from perfmodel.opencl_c.types import Pointer, Sampler, Type, numpy_type
from perfmodel.surveying.case import Case
from perfmodel.surveying.contents import bytes_of, checked, contents, pixels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfmodel.device import Device
    from perfmodel.kernels.array_contents import ArrayContents
    from perfmodel.kernels.launch import Launch
    from perfmodel.opencl_c.lowered import LoweredKernel

AS_WRITTEN = "#pragma OPENCL FP_CONTRACT OFF\n"
"""Makes a device round a product before it is added to something, as emulation does; else it may leave that out."""


@dataclass(frozen=True, kw_only=True)
class OpenclCase(Case):
    """A kernel of OpenCL C with one launch, whose sizes are work-items by axis."""

    runtime: ClassVar[str] = OPENCL

    global_size: tuple[int, ...]
    local_size: tuple[int, ...]

    @property
    def text(self) -> str:
        """The source, with its includes in place.

        Raises:
            KernelError: for a file that cannot be read.
        """
        return read_source(self.folder / self.source, self._include_folders)[0]

    def lowered(self) -> LoweredKernel:
        """Reads the source and lowers the kernel.

        Raises:
            SourceError: for what is no OpenCL C, or not supported, with line and column.
        """
        return lowered_kernel(self.text, self.kernel, self._build_options)

    @property
    def _build_options(self) -> tuple[str, ...]:
        """The case's options, and where headers lie that only a compiler can find."""
        needed = options_of_includes(self.folder / self.source, self.text, self._include_folders)
        return (*self.options, *needed)

    @cached_property
    def arrays(self) -> dict[str, NDArray[Any]]:
        return {name: self._elements(name, array) for name, array in self.contents.items()}

    @cached_property
    def contents(self) -> dict[str, NDArray[Any]]:
        return {name: self._content(name) for name in self._types}

    @cached_property
    def sampled(self) -> Mapping[str, Any]:
        """The contents of arrays in words where these make them: an emulation of some groups makes what these touch."""
        made = {name for name, said in self.said.items() if said.image is None and said.array is None}
        given = {name: self._elements(name, self._content(name)) for name in self._types if name not in made}
        return given | {name: self.said[name] for name in made if self.said[name].kind}

    @cached_property
    def said(self) -> dict[str, ArrayContents]:
        """The contents that are said of arrays, by name, without those of images.

        Raises:
            KernelError: for data that are not there, or do not fit the kernel.
        """
        return {
            name: checked(name, self._said(name), numpy_type(type_.target), str(type_.target), self.folder)
            for name, type_ in self._types.items()
            if isinstance(type_, Pointer)
        }

    @cached_property
    def _types(self) -> dict[str, Type]:
        """The types of array arguments and images, by name."""
        types = {each.name: each.type for each in self.lowered().parameters}
        held = {n: t for n, t in types.items() if isinstance(t, Pointer | ImageType)}
        return {n: t for n, t in held.items() if isinstance(t, ImageType) or t.space != "local"}

    def _content(self, name: str) -> NDArray[Any]:
        """Returns what an array or image holds; of bytes, the numbers that they are said to be."""
        type_, position = self._types[name], [each.name for each in self.lowered().parameters].index(name)
        if isinstance(type_, ImageType):
            return pixels(name, self._said(name), type_, position)
        assert isinstance(type_, Pointer)
        return contents(name, self.said[name], numpy_type(type_.target), position)

    def _elements(self, name: str, array: NDArray[Any]) -> NDArray[Any]:
        """Returns an array as elements of its argument's type: bytes are bytes."""
        type_ = self._types[name]
        return array.view("uint8") if isinstance(type_, Pointer) and type_.target.size == 1 else array

    def as_kernel(self) -> Kernel:
        extents: dict[str, int | str] = {}
        scalars: dict[str, Any] = {}
        parameters = self.lowered().parameters
        check_known(self.kernel, self.arguments, [each.name for each in parameters])
        for parameter in parameters:
            name, said = parameter.name, self._said(parameter.name)
            if isinstance(parameter.type, ImageType | Sampler):
                extents[name] = said
            elif not isinstance(parameter.type, Pointer):
                scalars[name] = said
            elif parameter.type.space == "local":
                extents[name] = _local_bytes(name, said)
            else:
                element = numpy_type(parameter.type.target)
                extents[name] = bytes_of(name, self.said[name], element) // parameter.type.target.size
        path, sizes = self.folder / self.source, (self.global_size, self.local_size)
        program = opencl_program(path, self.kernel, *sizes, extents, self.options, self._include_folders)
        return Kernel(program, {"generator": self.name}, None, **scalars)

    def build(self, device: Device) -> None:
        device.session().kernel(self.text, self.kernel, self._build_options)

    def uncontracted(self, launch: Launch) -> Launch:
        return replace(launch, source=AS_WRITTEN + launch.source)


def _local_bytes(name: str, said: Any) -> int:
    if isinstance(said, dict) and set(said) == {"local_bytes"} and type(said["local_bytes"]) is int:
        return int(said["local_bytes"])
    raise KernelError(f'argument {name!r} is local memory, said to be {said!r:.40}; write {{"local_bytes": 1024}}')
