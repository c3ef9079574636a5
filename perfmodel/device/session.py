"""All that a process holds on one OpenCL device: context, queue, compiled programs and spare buffers."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import uuid4

from perfmodel.basics.errors import DeviceError, KernelError
from perfmodel.device.buffers import BufferPool
from perfmodel.device.drivers import opencl
from perfmodel.device.opencl_memory import OpenCLMemory

LOG_LINES = 8
SPARE_BYTES = 2**28
"""Memory kept for the next launch, as a part of the device's: filling larger arrays takes far longer than to allocate
them. A processor's is the machine's, of which each process with a session would keep an eighth."""
PROGRAMS = 64
"""So many compiled programs are kept: a campaign asks for each of its thousands a few times in a row."""
NVIDIA_OPTIONS, VERBOSE = "cl_nv_compiler_options", "-cl-nv-verbose"
"""An extension of NVIDIA's, and the option of it that makes its compiler tell what resources kernels need."""


class SessionDevice(Protocol):
    """Tells a session what it has to know of its device; `perfmodel.device.Device` does."""

    @property
    def key(self) -> str: ...

    @property
    def global_memory(self) -> int: ...

    @property
    def local_memory(self) -> int: ...

    def end_session(self) -> None:
        """Forgets all that this process holds on the device."""


@dataclass(frozen=True)
class Usage:
    """Holds what a driver says of a compiled kernel: the compiler's log, and bytes of a work-group and of a
    work-item."""

    log: str
    local_bytes: int
    private_bytes: int


class Session:
    """Context, profiling queue, programs and buffers on one device; made on first use, kept by the process."""

    def __init__(self, device: SessionDevice, raw: Any) -> None:
        cl = opencl()
        self.device = device
        self.raw = raw
        try:
            self.context = cl.Context([raw])
            self.queue = cl.CommandQueue(self.context, properties=cl.command_queue_properties.PROFILING_ENABLE)
        except cl.Error as error:
            raise DeviceError(
                f"device {device.key} cannot be used ({status(error)}): see `perfmodel devices`"
            ) from error
        memory = OpenCLMemory(self.context, self.queue)
        self.buffers = BufferPool(memory, limit=min(device.global_memory // 8, SPARE_BYTES))
        # In the order in which they were last asked for.
        self._programs: dict[tuple[str, tuple[str, ...]], Any] = {}

    def kernel(self, source: str, name: str, options: tuple[str, ...]) -> Any:
        """Returns a new pyopencl kernel object; its program is compiled once.

        Raises:
            KernelError: the source does not compile (with the compiler's first lines) or has no kernel of that name.
        """
        cl = opencl()
        if (program := self._programs.pop((source, options), None)) is None:
            program = self._built(source, name, options)
        self._programs[source, options] = program
        if len(self._programs) > PROGRAMS:
            del self._programs[next(iter(self._programs))]
        try:
            return cl.Kernel(program, name)
        except cl.Error as error:
            names = program.get_info(cl.program_info.KERNEL_NAMES).replace(";", ", ")
            raise KernelError(f"the source has no kernel {name!r}; it has {names or 'none'}") from error

    def binary(self, source: str, name: str, options: tuple[str, ...]) -> tuple[bytes, str]:
        """Returns what the driver makes of a source, in its own format, and the compiler's log; errors as in
        `kernel`."""
        cl = opencl()
        program = self.kernel(source, name, options).program
        log = program.get_build_info(self.raw, cl.program_build_info.LOG)
        (made,) = program.get_info(cl.program_info.BINARIES)
        return bytes(made), str(log)

    def usage(self, source: str, name: str, options: tuple[str, ...]) -> Usage:
        """Returns the resources that a kernel needs on the device; errors as in `kernel`."""
        cl = opencl()
        if NVIDIA_OPTIONS in self.raw.extensions.split():
            # The driver keeps what it compiled, and then writes no log; a new kernel beside it has all compiled anew.
            source += f"\n__kernel void perfmodel_{uuid4().hex}(void) {{}}\n"
            options = (*options, VERBOSE)
        kernel = self.kernel(source, name, options)
        log = kernel.program.get_build_info(self.raw, cl.program_build_info.LOG)
        wanted = (cl.kernel_work_group_info.LOCAL_MEM_SIZE, cl.kernel_work_group_info.PRIVATE_MEM_SIZE)
        return Usage(str(log), *(int(kernel.get_work_group_info(each, self.raw)) for each in wanted))

    def _built(self, source: str, name: str, options: tuple[str, ...]) -> Any:
        cl = opencl()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # compilers talk on success as well
            try:
                return cl.Program(self.context, source).build(list(options))
            except cl.Error as error:
                raise KernelError(f"kernel {name!r} does not compile on {self.device.key}:\n{_log(error)}") from error


@contextmanager
def failures_of(kernel: str, device: SessionDevice) -> Iterator[None]:
    """Turns what pyopencl raises within into a KernelError of one sentence, and ends the device's session.

    A kernel that fails while it runs leaves its context unusable on several drivers; the next launch gets a new one.
    """
    cl = opencl()
    try:
        yield
    except (cl.Error, MemoryError) as error:
        device.end_session()
        raise KernelError(_sentence(kernel, device, status(error))) from error


def status(error: Exception) -> str:
    """Returns the name of the OpenCL status that a pyopencl error carries, such as ``OUT_OF_RESOURCES``."""
    cl = opencl()
    code = getattr(error, "code", None)
    # Drivers have codes of their own, such as NVIDIA's -9999 for an access to memory that is not there.
    return str(cl.status_code.to_string(code, "status %d")) if isinstance(code, int) else type(error).__name__


def _sentence(kernel: str, device: SessionDevice, code: str) -> str:
    if "MEM" in code or code in ("OUT_OF_RESOURCES", "MemoryError"):
        return f"kernel {kernel!r} ran out of memory or resources on {device.key} ({code}): use smaller sizes"
    if code.startswith(("INVALID_WORK", "INVALID_GLOBAL")):
        return f"{device.key} refuses the launch of kernel {kernel!r} ({code}): use another global or local size"
    return f"kernel {kernel!r} failed on {device.key} ({code}): check its arguments and the memory that it accesses"


def _log(error: Exception) -> str:
    """Returns the first lines of the compiler's log in the text of pyopencl's build error."""
    lines = [line.rstrip() for line in str(error).split("\n") if line.strip()]
    start = next((index + 1 for index, line in enumerate(lines) if line.startswith("Build on")), 0)
    log = [f"    {line}" for line in lines[start:] if not line.startswith(("(options:", "Compilation "))]
    return "\n".join(log[:LOG_LINES])
