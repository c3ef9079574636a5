"""Emulated work-groups tell what accesses touch whose addresses data decide on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from perfmodel.counting.counts import FOOTPRINTS, AccessCount, Blocks, Footprint, KernelCounts
from perfmodel.opencl_c import lowered as low

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from perfmodel.opencl_c.emulation import Emulation

LINE_BYTES = 128
"""Blocks of this size are counted beside those of a transaction."""

AccessKey: TypeAlias = tuple[str, str, str]
ArrayKey: TypeAlias = tuple[str, str]


@dataclass(frozen=True)
class Touched:
    """Holds what emulated work-groups touched where data decide on addresses.

    Attributes:
        by_access: blocks that a sub-group touches in one execution, by an access's place, text and direction.
        by_array: blocks that a work-group touches, by an array's name and the direction of accesses, or ``any``.
    """

    by_access: Mapping[AccessKey, Blocks]
    by_array: Mapping[ArrayKey, Blocks]

    def counts(self, counts: KernelCounts) -> KernelCounts:
        """Returns counts with what was touched where the source doesn't tell it."""
        return replace(
            counts,
            accesses=tuple(map(self._access, counts.accesses)),
            footprints=tuple(map(self._footprint, counts.footprints)),
        )

    def _access(self, access: AccessCount) -> AccessCount:
        if access.space != "global" or not access.has_unknown_place:
            return access
        return replace(access, touched=self.by_access.get((access.instruction, access.text, access.direction)))

    def _footprint(self, footprint: Footprint) -> Footprint:
        if footprint.by_group is not None:
            return footprint
        return replace(footprint, touched=self.by_array.get((footprint.variable, footprint.direction)))


def touched(emulation: Emulation, given: Collection[str]) -> Touched:
    """Returns what emulated groups touched by addresses that follow from the contents of the given arrays alone."""
    kernel, machine = emulation.kernel, emulation.machine
    origins = _Origins(kernel)
    known = {*given, *(each.name for each in kernel.objects if each.space == "constant")}
    by_access: dict[AccessKey, Blocks] = {}
    unknown: set[str | None] = set()
    for statement in low.simple_statements(kernel.body):
        for node in low.accesses_of(statement):
            access = node.access
            if access.space not in ("global", "constant"):
                continue
            if not origins.arrays_behind(node.pointer) <= known:
                unknown.add(access.variable)
                continue
            counts = {name: int(emulation.accesses[name][:, access.number].sum()) for name in _COUNTED}
            if made := counts["subgroups"]:
                blocks = (
                    (machine.transaction_bytes, counts["transactions"] / made),
                    (machine.line_bytes, counts["lines"] / made),
                )
                by_access[str(access.place), access.text, low.direction_of(node)] = blocks
    by_array = {
        (name, direction): _of_groups(emulation.footprints[:, position], direction, machine.transaction_bytes)
        for position, (space, name) in enumerate(emulation.variables)
        if space in ("global", "constant") and name not in unknown and None not in unknown
        for direction in FOOTPRINTS
    }
    return Touched(by_access, by_array)


def decided_by_ids(kernel: low.LoweredKernel, counts: KernelCounts) -> bool:
    """Returns whether the place of an access is unknown although no data, nor data alone, decide on it."""
    unknown = {(a.instruction, a.text) for a in counts.accesses if a.space == "global" and a.has_unknown_place}
    constants = {each.name for each in kernel.objects if each.space == "constant"}
    origins = _Origins(kernel)
    nodes = (node for statement in low.simple_statements(kernel.body) for node in low.accesses_of(statement))
    return bool(unknown) and any(
        origins.arrays_behind(node.pointer) <= constants
        for node in nodes
        if (str(node.access.place), node.access.text) in unknown
    )


_COUNTED = ("subgroups", "transactions", "lines")


def _of_groups(found: NDArray[np.void], direction: str, block: int) -> Blocks:
    recorded = "store" if direction == "atomic" else direction
    return (1, float(found[f"{recorded}_bytes"].mean())), (block, float(found[f"{recorded}_blocks"].mean()))


class _Origins:
    """Tells which arrays an expression's value follows from."""

    def __init__(self, kernel: low.LoweredKernel) -> None:
        self._values: dict[low.Register, list[Any]] = defaultdict(list)
        self._stored: dict[str | None, list[Any]] = defaultdict(list)
        for statement in low.simple_statements(kernel.body):
            if (register := low.register_set(statement)) is not None:
                self._values[register].append(statement)
            if isinstance(statement, low.Store | low.Atomic) and statement.access.space in ("local", "private"):
                self._stored[statement.access.variable].append(statement)

    def arrays_behind(self, pointer: low.Expression) -> set[str]:
        """Returns the arrays in global and constant memory whose contents decide on an address; conditions under which
        variables get their values are left out."""
        found: set[str] = set()
        seen: set[Any] = set()
        waiting: list[Any] = [pointer]
        while waiting:
            for part in self._loads_and_registers(waiting.pop()):
                if isinstance(part, low.Register):
                    key: Any = part
                    new = self._values.get(part, [])
                elif part.space in ("global", "constant"):
                    found.add(part.variable or "?")
                    continue
                else:
                    key, new = (part.space, part.variable), self._stored.get(part.variable, [])
                if key not in seen:
                    seen.add(key)
                    waiting += new
        return found

    @staticmethod
    def _loads_and_registers(node: Any) -> Iterator[low.Access | low.Register]:
        expressions: Iterable[low.Expression] = (node,)
        if isinstance(node, low.Assign | low.Store | low.Atomic | low.Collective):
            expressions = low.expressions_of(node)
            if isinstance(node, low.Atomic):
                yield node.access
        for expression in expressions:
            for part in low.walk(expression):
                if isinstance(part, low.Load):
                    yield part.access
                elif isinstance(part, low.Read):
                    yield part.register
