"""Finds out at what clock a core of this machine runs, where the system does not say."""

from __future__ import annotations

import ctypes
import mmap
import platform
import sys
import time
from functools import cache

PRODUCTS, CYCLES = 8, 3
"""Products that wait for each other in one turn of the loop, and the cycles of each: on Intel's cores since 2008 and
on AMD's since 2017 (A. Fog, Instruction tables, 2025)."""
CODE = b"\x48\x0f\xaf\xc0" * PRODUCTS + b"\x48\xff\xcf" + b"\x75" + bytes([256 - 4 * PRODUCTS - 5]) + b"\xc3"
"""A function of the number of turns: `imul rax, rax` so often, `dec rdi`, `jnz` to the first of these, `ret`."""
TURNS = 20_000
TRIES = 60
STEP = 1e8
"""Clocks are told to so many Hz, as no two tries agree on more."""


@cache
def clock_here() -> float:
    """Returns the clock in Hz that a core of this machine reaches in a chain of products; 0 where that cannot be found
    out: on processors other than those of x86-64, or where a process may not make code.

    It takes some milliseconds, the first time that it is called. The fastest of several tries counts, as others may
    use the core as well.
    """
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return 0.0
    try:
        with mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC) as page:
            page.write(CODE)
            place = ctypes.c_char.from_buffer(page)
            chain = ctypes.CFUNCTYPE(None, ctypes.c_uint64)(ctypes.addressof(place))
            seconds = min(_seconds(chain) for _ in range(TRIES))
            del place  # the page stays open as long as anything points to it
    except (OSError, ValueError):
        return 0.0
    return round(TURNS * PRODUCTS * CYCLES / seconds / STEP) * STEP


def _seconds(chain: ctypes._FuncPointer) -> float:
    started = time.perf_counter()
    chain(TURNS)
    return time.perf_counter() - started
