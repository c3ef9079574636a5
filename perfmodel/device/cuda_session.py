"""All that a process holds on one CUDA device: its context, loaded modules, events and spare memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from perfmodel.basics.errors import DeviceError, KernelError
from perfmodel.device.buffers import BufferPool
from perfmodel.device.cuda_driver import CudaDriver, CudaError, cuda_driver
from perfmodel.device.session import LOG_LINES, PROGRAMS, SPARE_BYTES, SessionDevice

DELAY_CYCLES = 200_000
"""So long the device is kept busy, a tenth of a millisecond, while a launch and its events are queued behind; otherwise
the first event would come before the launch reached the device, and the way there would be part of the time."""
_DELAY = """
.version 7.0
.target sm_60
.address_size 64
.visible .entry perfmodel_delay(.param .u64 cycles)
{
  .reg .pred %p;
  .reg .b64 %r<4>;
  ld.param.u64 %r0, [cycles];
  mov.u64 %r1, %clock64;
AGAIN:
  mov.u64 %r2, %clock64;
  sub.s64 %r3, %r2, %r1;
  setp.lt.s64 %p, %r3, %r0;
  @%p bra AGAIN;
  ret;
}
"""


class CudaSession:
    """Context, events, loaded PTX and buffers on one device; made on first use, kept by the process.

    Args:
        ordinal: the driver's number of the device.
    """

    def __init__(self, device: SessionDevice, ordinal: int) -> None:
        self.device = device
        self.driver: CudaDriver = cuda_driver()
        # In the order in which they were last asked for.
        self._modules: dict[str, Any] = {}
        try:
            self._context = self.driver.context(ordinal)
            self.driver.use(self._context)
            self._start, self._end = self.driver.event(), self.driver.event()
            self._delay = self.driver.function(self.driver.loaded(_DELAY), "perfmodel_delay")
        except CudaError as error:
            raise DeviceError(
                f"device {device.key} cannot be used ({error.status}): see `perfmodel devices`"
            ) from error
        self.buffers = BufferPool(self.driver, limit=min(device.global_memory // 8, SPARE_BYTES))

    def function(self, text: str, name: str) -> Any:
        """Returns a kernel of PTX text, which is loaded once.

        Raises:
            KernelError: the driver does not take the text (with its compiler's first lines), or it has no such kernel.
        """
        self.driver.use(self._context)
        if (module := self._modules.pop(text, None)) is None:
            try:
                module = self.driver.loaded(text)
            except CudaError as error:
                log = "\n".join(f"    {line}" for line in error.log.splitlines()[:LOG_LINES] if line.strip())
                raise KernelError(
                    f"the driver does not take the PTX of kernel {name!r} on {self.device.key} ({error.status})"
                    f"{':' if log else ''}\n{log}".rstrip()
                ) from error
        self._modules[text] = module
        if len(self._modules) > PROGRAMS:
            self.driver.unload(self._modules.pop(next(iter(self._modules))))
        try:
            return self.driver.function(module, name)
        except CudaError as error:
            raise KernelError(f"the PTX has no kernel {name!r} ({error.status}); give the name that it has") from error

    def seconds(
        self, function: Any, grid: Sequence[int], block: Sequence[int], shared: int, arguments: Sequence[bytes]
    ) -> float:
        """Runs a kernel once; returns the seconds between the events around it."""
        self.driver.launch(self._delay, (1,), (1,), 0, [DELAY_CYCLES.to_bytes(8, "little")])
        self.driver.record(self._start)
        self.driver.launch(function, grid, block, shared, arguments)
        self.driver.record(self._end)
        return self.driver.seconds_between(self._start, self._end)


@contextmanager
def cuda_failures_of(kernel: str, device: SessionDevice) -> Iterator[None]:
    """Turns what the driver refuses within into a KernelError of one sentence, and ends the device's session.

    After an access to memory that is not there, all that the process holds on the device is lost.
    """
    try:
        yield
    except (CudaError, MemoryError) as error:
        device.end_session()
        raise KernelError(_sentence(kernel, device, getattr(error, "status", "MemoryError"))) from error


def _sentence(kernel: str, device: SessionDevice, status: str) -> str:
    if "MEMORY" in status or status in ("LAUNCH_OUT_OF_RESOURCES", "MemoryError"):
        return f"kernel {kernel!r} ran out of memory or resources on {device.key} ({status}): use smaller sizes"
    if status == "INVALID_VALUE":
        return f"{device.key} refuses the launch of kernel {kernel!r} ({status}): use another grid or block"
    return f"kernel {kernel!r} failed on {device.key} ({status}): check its arguments and the memory that it accesses"
