"""Cases of CUDA C++: kernels of ``.cu`` files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from perfmodel.device import CUDA
from perfmodel.kernels.arguments import check_known
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
    def said(self) -> dict[str, ArrayContents]:
        """Returns what is said of arrays, by name, without those of null pointers."""
        names = [name for name in self.compiled.pointers if self._said(name) is not None]
        return {
            name: checked(name, self._said(name), *self._element(name), self.folder, not self.compiled.is_known(name))
            for name in names
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
        names = [each.name for each in self.compiled.declared]
        check_known(self.kernel, self.arguments, names)
        extents: dict[str, int | str] = dict.fromkeys(self.compiled.pointers, 0)
        extents |= {name: said.elements(self.compiled.item_bytes(name)) for name, said in self.said.items()}
        program = self.compiled.program(self.grid, self.block, extents, self.shared)
        values = {name: self._said(name) for name in names if name not in extents}
        return Kernel(program, {"generator": self.name}, None, **values)

    def build(self, device: Device) -> None:
        device.cuda_session().function(self.compiled.text, self.compiled.entry)

    def _element(self, name: str) -> tuple[np.dtype[Any], str]:
        """Returns the type of an array's elements, and what it is called."""
        dtype, count = self.compiled.element(name)
        return (np.dtype((dtype, (count,))), f"{dtype} by {count}") if count > 1 else (np.dtype(dtype), dtype)
