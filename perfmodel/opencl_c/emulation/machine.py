"""Recording assumes this about the device: how work-items go together, and what memory moves at a time."""

from __future__ import annotations

from dataclasses import dataclass

from perfmodel.basics.errors import KernelError


@dataclass(frozen=True)
class Machine:
    """A machine has sizes that only the recorded counts depend on, never the results.

    Attributes:
        subgroup_size: work-items that execute together; consecutive in the linear local id.
        transaction_bytes: the aligned blocks in which global memory is read and written.
        banks, bank_bytes: local memory gives each bank's word of so many bytes once a cycle.
        line_bytes: larger aligned blocks of global memory, which are counted beside the transactions; 0 for none.
    """

    subgroup_size: int = 32
    transaction_bytes: int = 32
    banks: int = 32
    bank_bytes: int = 4
    line_bytes: int = 0

    def __post_init__(self) -> None:
        for name in ("transaction_bytes", "bank_bytes", "line_bytes"):
            value = getattr(self, name)
            if value & (value - 1) or value < (name != "line_bytes"):
                raise KernelError(f"the machine's {name} is {value}, but must be a power of two")
        for name in ("subgroup_size", "banks"):
            if getattr(self, name) < 1:
                raise KernelError(f"the machine's {name} is {getattr(self, name)}, but must be at least 1")
