"""Cases of CUDA C++: kernels of ``.cu`` files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from perfmodel.device import CUDA
from perfmodel.kernels.arguments import Array, check_known
from perfmodel.kernels.array_contents import ArrayContents
from perfmodel.kernels.cuda_file import CompiledKernel, cuda_kernel
from perfmodel.kernels.kernel import Kernel
from perfmodel.surveying.case import Case
from perfmodel.surveying.contents import checked, contents

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfmodel.device import Device


@dataclass(frozen=True, kw_only=True)
class CudaCase(Case):
    """A kernel of CUDA C++ with one launch: blocks of the grid and threads of a block by axis.

    Attributes:
        shared: bytes of dynamic shared memory of a block.
    """

    runtime: ClassVar[str] = CUDA

    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared: int

    @cached_property
    def compiled(self) -> CompiledKernel:
        """The kernel as NVIDIA's compiler makes PTX of it.

        Raises:
            SourceError, KernelError: for what it does not take, and where it is not installed.
        """
        return cuda_kernel(self.folder / self.source, self.kernel, self.options, self._include_folders)

    @cached_property
    def given(self) -> dict[str, Any]:
        """The words for each argument, by name, with structs' lists word by word."""
        return self.compiled.listed(self.arguments)

    @cached_property
    def said(self) -> dict[str, ArrayContents]:
        """The contents that are said of arrays, by name, without those of null pointers."""
        compiled = self.compiled
        found = {
            name: checked(name, self._said(name), *self._declared(name), self.folder, not compiled.is_known(name))
            for name in compiled.pointers
            if self._said(name) is not None
        }
        held = [name for name in compiled.given_arrays(self.given) if name in compiled.words]
        of_bytes = np.dtype("uint8"), "bytes"
        return found | {
            name: checked(name, self.given[name], *of_bytes, self.folder)
            for name in held
            if self.given[name] not in (None, 0)
        }

    @cached_property
    def contents(self) -> dict[str, NDArray[Any]]:
        given = enumerate(self.said.items())
        return {name: contents(name, said, self._element(name)[0], position) for position, (name, said) in given}

    @cached_property
    def arrays(self) -> dict[str, NDArray[Any]]:
        return {
            name: array.reshape(-1).view(np.uint8).view(self._element(name)[0].base)
            for name, array in self.contents.items()
        }

    @property
    def sampled(self) -> Mapping[str, Any]:
        """The contents of arrays in words: an emulation of some blocks makes of them what these touch."""
        return {name: said for name, said in self.said.items() if said.kind or said.array is not None}

    def as_kernel(self) -> Kernel:
        compiled = self.compiled
        names = [each.name for each in compiled.declared]
        words = [name for name in self.given if name in compiled.words]
        check_known(self.kernel, [name for name in self.given if name not in words], names)
        extents: dict[str, int | str | Array] = dict.fromkeys(
            (*compiled.pointers, *compiled.given_arrays(self.given)), 0
        )
        extents |= {name: compiled.sized(name, said) for name, said in self.said.items()}
        program = compiled.program(self.grid, self.block, extents, self.shared)
        in_words = {compiled.words[name].name for name in words}
        values = {name: self._said(name) for name in (*names, *words) if name not in extents and name not in in_words}
        return Kernel(program, {"generator": self.name}, None, **values)

    def build(self, device: Device) -> None:
        device.cuda_session().function(self.compiled.text, self.compiled.entry)

    def _said(self, name: str) -> Any:
        return self.given[name] if name in self.given else super()._said(name)

    def _element(self, name: str) -> tuple[np.dtype[Any], str]:
        """Returns the type of an array's elements, and what it is called: of a struct's array, what is said of it."""
        if isinstance(array := self.compiled.sized(name, self.said[name]), Array):
            return np.dtype(array.dtype), str(array.dtype)
        return self._declared(name)

    def _declared(self, name: str) -> tuple[np.dtype[Any], str]:
        dtype, count = self.compiled.element(name)
        return (np.dtype((dtype, (count,))), f"{dtype} by {count}") if count > 1 else (np.dtype(dtype), dtype)
