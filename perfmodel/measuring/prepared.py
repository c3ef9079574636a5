"""A launch that is ready to run on a device, whatever runtime reaches it."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from perfmodel.basics.errors import KernelError
from perfmodel.kernels.arguments import Array, Scalar
from perfmodel.kernels.launch import Launch


class Prepared(Protocol):
    """A launch, built and with its arguments set."""

    def write(self, name: str, host: np.ndarray) -> None:
        """Copies a contiguous array of the host into the array argument of that name, and waits for it."""

    def read(self, host: np.ndarray, name: str) -> None:
        """Copies the array argument of that name into a contiguous array of the host, and waits for it."""

    def run(self) -> float:
        """Runs the launch once and waits for it; returns the seconds that the device's clock says."""


def item_bytes(launch: Launch, argument: Array | Scalar) -> int:
    """Returns the bytes of a number, or of an array's element.

    Raises:
        KernelError: for a type that numpy doesn't have.
    """
    try:
        kind = np.dtype(argument.dtype)
    except TypeError:
        kind = np.dtype(object)
    if kind.kind not in "biufc":
        raise KernelError(
            f"argument {argument.name!r} of kernel {launch.kernel_name!r} has dtype {argument.dtype!r}: "
            "use the name of a numpy number type"
        )
    return int(kind.itemsize)
