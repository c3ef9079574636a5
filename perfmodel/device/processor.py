"""Asks a processor's driver how wide its vectors are, and Linux what its caches keep."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from perfmodel.device.device import Device

SYSTEM = Path("/sys/devices")
CACHES = Path("system", "cpu", "cpu0", "cache")
"""The folder of Linux's devices, and that of the first processor's caches in it."""
UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}
MOST_KEPT = 2**27
"""Bytes of a last cache, at most, that cores of a virtual machine have to themselves."""


@dataclass(frozen=True)
class Processor:
    """Holds what a model of processors asks of one.

    Attributes:
        lanes: work-items with single precision in a vector.
        first, second, last: bytes that a core's first and second cache and the one that cores share keep.
    """

    lanes: int
    first: int
    second: int
    last: int


USUAL = Processor(16, 3 * 2**14, 2**21, 2**27)
"""A server's processor of today, where nobody can ask one."""


def processor(device: Device | None, caches: Path = SYSTEM / CACHES) -> Processor | None:
    """Returns what is known of a processor of this machine; None of others, and where the system does not tell."""
    if device is None or device.kind != "cpu" or not device.is_here:
        return None
    sizes = cache_sizes(caches)
    if not sizes:
        return None
    levels = sorted(sizes)
    first, second, last = sizes[levels[0]], sizes[levels[min(1, len(levels) - 1)]], sizes[levels[-1]]
    return Processor(int(device.session().raw.native_vector_width_float) or USUAL.lanes, first, second, last)


def cache_sizes(folder: Path) -> dict[int, int]:
    """Returns the bytes of each level of caches that data go through; empty where Linux does not list them."""
    found: dict[int, int] = {}
    for entry in sorted(folder.glob("index*")):
        try:
            level, kind, size = ((entry / name).read_text().strip() for name in ("level", "type", "size"))
        except OSError:
            continue
        if kind != "Instruction" and (match := re.fullmatch(r"(\d+)([KMG]?)", size)) and level.isdecimal():
            found[int(level)] = int(match[1]) * UNITS[match[2]]
    return found
