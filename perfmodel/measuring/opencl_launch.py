"""Prepares launches of OpenCL C, and runs them under profiling events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from perfmodel.basics.errors import KernelError
from perfmodel.device.buffers import SEED, random_values
from perfmodel.device.device import Device
from perfmodel.device.images import copy, image_of, sampler_of
from perfmodel.device.session import Session, failures_of
from perfmodel.kernels.arguments import Array, Image, LocalArray, Sampler, Scalar, Struct
from perfmodel.kernels.launch import Launch
from perfmodel.measuring.prepared import item_bytes


class OpenCLLaunch:
    """A kernel of pyopencl with its arguments; see `perfmodel.measuring.prepared.Prepared`."""

    def __init__(self, launch: Launch, session: Session, kernel: Any, buffers: Mapping[str, Any]) -> None:
        self._launch, self._session, self._kernel, self._buffers = launch, session, kernel, buffers

    def write(self, name: str, host: np.ndarray) -> None:
        copy(self._session.queue, self._buffers[name], host)

    def read(self, host: np.ndarray, name: str) -> None:
        copy(self._session.queue, host, self._buffers[name])

    def run(self) -> float:
        event = enqueued(self._launch, self._session, self._kernel)
        event.wait()
        return float((event.profile.end - event.profile.start) / 1e9)


@contextmanager
def prepared(launch: Launch, device: Device) -> Iterator[OpenCLLaunch]:
    """Yields a launch that was checked, built, its arguments set, its arrays filled with random values.

    Raises:
        KernelError: it does not compile, does not fit the device, or fails.
    """
    session = device.session()
    kernel = session.kernel(launch.source, launch.kernel_name, launch.options)
    with failures_of(launch.kernel_name, device):
        _check_built(launch, kernel, session)
        images = [argument for argument in launch.arrays() if isinstance(argument, Image)]
        arrays = [argument for argument in launch.arrays() if argument not in images]
        sizes = [argument.size * item_bytes(launch, argument) for argument in arrays]
        with session.buffers.lent(sizes) as lent:
            for argument, size, buffer in zip(arrays, sizes, lent, strict=True):
                session.buffers.fill(buffer, size, argument.dtype)
            buffers = {argument.name: buffer for argument, buffer in zip(arrays, lent, strict=True)}
            buffers |= {image.name: _image(launch, image, session) for image in images}
            samplers = [argument for argument in launch.arguments if isinstance(argument, Sampler)]
            buffers |= {each.name: sampler_of(session.context, each.flags) for each in samplers}
            _set_arguments(launch, kernel, buffers)
            yield OpenCLLaunch(launch, session, kernel, buffers)


def enqueued(launch: Launch, session: Session, kernel: Any) -> Any:
    """Returns the event of a launch that was put into the queue."""
    from pyopencl import enqueue_nd_range_kernel  # which may not load

    return enqueue_nd_range_kernel(session.queue, kernel, launch.global_size, launch.local_size)


def _check_built(launch: Launch, kernel: Any, session: Session) -> None:
    """Checks what only the compiled kernel tells: its number of arguments, and local memory.

    How large its work-groups may be shows when it is launched: NVIDIA's driver (580) says 256 of every kernel.
    """
    from pyopencl import kernel_work_group_info as info  # which may not load

    if kernel.num_args != len(launch.arguments):
        raise KernelError(
            f"kernel {launch.kernel_name!r} takes {kernel.num_args} arguments, not {len(launch.arguments)}: "
            "describe each in its order"
        )
    device = session.device
    local_bytes = kernel.get_work_group_info(info.LOCAL_MEM_SIZE, session.raw)
    if local_bytes > device.local_memory:
        raise KernelError(
            f"kernel {launch.kernel_name!r} needs {local_bytes} bytes of local memory to a work-group, more than "
            f"{device.key} has ({device.local_memory}): use smaller tiles"
        )


def _image(launch: Launch, image: Image, session: Session) -> Any:
    """Returns an image of the device, filled with random values."""
    sizes, n_bytes = [int(size) for size in image.sizes], image.size * item_bytes(launch, image)
    memory = image_of(session.context, image.form, sizes, image.channels, image.dtype, image.normalized, n_bytes)
    copy(session.queue, memory, random_values(np.random.default_rng(SEED), image.dtype, image.size))
    return memory


def _set_arguments(launch: Launch, kernel: Any, buffers: Mapping[str, Any]) -> None:
    from pyopencl import LocalMemory, LogicError  # which may not load

    for position, argument in enumerate(launch.arguments):
        try:
            match argument:
                case Array():
                    form = f"an array of {argument.dtype}"
                    kernel.set_arg(position, buffers[argument.name])
                case Sampler():
                    form = "a sampler"
                    kernel.set_arg(position, buffers[argument.name])
                case Scalar():
                    form = f"the scalar {argument.value} of {argument.dtype}"
                    kernel.set_arg(position, argument.number)
                case Struct():
                    form = f"a struct of {argument.n_bytes} bytes"
                    kernel.set_arg(position, argument.contents)
                case LocalArray():
                    form = f"{argument.size} bytes of local memory"
                    kernel.set_arg(position, LocalMemory(argument.size))
        except (LogicError, OverflowError, TypeError, ValueError) as error:
            raise KernelError(
                f"argument {position + 1} of kernel {launch.kernel_name!r} cannot be {argument.name!r}, {form}: "
                "describe it as the source declares it"
            ) from error
