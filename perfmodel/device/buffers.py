"""Device memory for a kernel's arrays, kept between launches and touched before them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from perfmodel.device.drivers import opencl

BLOCK_BYTES = 1 << 20
SEED = 20160425


class BufferPool:
    """Buffers of one device's context; those not lent are kept for later, up to `limit` bytes."""

    def __init__(self, context: Any, queue: Any, limit: int) -> None:
        self._context = context
        self._queue = queue
        self._limit = limit
        self._spare: dict[int, list[Any]] = {}
        self._spare_bytes = 0

    @contextmanager
    def lent(self, sizes: Sequence[int]) -> Iterator[list[Any]]:
        """Lends buffers of these sizes (bytes), their content undefined; what a failed use leaves behind is not
        kept."""
        cl = opencl()
        if sum(sizes) > self._limit:  # drivers that allocate late would run short only once a buffer is touched
            self._release_spare()
        buffers: list[Any] = []
        try:
            buffers.extend(self._buffer(size) for size in sizes)
            yield buffers
        except BaseException:
            with suppress(cl.Error):  # a failed kernel may have spoilt the context that they belong to
                for buffer in buffers:
                    buffer.release()
            raise
        for size, buffer in zip(sizes, buffers, strict=True):
            self._keep(size, buffer)

    def fill(self, buffer: Any, size: int, dtype: str) -> None:
        """Writes the same moderate random numbers into every page of a buffer of `size` bytes.

        Numbers near one keep floating-point kernels away from overflow and denormal numbers, whose speed differs.
        One block is copied from the host and doubled on the device, which is fast and touches all memory.
        """
        cl = opencl()
        block = _block(dtype, size)
        cl.enqueue_copy(self._queue, buffer, block)
        done = block.nbytes
        while done < size:
            count = min(done, size - done)
            cl.enqueue_copy(self._queue, buffer, buffer, byte_count=count, src_offset=0, dst_offset=done)
            done += count
        self._queue.finish()

    def _buffer(self, size: int) -> Any:
        cl = opencl()
        spare = self._spare.get(size)
        if spare:
            self._spare_bytes -= size
            return spare.pop()
        flags = cl.mem_flags.READ_WRITE
        try:
            return cl.Buffer(self._context, flags, size)
        except cl.Error:
            self._release_spare()
            return cl.Buffer(self._context, flags, size)

    def _keep(self, size: int, buffer: Any) -> None:
        if size > self._limit:
            buffer.release()
            return
        if self._spare_bytes + size > self._limit:
            self._release_spare()
        self._spare.setdefault(size, []).append(buffer)
        self._spare_bytes += size

    def _release_spare(self) -> None:
        for buffers in self._spare.values():
            for buffer in buffers:
                buffer.release()
        self._spare.clear()
        self._spare_bytes = 0


def _block(dtype: str, size: int) -> Any:
    """Returns random values of at most `size` bytes."""
    import numpy as np  # slow to import

    return random_values(np.random.default_rng(SEED), dtype, min(size, BLOCK_BYTES) // np.dtype(dtype).itemsize)


def random_values(random: Any, dtype: str, count: int) -> Any:
    """Returns an array of random numbers: in [0.5, 1.5) where real, from 1 to 7 where whole."""
    import numpy as np  # slow to import

    kind = np.dtype(dtype)
    if kind.kind == "c":
        return (random.uniform(0.5, 1.5, count) + 1j * random.uniform(0.5, 1.5, count)).astype(kind)
    if kind.kind == "f":
        return random.uniform(0.5, 1.5, count).astype(kind)
    return random.integers(1, 8, count).astype(kind)
