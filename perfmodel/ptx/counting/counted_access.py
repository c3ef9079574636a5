"""Holds an access of one array that was recorded, and says how many transactions it takes."""

from __future__ import annotations

from dataclasses import dataclass, field

from perfmodel.counting.atomics import Update
from perfmodel.counting.banks import share_places
from perfmodel.ptx.counting.access_addresses import AccessAddresses
from perfmodel.ptx.dataflow import BULK, LOADS, STORES
from perfmodel.ptx.syntax import Instruction

_DIRECTIONS = {**dict.fromkeys(LOADS, "load"), **dict.fromkeys(STORES, "store"), "atom": "atomic", "red": "atomic"}


@dataclass(eq=False)
class CountedAccess:
    """Holds one access of one array, and how often it is executed."""

    instruction: Instruction
    block: int
    name: str
    space: str
    addresses: AccessAddresses
    share: float
    _at_once: dict[tuple[int, str, int], float] = field(default_factory=dict)

    def at_once(self, update: Update | None, width: int, kind: str, size: int) -> float:
        """Returns the transactions of a sub-group in one execution, or its cycles or passes, by what atomics do."""
        if (width, kind, size) not in self._at_once:
            if self.space == "scratch":
                found = self.addresses.blocks_of_private_arrays(width, size)
            elif self.addresses.is_of_image and self.direction == "store" and kind == "block":
                # Sub-groups of a work-group fill sectors together, which have pixels of two rows.
                subgroups = -(-self.addresses.lanes.per_block // width)
                found = self.addresses.blocks_of_subgroups(subgroups * width, size) / subgroups
            elif kind == "banks":
                are_shared = share_places(self.direction, self.space, is_constant=self.instruction.has("const"))
                are_copied = self.instruction.has("async")
                found = self.addresses.bank_cycles(width, size, are_shared=are_shared, are_copied=are_copied)
            else:
                found = _at_once(self.addresses, update, width, kind, size)
            self._at_once[width, kind, size] = found
        return self._at_once[width, kind, size]

    @property
    def direction(self) -> str:
        if self.instruction.opcode in BULK:
            if self.instruction.opcode == "cp.reduce.async.bulk":
                return "atomic"
            return "load" if self.instruction.has("mbarrier::complete_tx::bytes") else "store"
        return _DIRECTIONS[self.instruction.opcode]


def _at_once(addresses: AccessAddresses, update: Update | None, width: int, kind: str, size: int) -> float:
    if update is None or kind == "block":
        return addresses.blocks_of_subgroups(width, size)
    if update.is_combined:
        return 1.0
    if kind == "bank_passes":
        return addresses.bank_passes(width, size, update)
    return addresses.sector_passes(width, size)
