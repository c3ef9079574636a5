"""Says on which arrays' contents an access's address depends."""

from __future__ import annotations

from functools import cached_property

from perfmodel.ptx.dataflow import LOADS, STORES, address_of, registers_in
from perfmodel.ptx.emulation.emulation import Emulation
from perfmodel.ptx.syntax import Instruction, Register

_ON_CHIP = ("shared", "local")


class Origins:
    """The origins of the addresses of an emulated kernel's accesses.

    Attributes:
        constants: variables of the PTX text, whose contents are known.
    """

    def __init__(self, emulation: Emulation) -> None:
        self.emulation, self.flow = emulation, emulation.code.dataflow
        self.constants = frozenset(
            variable.name for variable in emulation.code.kernel.variables.values() if variable.contents is not None
        )
        self._known: dict[Instruction, frozenset[str]] = {}
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
        found, is_through_chip = self._loaded((address.base.name,))
        return found | self._on_chip if is_through_chip else found

    @cached_property
    def _on_chip(self) -> frozenset[str]:
        """The arrays that what is stored to memory on the chip follows from."""
        return self._loaded(tuple(name for store in self._stores for name in self._values(store)))[0]

    def _loaded(self, registers: tuple[str, ...]) -> tuple[frozenset[str], bool]:
        """Returns the arrays that registers' values are loaded from, and whether memory on the chip is among them."""
        loads = [each for each in self.flow.behind(registers) if each.opcode in (*LOADS, "atom")]
        noted = [
            place
            for each in loads
            if not each.has("param")
            for place in self.emulation.addresses.get(each, {}).values()
        ]
        return frozenset(each.name for each in noted if each.name), any(each.space in _ON_CHIP for each in noted)

    def _values(self, store: Instruction) -> list[str]:
        """Returns the registers of what is stored to memory on the chip."""
        noted = self.emulation.addresses.get(store, {}).values()
        if not any(each.space in _ON_CHIP for each in noted):
            return []
        address = address_of(store)
        return [name for operand in store.operands if operand is not address for name in registers_in(operand)]
