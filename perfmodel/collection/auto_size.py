"""Chooses sizes for a device (2016, section 4.2): from well above launch overhead to what memory and time allow."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from perfmodel.basics.errors import KernelError, TagError
from perfmodel.device import Device
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.launch import Launch
from perfmodel.measuring.protocol import EMPTY, PROTOCOLS, Protocol

BUDGET_S = 1.0
"""Seconds that measuring the kernel of the largest size may take, all its trials together."""

# The smallest size takes about so many times what a launch takes; that of a kernel that does nothing shows its
# work-groups.
CLEARLY, CLEARLY_EMPTY = 10, 4
# These thresholds are powers of so many seconds, which a small change of the overhead leaves where they are.
THRESHOLD_STEP = 4
LARGEST = 40
# Arrays may take this part of the device's memory.
MEMORY_SHARE = 0.5
# Many trials where they take next to no time: the minimum of a few differs from run to run.
LOOK = Protocol("look", trials=60, dropped=2, statistic="min", budget_s=0.05, min_trials=3)


def sizes_for(
    device: Device,
    step: int,
    cases: int,
    kernel_at: Callable[[int], Kernel | None],
    at_least: int = 1,
    budget_s: float = BUDGET_S,
) -> list[int]:
    """Returns at most `cases` powers of two that are not below `at_least`, each 2**step times the one before.

    Args:
        kernel_at: the kernel of a size; None where there is none.
        budget_s: seconds for all trials of one kernel.

    Returns:
        None at all if no kernel has any of these sizes.

    Raises:
        TagError: if no size is both long enough and small enough; KernelError: if the kernel can't run at all.
    """
    limit = budget_s / PROTOCOLS["unified"].trials
    found: list[int] = []
    tried: Kernel | None = None
    exponent = max(at_least - 1, 1).bit_length()
    while len(found) < cases and exponent < LARGEST:
        try:
            if kernel := kernel_at(2**exponent):
                launch = kernel.launch()
                seconds = _seconds(launch, device, LOOK) if _fits_memory(launch, device) else float("inf")
        except KernelError:
            if tried is None:
                raise
            break
        if kernel:
            tried = kernel
            if seconds > limit:
                break
            if found or seconds >= _threshold(device, CLEARLY if launch.arrays() else CLEARLY_EMPTY):
                found.append(2**exponent)
        exponent += step if found else 1
    if tried is not None and not found:
        raise TagError(
            f"no size of {tried.name!r} takes clearly longer than a launch on {device.key} and fits its memory and "
            f"{limit:.3g} s; give sizes by number"
        )
    return found


@cache
def _threshold(device: Device, times: float) -> float:
    """Returns how many seconds about so many launches take: half to twice as many."""
    minima = [_seconds(EMPTY, device, Protocol(name="launch", trials=10, dropped=1, statistic="min")) for _ in range(7)]
    return float(THRESHOLD_STEP ** round(math.log(times * statistics.median(minima), THRESHOLD_STEP)))


def _seconds(launch: Launch, device: Device, protocol: Protocol) -> float:
    from perfmodel.measuring.isolation.bench import isolated_timer  # slow to import

    with isolated_timer(device) as timer:
        return timer(launch, protocol).seconds


def _fits_memory(launch: Launch, device: Device) -> bool:
    sizes: Sequence[int] = [array.size * np.dtype(array.dtype).itemsize for array in launch.arrays()]
    return sum(sizes) <= MEMORY_SHARE * device.global_memory and max(sizes, default=0) <= device.max_allocation
