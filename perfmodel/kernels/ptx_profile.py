"""Holds what emulated blocks of a PTX kernel did, to be printed and looked at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.brief import brief
from perfmodel.basics.errors import KernelError
from perfmodel.kernels.bound_kernel import BoundKernel
from perfmodel.ptx.emulation.emulation import Emulation


def emulate(
    kernel: BoundKernel,
    arrays: Mapping[str, Any] | None = None,
    groups: Any = "first",
    width: int = 32,
    seed: int = 0,
    steps: int | None = None,
) -> PtxProfile:
    """Emulates blocks of a PTX kernel; see `perfmodel.emulate`."""
    program: Any = kernel.program
    kernel.bind({})
    options = {"arrays": arrays, "groups": groups, "width": width, "seed": seed, "steps": steps}
    return PtxProfile(kernel, program.emulated(kernel.bound, **options))


class PtxProfile:
    """Holds what the emulated blocks of a launch did. Print it, or take its tables; all counts are per block.

    Attributes:
        emulation: the raw counts.
    """

    def __init__(self, kernel: BoundKernel, emulation: Emulation) -> None:
        self.kernel, self.emulation = kernel, emulation

    def array(self, name: str) -> NDArray[Any]:
        """Returns what an array holds after the emulated blocks, in the type of its argument."""
        for each in self.kernel.launch().arrays():
            if each.name == name:
                return self.emulation.array(name).view(np.dtype(each.dtype))
        raise KernelError(f"kernel {self.kernel.name!r} has no array {name!r}")

    def __repr__(self) -> str:
        emulated = f"{len(self.emulation.sample.blocks)} of {self.emulation.launch.blocks} blocks"
        return brief(self, emulated, repr(self.kernel))
