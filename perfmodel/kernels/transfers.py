"""Launches kernels with their transfers: inputs copied to the device before, outputs copied back after (Pöppl and
Herz)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from perfmodel.basics.errors import DecidedByDataError
from perfmodel.counting.counts import KernelCounts
from perfmodel.kernels.derived_program import DerivedProgram
from perfmodel.kernels.launch import Launch
from perfmodel.kernels.program import Program


class WithTransfers(DerivedProgram[Program]):
    """A program whose launch copies the arrays that it loads to the device, and those that it stores back.

    Its measured time is that of the copies, by the host's clock, and of the kernel, by its profiling event.
    """

    @property
    def content(self) -> str:
        return hashlib.sha256(f"with transfers: {self.program.content}".encode()).hexdigest()

    def counts_for(self, subgroup_size: int | None = None, at: Mapping[str, Any] | None = None) -> KernelCounts:
        return replace(self.program.counts_for(subgroup_size, at), transfers=True)

    def launch(self, arguments: Mapping[str, float]) -> Launch:
        """Returns the launch with its copies; raises CountingError where what the kernel loads and stores can't be
        known."""
        known: dict[str, float] = {name: int(arguments[name]) for name in self.sizes}
        known |= {name: arguments[name] for name in self.deciding}
        launch = self.program.launch(arguments)
        touched: set[tuple[str | None, str]]
        try:
            touched = {(each.variable, each.direction) for each in self.program.counts_for(None, known).footprints}
        except DecidedByDataError:  # which decide how often, but not on which arrays
            touched = {(each.variable, each.direction) for each in self.program.as_opencl().lowered.accesses}

        def moved(direction: str) -> tuple[str, ...]:
            own = {variable for variable, way in touched if way in (direction, "atomic")}
            return tuple(array.name for array in launch.arrays() if array.name in own)

        return replace(launch, copied_in=moved("load"), copied_out=moved("store"))
