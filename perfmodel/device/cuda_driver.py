"""Calls NVIDIA's driver by way of the optional package cuda-bindings: all that perfmodel asks of CUDA is here."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from perfmodel.basics.errors import DeviceError

LIBRARY = "libcuda.so.1"
EXTRA = "`pip install 'perfmodel[cuda]'`"
LOG_BYTES = 4096
_VERSION = Path("/proc/driver/nvidia/version")


class CudaError(Exception):
    """Tells that a call failed: its status, as the driver calls it, and the first lines of a compiler's log."""

    def __init__(self, status: str, log: str = "") -> None:
        super().__init__(status)
        self.status, self.log = status, log


class CudaDriver:
    """NVIDIA's driver, with its handles as they are; every call raises CudaError where it fails.

    Args:
        library: the module ``cuda.bindings.driver``.
    """

    errors: type[Exception] = CudaError

    def __init__(self, library: Any) -> None:
        self._library = library
        self._called("cuInit", 0)

    def version(self) -> str:
        """Returns the version of CUDA that the driver knows, such as ``13.0``."""
        number = int(self._called("cuDriverGetVersion"))
        return f"{number // 1000}.{number % 1000 // 10}"

    def count(self) -> int:
        return int(self._called("cuDeviceGetCount"))

    def name(self, ordinal: int) -> str:
        name: bytes = self._called("cuDeviceGetName", 256, self._device(ordinal))
        return name.split(b"\0")[0].decode(errors="replace").strip()

    def attribute(self, ordinal: int, name: str) -> int:
        """Returns a number that the driver tells of a device, such as ``MULTIPROCESSOR_COUNT``."""
        which = getattr(self._library.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(self._called("cuDeviceGetAttribute", which, self._device(ordinal)))

    def memory_bytes(self, ordinal: int) -> int:
        return int(self._called("cuDeviceTotalMem", self._device(ordinal)))

    def context(self, ordinal: int) -> Any:
        """Returns the device's primary context, which is made if need be and kept until the process ends."""
        return self._called("cuDevicePrimaryCtxRetain", self._device(ordinal))

    def use(self, context: Any) -> None:
        """Makes a context the present one of this thread."""
        self._called("cuCtxSetCurrent", context)

    def loaded(self, text: str) -> Any:
        """Returns the module that the driver's compiler makes of PTX text."""
        options, log = self._library.CUjit_option, bytearray(LOG_BYTES)
        given = {options.CU_JIT_ERROR_LOG_BUFFER: log, options.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES: LOG_BYTES}
        try:
            return self._called("cuModuleLoadDataEx", text.encode() + b"\0", 2, list(given), list(given.values()))
        except CudaError as error:
            error.log = bytes(log).split(b"\0")[0].decode(errors="replace")
            raise

    def unload(self, module: Any) -> None:
        self._called("cuModuleUnload", module)

    def function(self, module: Any, name: str) -> Any:
        return self._called("cuModuleGetFunction", module, name.encode())

    def function_attribute(self, function: Any, name: str) -> int:
        """Returns a number that the driver tells of a kernel, such as ``NUM_REGS``."""
        which = getattr(self._library.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{name}")
        return int(self._called("cuFuncGetAttribute", which, function))

    def allow_shared(self, function: Any, n_bytes: int) -> None:
        """Allows blocks of a kernel so much dynamic shared memory."""
        which = self._library.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        self._called("cuFuncSetAttribute", function, which, n_bytes)

    def allocate(self, size: int) -> Any:
        return self._called("cuMemAlloc", size)

    def release(self, buffer: Any) -> None:
        self._called("cuMemFree", buffer)

    def write(self, buffer: Any, host: Any) -> None:
        """Copies a contiguous array of the host to the device, and waits for it."""
        self._called("cuMemcpyHtoD", buffer, int(host.ctypes.data), host.nbytes)

    def read(self, host: Any, buffer: Any) -> None:
        """Copies from the device to a contiguous array of the host, and waits for it."""
        self._called("cuMemcpyDtoH", int(host.ctypes.data), buffer, host.nbytes)

    def repeat(self, buffer: Any, done: int, count: int) -> None:
        """Copies the first bytes of a buffer to behind those that are done."""
        self._called("cuMemcpyDtoD", int(buffer) + done, buffer, count)

    def finish(self) -> None:
        """Waits until all that was asked of the present device is done."""
        self._called("cuCtxSynchronize")

    def event(self) -> Any:
        return self._called("cuEventCreate", 0)

    def record(self, event: Any) -> None:
        """Has the device note the time when it has done all that was asked of it before."""
        self._called("cuEventRecord", event, 0)

    def seconds_between(self, start: Any, end: Any) -> float:
        """Waits for the second event; returns the seconds from the first to it."""
        self._called("cuEventSynchronize", end)
        return float(self._called("cuEventElapsedTime", start, end)) / 1e3

    def launch(
        self, function: Any, grid: Sequence[int], block: Sequence[int], shared: int, arguments: Sequence[bytes]
    ) -> None:
        """Queues a kernel; the bytes of each argument lie as the kernel's parameter does."""
        held = [ctypes.create_string_buffer(each, max(len(each), 8)) for each in arguments]
        places = (ctypes.c_void_p * max(len(held), 1))(*map(ctypes.addressof, held))
        shape = [*_three(grid), *_three(block)]
        self._called("cuLaunchKernel", function, *shape, shared, 0, ctypes.addressof(places), 0)

    def _device(self, ordinal: int) -> Any:
        return self._called("cuDeviceGet", ordinal)

    def _called(self, name: str, *arguments: Any) -> Any:
        """Returns what a call gives beside its status."""
        status, *given = getattr(self._library, name)(*arguments)
        if int(status):
            raise CudaError(str(getattr(status, "name", status)).removeprefix("CUDA_ERROR_"))
        return given[0] if given else None


def is_installed() -> bool:
    """Returns True if a driver of NVIDIA's is on this machine."""
    try:
        ctypes.CDLL(LIBRARY)
    except OSError:
        return False
    return True


@cache
def cuda_driver() -> CudaDriver:
    """Returns the driver of this machine.

    Raises:
        DeviceError: there is none, it finds no GPU, or the package that calls it is missing.
    """
    if not is_installed():
        raise DeviceError(f"no CUDA device was found: NVIDIA's driver ({LIBRARY}) is not on this machine")
    try:
        from cuda.bindings import driver  # an optional dependency
    except Exception as error:
        raise DeviceError(
            f"no CUDA device was found: the package cuda-bindings does not load ({type(error).__name__}: {error}); "
            f"{EXTRA} brings it"
        ) from error
    try:
        return CudaDriver(driver)
    except Exception as error:  # the package's own, for a library that is no driver
        raise DeviceError(f"no CUDA device was found: NVIDIA's driver does not start ({error})") from error


def release_of_driver() -> str:
    """Returns the version of the installed driver, such as ``580.159.04``; that of CUDA where the system does not
    tell."""
    try:
        found = re.search(r"\b\d{3,}\.[\d.]*\d", _VERSION.read_text(encoding="ascii", errors="replace"))
    except OSError:
        found = None
    return found[0] if found else f"CUDA {cuda_driver().version()}"


def _three(axes: Sequence[int]) -> tuple[int, ...]:
    return (*axes, *(1,) * (3 - len(axes)))
