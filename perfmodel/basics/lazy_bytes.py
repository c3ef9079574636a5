"""Large memory of which little is touched."""

from __future__ import annotations

import mmap
import sys
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

_SMALL = 1 << 17
"""Memory up to this size is taken at once."""


def lazy_bytes(size: int) -> NDArray[np.uint8]:
    """Returns zeros, of which only what is touched takes memory, however large `size` is."""
    if size <= _SMALL or not sys.platform.startswith("linux"):
        return np.zeros(size, np.uint8)
    no_reserve = getattr(mmap, "MAP_NORESERVE", 0x4000)
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | no_reserve)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        # Huge pages would commit two megabytes for each byte that is touched.
        with suppress(OSError):
            memory.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(memory, np.uint8)
