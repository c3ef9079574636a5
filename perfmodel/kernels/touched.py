"""Emulated work-groups tell what accesses touch whose addresses data decide on."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from perfmodel.counting.contention import Contention, contention_of
from perfmodel.counting.counts import FOOTPRINTS, PAGE_BYTES, AccessCount, Blocks, Footprint, KernelCounts
from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import walks
from perfmodel.opencl_c.origins import Origins

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perfmodel.opencl_c.emulation import Emulation

AccessKey: TypeAlias = tuple[str, str, str]
ArrayKey: TypeAlias = tuple[str, str]


@dataclass(frozen=True)
class TouchedByGroups:
    """Holds what emulated work-groups touched where data decide on addresses.

    Attributes:
        by_access: blocks that a sub-group touches in one execution, by an access's place, text and direction.
        passes: passes of atomics, and cycles of local memory's banks, likewise.
        contention: how often atomics of different groups go to one place.
        by_array: blocks that a work-group touches, by an array's name and the direction of accesses, or ``any``.
        tables: bytes that a work-group loads of each table of constants that the program declares.
    """

    by_access: Mapping[AccessKey, Blocks]
    passes: Mapping[AccessKey, float]
    contention: Mapping[AccessKey, Contention | None]
    by_array: Mapping[ArrayKey, Blocks]
    tables: Mapping[str, int]

    def counts(self, counts: KernelCounts) -> KernelCounts:
        """Returns counts with what was touched where the source doesn't tell it."""
        return replace(
            counts,
            accesses=tuple(map(self._access, counts.accesses)),
            footprints=tuple(map(self._footprint, counts.footprints)),
        )

    def _access(self, access: AccessCount) -> AccessCount:
        if access.space not in ("global", "local", "scratch") or not access.has_unknown_address:
            return access
        key = access.instruction, access.text, access.direction
        reach, loaded = access.reach, self.tables.get(access.variable or "")
        if reach is not None and loaded is not None:
            reach = min(reach, loaded)
        return replace(
            access,
            touched=self.by_access.get(key),
            passes=self.passes.get(key),
            contention=self.contention.get(key),
            reach=reach,
        )

    def _footprint(self, footprint: Footprint) -> Footprint:
        if footprint.by_group is not None:
            return footprint
        return replace(footprint, touched=self.by_array.get((footprint.variable, footprint.direction)))


def touched(emulation: Emulation, given: Collection[str]) -> TouchedByGroups:
    """Returns what emulated groups touched by addresses that follow from the contents of the given arrays alone."""
    kernel, machine = emulation.kernel, emulation.machine
    origins = Origins(kernel.body)
    tables = {each.name for each in kernel.objects if each.space == "constant"}
    known = {*given, *tables}
    by_access: dict[AccessKey, Blocks] = {}
    passes: dict[AccessKey, float] = {}
    contention: dict[AccessKey, Contention | None] = {}
    cut = {loop.place for loop in emulation.extrapolated if not loop.is_exact}
    left_out = walks.simple_statements(loop for loop in walks.loops(kernel.body) if loop.place in cut)
    unknown: set[str | None] = {
        node.access.variable
        for each in left_out
        for node in walks.accesses_of(each)
        if node.access.space in ("global", "constant")
    }
    for statement in walks.simple_statements(kernel.body):
        for node in walks.accesses_of(statement):
            access = node.access
            is_near = access.space in ("local", "private")
            if access.space not in ("global", "constant", "local", "private"):
                continue
            if not _arrays_behind(origins, node.pointer) <= known:
                if not is_near:
                    unknown.add(access.variable)
                continue
            counts = {name: int(emulation.accesses[name][:, access.number].sum()) for name in _COUNTED}
            if made := counts["subgroups"]:
                direction = low.direction_of(node)
                key = str(access.place), access.text, direction
                if direction == "atomic":
                    passes[key] = counts["passes"] / made
                    contention[key] = _contention(emulation, access)
                elif access.space == "local":
                    passes[key] = counts["bank_cycles"] / made
                if access.space != "local":
                    by_access[key] = (
                        (machine.transaction_bytes, counts["transactions"] / made),
                        (machine.line_bytes, counts["lines"] / made),
                    )
    by_array = {
        (name, direction): _of_groups(emulation.footprints[:, position], direction, machine.transaction_bytes)
        for position, (space, name) in enumerate(emulation.variables)
        if space in ("global", "constant") and name not in unknown and None not in unknown
        for direction in FOOTPRINTS
    }
    loaded = {name: round(dict(blocks)[1]) for name in tables if (blocks := by_array.get((name, "load")))}
    return TouchedByGroups(by_access=by_access, passes=passes, contention=contention, by_array=by_array, tables=loaded)


def _contention(emulation: Emulation, access: low.Access) -> Contention | None:
    """Returns how often an atomic of different groups goes to one place."""
    own = [(groups, addresses) for number, groups, addresses in emulation.updated if number == access.number]
    if not own:
        return None
    groups, addresses = (np.concatenate(each) for each in zip(*own, strict=True))
    return contention_of(addresses, groups, access.bytes)


def decided_by_ids(kernel: low.LoweredKernel, counts: KernelCounts) -> bool:
    """Returns whether the place of an access is unknown although no data, nor data alone, decide on it."""
    unknown = {
        (access.instruction, access.text)
        for access in counts.accesses
        if (access.space == "global" or access.direction == "atomic") and access.has_unknown_address
    }
    constants = {each.name for each in kernel.objects if each.space == "constant"}
    origins = Origins(kernel.body)
    nodes = (node for statement in walks.simple_statements(kernel.body) for node in walks.accesses_of(statement))
    return bool(unknown) and any(
        _arrays_behind(origins, node.pointer) <= constants
        for node in nodes
        if (str(node.access.place), node.access.text) in unknown
    )


_COUNTED = ("subgroups", "transactions", "lines", "bank_cycles", "passes")


def _of_groups(found: NDArray[np.void], direction: str, block: int) -> Blocks:
    recorded = "store" if direction == "atomic" else direction
    kinds = {1: "bytes", block: "blocks", PAGE_BYTES: "pages"}
    return tuple((size, float(found[f"{recorded}_{kind}"].mean())) for size, kind in kinds.items())


def _arrays_behind(origins: Origins, pointer: low.Expression) -> set[str]:
    """Returns the arrays in global and constant memory whose contents decide on an address."""
    return {
        each.access.variable or "?"
        for each in origins.behind([pointer], through_memory=True)
        if isinstance(each, low.Load | low.Atomic) and each.access.space in ("global", "constant")
    }
