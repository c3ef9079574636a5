"""One kernel of a survey with one launch, whatever language it is written in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from perfmodel.basics.errors import KernelError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from perfmodel.device import Device
    from perfmodel.kernels.kernel import Kernel
    from perfmodel.kernels.launch import Launch


@dataclass(frozen=True, kw_only=True)
class Case(ABC):
    """One kernel of a survey with one launch.

    Attributes:
        folder: the survey's, in which sources and data lie.
        launch: which of the case's launches this is, such as ``cpu`` or ``gpu``.
        source: the file; `options`: those of the build; `includes`: folders of included files.
        any_order: arrays whose contents depend on the order in which work-items run.
        any_rounding: arrays of whole numbers made of floats that the language lets every device round in its own way.
        arguments: what is said of each, by name.
        runtime: by way of which a device runs it.
    """

    runtime: ClassVar[str]

    folder: Path
    name: str
    group: str
    launch: str
    source: str
    kernel: str
    options: tuple[str, ...]
    includes: tuple[str, ...]
    any_order: tuple[str, ...]
    any_rounding: tuple[str, ...]
    arguments: Mapping[str, Any]

    @abstractmethod
    def as_kernel(self) -> Kernel:
        """Returns the case as a kernel, all its arguments bound.

        Raises:
            SourceError, KernelError: for what can't be read, or does not fit.
        """

    @property
    @abstractmethod
    def contents(self) -> dict[str, NDArray[Any]]:
        """The contents of the array arguments, by name; of bytes, the numbers that they are said to be.

        Raises:
            KernelError: for data that are not there, or do not fit the kernel.
        """

    @property
    @abstractmethod
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The contents of the array arguments, by name, as elements of their types: bytes are bytes."""

    @property
    def sampled(self) -> Mapping[str, Any]:
        """The contents of arrays as an emulation of some work-groups takes them."""
        return self.arrays

    @abstractmethod
    def build(self, device: Device) -> None:
        """Has a device's compiler take the source.

        Raises:
            KernelError: it does not.
        """

    def uncontracted(self, launch: Launch) -> Launch:
        """Returns a launch in which the device rounds each product, as emulation does."""
        return launch

    def host_arrays(self, kernel: Kernel) -> dict[str, np.ndarray]:
        """Returns the contents of the arrays with the types that a launch of the kernel declares."""
        return {each.name: self.arrays[each.name].reshape(-1).view(each.dtype) for each in kernel.launch().arrays()}

    @property
    def _include_folders(self) -> list[Path]:
        """The folders that were given, and the survey's own, within which ways to headers may lead up."""
        return [*(self.folder / each for each in self.includes), self.folder]

    def _said(self, name: str) -> Any:
        if name not in self.arguments:
            raise KernelError(f"case {self.name!r} says nothing of the argument {name!r}; give it among its arguments")
        return self.arguments[name]
