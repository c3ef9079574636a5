"""Tells what a device has no room for: work-groups that cannot be launched, and values that leave the registers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from perfmodel.basics.errors import KernelError
from perfmodel.device.facts import facts_called
from perfmodel.device.occupancy import OccupancyLimits, limits_of_facts, occupancy
from perfmodel.kernels.demand import Resources
from perfmodel.kernels.kernel import Kernel
from perfmodel.kernels.program import EmulatesItself


@dataclass(frozen=True)
class Limits:
    """Holds the limits of one device.

    Attributes:
        group_items: the most work-items of a work-group; None where that is not known.
        local_bytes: the most local memory of a work-group, as OpenCL gives it out; None likewise.
        unit: what a compute unit has room for; None for processors and for GPUs of which that is not known. Kernels of
            CUDA may have all the shared memory that it says.
    """

    group_items: int | None
    local_bytes: int | None
    unit: OccupancyLimits | None

    @classmethod
    def of(cls, device: Mapping[str, Any]) -> Limits:
        """Returns the limits of the device that a calibration is of."""
        facts = facts_called(str(device.get("name")))
        unit = None if facts is None or facts.kind != "gpu" else limits_of_facts(facts)
        return cls(device.get("max_work_group_size"), device.get("local_memory"), unit)

    def check(self, kernel: Kernel, demand: Resources) -> None:
        """Raises KernelError for a kernel that cannot be launched."""
        items, room = _items(kernel), self.local_bytes
        groups, members, memory = "work-groups", "work-items", "local memory"
        if isinstance(kernel.program, EmulatesItself):
            groups, members, memory = "blocks", "threads", "shared memory"
            room = self.unit.local_bytes_per_group if self.unit else None
        if self.group_items and items > self.group_items:
            raise KernelError(f"its {groups} have {items} {members}, and the device takes {self.group_items}")
        if room and demand.local_bytes > room:
            raise KernelError(f"its {groups} take {demand.local_bytes} bytes of {memory}, and there are {room}")
        if self.unit is not None and demand.source != "estimate" and demand.registers:
            occupancy(limits=self.unit, block=items, registers=demand.registers)  # raises an error of its own

    def spills(self, kernel: Kernel, demand: Resources) -> str:
        """Returns why values of a work-item are most likely in memory where they should be in registers."""
        if demand.spilled_bytes is not None:
            return f"registers spill: {demand.spilled_bytes} bytes" if demand.spilled_bytes else ""
        if self.unit is None or demand.registers is None:
            return ""
        room = min(self.unit.registers_per_item, self.unit.registers // _items(kernel))
        words = demand.registers + demand.private_bytes // 4
        if words <= room:
            return ""
        return f"registers spill, as a work-item holds about {words} words, and has room for {room}"


def _items(kernel: Kernel) -> int:
    return math.prod(kernel.launch().local_size)
