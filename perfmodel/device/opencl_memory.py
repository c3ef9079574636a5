"""The memory of an OpenCL device, as `perfmodel.device.buffers` uses it."""

from __future__ import annotations

from typing import Any

from perfmodel.device.drivers import opencl


class OpenCLMemory:
    """Buffers of a pyopencl context, filled by way of one of its queues."""

    def __init__(self, context: Any, queue: Any) -> None:
        self._context, self._queue = context, queue

    @property
    def errors(self) -> type[Exception]:
        return opencl().Error  # type: ignore[no-any-return]

    def allocate(self, size: int) -> Any:
        cl = opencl()
        return cl.Buffer(self._context, cl.mem_flags.READ_WRITE, size)

    def release(self, buffer: Any) -> None:
        buffer.release()

    def write(self, buffer: Any, host: Any) -> None:
        opencl().enqueue_copy(self._queue, buffer, host)

    def repeat(self, buffer: Any, done: int, count: int) -> None:
        opencl().enqueue_copy(self._queue, buffer, buffer, byte_count=count, src_offset=0, dst_offset=done)

    def finish(self) -> None:
        self._queue.finish()
