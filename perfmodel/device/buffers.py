"""Device memory for a kernel's arrays, kept between launches and touched before them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Protocol

BLOCK_BYTES = 1 << 20
SEED = 20160425


class Memory(Protocol):
    """The memory of one device, by the calls of its driver."""

    @property
    def errors(self) -> type[Exception]:
        """The exceptions that these calls raise."""

    def allocate(self, size: int) -> Any:
        """Returns a new buffer of so many bytes."""

    def release(self, buffer: Any) -> None: ...

    def write(self, buffer: Any, host: Any) -> None:
        """Copies an array of the host into a buffer, and waits for it."""

    def repeat(self, buffer: Any, done: int, count: int) -> None:
        """Copies the first bytes of a buffer to behind those that are done."""

    def finish(self) -> None:
        """Waits until all copies are done."""


class BufferPool:
    """Buffers of one device; those not lent are kept for later, up to `limit` bytes."""

    def __init__(self, memory: Memory, limit: int) -> None:
        self._memory = memory
        self._limit = limit
        self._spare: dict[int, list[Any]] = {}
        self._spare_bytes = 0

    @contextmanager
    def lent(self, sizes: Sequence[int]) -> Iterator[list[Any]]:
        """Lends buffers of these sizes (bytes), their content undefined; what a failed use leaves behind is not
        kept."""
        if sum(sizes) > self._limit:  # drivers that allocate late would run short only once a buffer is touched
            self._release_spare()
        buffers: list[Any] = []
        try:
            buffers.extend(self._buffer(size) for size in sizes)
            yield buffers
        except BaseException:
            with suppress(self._memory.errors):  # a failed kernel may have spoilt the context that they belong to
                for buffer in buffers:
                    self._memory.release(buffer)
            raise
        for size, buffer in zip(sizes, buffers, strict=True):
            self._keep(size, buffer)

    def fill(self, buffer: Any, size: int, dtype: str) -> None:
        """Writes the same moderate random numbers into every page of a buffer of `size` bytes.

        Numbers near one keep floating-point kernels away from overflow and denormal numbers, whose speed differs.
        One block is copied from the host and doubled on the device, which is fast and touches all memory.
        """
        block = _block(dtype, size)
        self._memory.write(buffer, block)
        done = block.nbytes
        while done < size:
            count = min(done, size - done)
            self._memory.repeat(buffer, done, count)
            done += count
        self._memory.finish()

    def _buffer(self, size: int) -> Any:
        spare = self._spare.get(size)
        if spare:
            self._spare_bytes -= size
            return spare.pop()
        try:
            return self._memory.allocate(size)
        except self._memory.errors:
            self._release_spare()
            return self._memory.allocate(size)

    def _keep(self, size: int, buffer: Any) -> None:
        if size > self._limit:
            self._memory.release(buffer)
            return
        if self._spare_bytes + size > self._limit:
            self._release_spare()
        self._spare.setdefault(size, []).append(buffer)
        self._spare_bytes += size

    def _release_spare(self) -> None:
        for buffers in self._spare.values():
            for buffer in buffers:
                self._memory.release(buffer)
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
