"""The parts of a batch's emulation share this context."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple, TypeAlias

import numpy as np

from perfmodel.opencl_c.emulation.access_patterns import Pattern
from perfmodel.opencl_c.emulation.address_space import Regions
from perfmodel.opencl_c.emulation.findings import Finding, FindingLog
from perfmodel.opencl_c.emulation.lanes import Integers, Layout
from perfmodel.opencl_c.emulation.machine import Machine
from perfmodel.opencl_c.syntax import Place

_MOST_UPDATES = 1 << 12
"""So many executions of atomics are noted."""
Logged: TypeAlias = tuple[Pattern, int, float | int | None]
"""A logged access is a pattern, its address, and for stores the value if it is the same for all lanes."""


class Traced(NamedTuple):
    """A traced access has the addresses at which a pattern came for the first time."""

    pattern: Pattern
    addresses: Integers


class Context:
    """A context is one batch after another: its lanes, its memory, and where things are noted.

    Attributes:
        layout, findings, checks, logs: of the batch that runs.
        log: accesses since the last barrier, for races.
        traced: accesses met for the first time, where an extrapolation asks for them.
        updated: the number of each atomic on global memory with the groups and addresses of its lanes, where somebody
            asks for them.
    """

    layout: Layout
    findings: FindingLog
    checks: bool
    logs: bool

    def __init__(self, machine: Machine, regions: Regions) -> None:
        self.machine, self.regions = machine, regions
        self.log: list[Logged] = []
        self.traced: list[Traced] | None = None
        self.updated: list[tuple[int, Integers, Integers]] | None = None

    def begin(self, layout: Layout, findings: FindingLog, checks: bool) -> None:
        self.layout, self.findings = layout, findings
        self.checks = self.logs = checks

    def end(self) -> None:
        self.log.clear()
        self.traced = self.updated = None
        del self.layout, self.findings

    def note_update(self, number: int, pattern: Pattern, base: int) -> None:
        if self.updated is not None and len(self.updated) < _MOST_UPDATES:
            self.updated.append((number, self.layout.group_of[pattern.mask.lanes], base + pattern.offsets))

    def trace(self, pattern: Pattern, base: int) -> None:
        if self.traced is not None:
            self.traced.append(Traced(pattern, np.array([base])))

    def find(self, kind: str, place: Place, message: str, lane: int, count: int = 1, detail: Hashable = None) -> None:
        """Adds a finding of one lane."""
        group, item = self.layout.group_ids_of(lane), self.layout.local_ids(lane)
        self.findings.add(
            Finding(kind=kind, place=place, message=message, group=group, work_item=item, count=count), detail
        )
