"""Says on which arrays' contents an access's address depends."""

from __future__ import annotations

from perfmodel.ptx.dataflow import LOADS, STORES, address_of, registers_in
from perfmodel.ptx.emulation.emulation import Emulation
from perfmodel.ptx.syntax import Instruction, Register, Symbol

_ON_CHIP = ("shared", "local")


class Origins:
    """The origins of the addresses of an emulated kernel's accesses.

    Attributes:
        constants: variables of the PTX text, whose contents are known.
        unset: those that programs fill before they launch the kernel, such as keys; they are 0 here.
    """

    def __init__(self, emulation: Emulation) -> None:
        self.emulation, self.flow = emulation, emulation.code.dataflow
        variables = emulation.code.kernel.variables.values()
        self.constants = frozenset(each.name for each in variables if each.contents is not None)
        self.unset = frozenset(each.name for each in variables) - self.constants
        self._known: dict[Instruction, frozenset[str]] = {}
        self._variables_of: dict[Instruction, frozenset[str]] = {}
        self._arrays_of: dict[tuple[frozenset[Instruction], frozenset[Instruction]], frozenset[str]] = {}
        self._values_of: dict[Instruction, list[str]] = {}
        self._loads_of: dict[tuple[str, ...], list[Instruction]] = {}
        self._stores_of: dict[frozenset[str], frozenset[Instruction]] = {}
        self._stores = [
            each
            for block in emulation.code.flow.blocks
            for each in block.instructions
            if each.opcode in (*STORES, "atom", "red") and not each.has("param")
        ]

    def arrays_behind(self, access: Instruction) -> frozenset[str]:
        """Returns the arrays whose contents decide on an access's address, also by way of memory on the chip."""
        if access not in self._known:
            self._known[access] = self._behind(access)
        return self._known[access]

    def _behind(self, access: Instruction) -> frozenset[str]:
        address = address_of(access)
        if address is None or not isinstance(address.base, Register):
            return frozenset()
        return self._arrays((address.base.name,), frozenset())

    def _arrays(self, registers: tuple[str, ...], through: frozenset[Instruction]) -> frozenset[str]:
        """Returns the arrays that registers' values are loaded from, also by way of memory on the chip.

        Args:
            through: the stores to memory on the chip that were followed already.
        """
        found: frozenset[str] = frozenset()
        reached: frozenset[Instruction] = frozenset()
        for load in self._loads(registers):
            noted = [] if load.has("param") else list(self.emulation.addresses.get(load, {}).values())
            found |= {each.name for each in noted if each.name}
            if any(each.space in _ON_CHIP for each in noted):
                reached |= self._stores_met(self._variables(load))
        reached -= through
        if not reached:
            return found
        if (reached, through) not in self._arrays_of:
            stored = tuple({name for store in reached for name in self._values(store)})
            self._arrays_of[reached, through] = self._arrays(stored, through | reached)
        return found | self._arrays_of[reached, through]

    def _loads(self, registers: tuple[str, ...]) -> list[Instruction]:
        """Returns the loads that registers' values follow from."""
        if registers not in self._loads_of:
            behind = self.flow.behind(registers)
            self._loads_of[registers] = [each for each in behind if each.opcode in (*LOADS, "atom")]
        return self._loads_of[registers]

    def _stores_met(self, variables: frozenset[str]) -> frozenset[Instruction]:
        """Returns the stores that loads of some variables in memory on the chip may read, of any if these are none."""
        if variables not in self._stores_of:
            self._stores_of[variables] = frozenset(
                store
                for store in self._stores
                if not variables or not (others := self._variables(store)) or not variables.isdisjoint(others)
            )
        return self._stores_of[variables]

    def _variables(self, access: Instruction) -> frozenset[str]:
        """Returns the variables whose addresses an access's address follows from."""
        if access not in self._variables_of:
            address = address_of(access)
            base = None if address is None else address.base
            behind = self.flow.behind((base.name,)) if isinstance(base, Register) else ()
            operands = [base, *(operand for each in behind for operand in each.operands)]
            self._variables_of[access] = frozenset(each.name for each in operands if isinstance(each, Symbol))
        return self._variables_of[access]

    def _values(self, store: Instruction) -> list[str]:
        """Returns the registers of what is stored to memory on the chip."""
        if store not in self._values_of:
            address = address_of(store)
            is_on_chip = any(each.space in _ON_CHIP for each in self.emulation.addresses.get(store, {}).values())
            operands = [each for each in store.operands if each is not address] if is_on_chip else []
            self._values_of[store] = [name for operand in operands for name in registers_in(operand)]
        return self._values_of[store]
