"""Prepares launches of PTX, and runs them by NVIDIA's driver between two events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from perfmodel.basics.errors import KernelError
from perfmodel.device.cuda_session import CudaSession, cuda_failures_of
from perfmodel.device.device import Device
from perfmodel.kernels.arguments import Argument, Array, Image, Scalar, Struct
from perfmodel.kernels.launch import Launch
from perfmodel.measuring.prepared import item_bytes

STATIC_SHARED_BYTES = 48 * 1024
"""Blocks may have so much shared memory without being allowed more."""


class CudaLaunch:
    """A loaded kernel with its arguments; see `perfmodel.measuring.prepared.Prepared`."""

    def __init__(
        self,
        launch: Launch,
        session: CudaSession,
        function: Any,
        buffers: Mapping[str, Any],
        arguments: Sequence[bytes],
    ) -> None:
        self._session, self._function, self._buffers, self._arguments = session, function, buffers, arguments
        self._grid = [total // block for total, block in zip(launch.global_size, launch.local_size, strict=True)]
        self._block, self._shared = launch.local_size, launch.shared_bytes

    def write(self, name: str, host: np.ndarray) -> None:
        self._session.driver.write(self._buffers[name], host)

    def read(self, host: np.ndarray, name: str) -> None:
        self._session.driver.read(host, self._buffers[name])

    def run(self) -> float:
        return self._session.seconds(self._function, self._grid, self._block, self._shared, self._arguments)


@contextmanager
def prepared(launch: Launch, device: Device) -> Iterator[CudaLaunch]:
    """Yields a launch that was checked, loaded, its arguments set, its arrays filled with random values.

    Raises:
        KernelError: the driver does not take it, it does not fit the device, or it fails.
    """
    session = device.cuda_session()
    function = session.function(launch.source, launch.kernel_name)
    with cuda_failures_of(launch.kernel_name, device):
        _check_loaded(launch, session, function, device)
        arrays = launch.arrays()
        sizes = [array.size * item_bytes(launch, array) for array in arrays]
        with session.buffers.lent(sizes) as lent:
            for array, size, buffer in zip(arrays, sizes, lent, strict=True):
                session.buffers.fill(buffer, size, array.dtype)
            buffers = {array.name: buffer for array, buffer in zip(arrays, lent, strict=True)}
            arguments = [_bytes(launch, argument, buffers) for argument in launch.arguments]
            yield CudaLaunch(launch, session, function, buffers, arguments)


def _check_loaded(launch: Launch, session: CudaSession, function: Any, device: Device) -> None:
    """Checks what only the loaded kernel tells: its own shared memory; and allows it as much as it needs."""
    static = session.driver.function_attribute(function, "SHARED_SIZE_BYTES")
    if static + launch.shared_bytes > device.local_memory:
        raise KernelError(
            f"kernel {launch.kernel_name!r} needs {static + launch.shared_bytes} bytes of shared memory to a block, "
            f"more than {device.key} has ({device.local_memory}): use smaller tiles"
        )
    if static + launch.shared_bytes > STATIC_SHARED_BYTES:
        session.driver.allow_shared(function, launch.shared_bytes)


def _bytes(launch: Launch, argument: Argument, buffers: Mapping[str, Any]) -> bytes:
    """Returns the bytes of an argument as the kernel's parameter holds them: of an array, its address, and of a struct
    those of the arrays that its pointers point to."""
    if isinstance(argument, Image):
        raise KernelError(
            f"argument {argument.name!r} of kernel {launch.kernel_name!r} is an image, which perfmodel predicts and "
            "emulates, and does not launch by CUDA; measure the kernel in OpenCL C, or with an array"
        )
    try:
        match argument:
            case Array():
                return int(buffers[argument.name]).to_bytes(8, "little")
            case Scalar():
                return argument.number.tobytes()
            case Struct():
                held = {array.name: int(buffers[array.name]) for array in argument.arrays}
                return argument.contents_with(held)
    except (OverflowError, TypeError, ValueError) as error:
        raise KernelError(
            f"argument {argument.name!r} of kernel {launch.kernel_name!r} can't be passed ({error}): describe it as "
            "the source declares it"
        ) from error
    raise KernelError(f"argument {argument.name!r} of kernel {launch.kernel_name!r} is none of CUDA's; leave it out")
