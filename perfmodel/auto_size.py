"""Sizes chosen for a device (2016, section 4.2): from well above launch overhead to what memory and time allow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from perfmodel.errors import KernelError, TagError
from perfmodel.measurement import NEAR_OVERHEAD, PROTOCOLS, Launch, Protocol, time_launch

if TYPE_CHECKING:
    from perfmodel.device import Device
    from perfmodel.kernel import Kernel

BUDGET_S = 1.0
"""Seconds that measuring the kernel of the largest size may take, all its trials together."""

SMALLEST = 4
# Arrays may take this part of the device's memory.
MEMORY_SHARE = 0.5
LOOK = Protocol("look", trials=4, dropped=1, statistic="min")


def sizes_for(
    device: Device, step: int, cases: int, kernel_at: Callable[[int], Kernel], budget_s: float = BUDGET_S
) -> list[int]:
    """At most `cases` powers of two, each 2**step times the one before.

    Args:
        kernel_at: the kernel of a size.
        budget_s: seconds for all trials of one kernel.

    Raises:
        TagError: if no size is both long enough and small enough; KernelError: if the kernel can't run at all.
    """
    limit = budget_s / PROTOCOLS["unified"].trials
    found: list[int] = []
    longest = 0.0
    exponent = SMALLEST
    while len(found) < cases and longest < limit and exponent < 63:
        try:
            launch = kernel_at(2**exponent).launch()
            if not _fits_memory(launch, device):
                break
            timing = time_launch(launch, device, LOOK)
        except KernelError:
            if longest == 0:
                raise
            break
        longest = timing.seconds
        if found or NEAR_OVERHEAD not in timing.flags:
            if longest >= limit and found:
                break
            found.append(2**exponent)
        exponent += step if found else 1
    if not found:
        raise TagError(
            f"no size of {kernel_at(2**SMALLEST).name!r} takes clearly longer than a launch on {device.key} and fits "
            "its memory; give sizes by number"
        )
    return found


def _fits_memory(launch: Launch, device: Device) -> bool:
    sizes: Sequence[int] = [array.size * np.dtype(array.dtype).itemsize for array in launch.arrays()]
    return sum(sizes) <= MEMORY_SHARE * device.global_memory and max(sizes, default=0) <= device.max_allocation
