"""Says which registers instructions read and write, which are alive where, and what values follow from."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import TypeAlias

from perfmodel.basics.graphs import reached
from perfmodel.ptx.control_flow import EXIT, ControlFlow
from perfmodel.ptx.syntax import Address, Both, Instruction, Negated, Operand, Register, Symbol, Vector, items_of

IMAGES = frozenset(("tex", "tld4", "suld", "sust"))
"""Instructions that read and write pixels of images."""
IMAGE_SIZES = ("txq", "suq")
"""Instructions that tell an image's sizes."""
LOADS = frozenset(("ld", "ldu", "ldmatrix", "wmma.load", "tex", "tld4", "suld"))
STORES = frozenset(("st", "stmatrix", "wmma.store", "sust"))
ACCESSING = LOADS | STORES | {"atom", "red"}
PRODUCTS = frozenset(("mma", "wmma.mma", "wgmma.mma_async"))
BULK = frozenset(("cp.async.bulk", "cp.reduce.async.bulk", "tensormap.replace", "tensormap.cp_fenceproxy"))
"""Instructions that copy tiles and blocks of memory, or write what describes them."""
WITHOUT_RESULT = STORES | frozenset(
    (
        *("red", "bar", "barrier", "membar", "fence", "prefetch", "prefetchu", "trap", "brkpt", "nanosleep"),
        *("bra", "brx", "ret", "exit", "griddepcontrol", "setmaxnreg"),
        *("wgmma.fence", "wgmma.commit_group", "wgmma.wait_group", "cp"),
        *("mbarrier.init", "mbarrier.inval", "mbarrier.expect_tx", "cp.async.mbarrier", *BULK),
    )
)
MOST_KNOWN = 1 << 14
"""So many instructions are remembered with what they read and write."""
CARRY = "%carry"
"""The name of the flag that additions with carry leave and take."""

ParameterPlace: TypeAlias = tuple[str, int]
"""A part of a kernel's parameter: its name, and the bytes before it, which only structs have."""


def registers_in(operand: Operand) -> Iterator[str]:
    """Iterates over the names of the registers that stand in an operand."""
    match operand:
        case Register():
            yield operand.name
        case Address():
            if isinstance(operand.base, Register):
                yield operand.base.name
            for item in operand.coordinates:
                yield from registers_in(item)
        case Negated():
            yield operand.operand.name
        case Vector():
            for item in operand.items:
                yield from registers_in(item)
        case Both():
            yield from registers_in(operand.first)
            yield from registers_in(operand.second)


def has_result(instruction: Instruction) -> bool:
    if instruction.opcode in ("bar", "barrier"):
        return instruction.has("red")
    return instruction.opcode not in WITHOUT_RESULT


@lru_cache(MOST_KNOWN)
def written(instruction: Instruction) -> tuple[str, ...]:
    """Returns the registers that an instruction writes."""
    found: list[str] = []
    if has_result(instruction) and instruction.operands:
        found += registers_in(instruction.operands[0])
    if instruction.has("cc"):
        found.append(CARRY)
    return tuple(found)


@lru_cache(MOST_KNOWN)
def read(instruction: Instruction) -> tuple[str, ...]:
    """Returns the registers that an instruction reads, its guard among them."""
    operands = instruction.operands[1:] if has_result(instruction) else instruction.operands
    found = [name for operand in operands for name in registers_in(operand)]
    if instruction.opcode == "wgmma.mma_async":  # adds to its result
        found += registers_in(instruction.operands[0])
    if instruction.guard is not None:
        found.append(instruction.guard.register.name)
    if instruction.opcode in ("addc", "subc", "madc"):
        found.append(CARRY)
    return tuple(found)


def address_of(instruction: Instruction) -> Address | None:
    """Returns the place in memory that an instruction accesses."""
    return next((operand for operand in instruction.operands if isinstance(operand, Address)), None)


def parameters_behind(instruction: Instruction) -> dict[str, ParameterPlace]:
    """Returns which parts of parameters an instruction loads, if they have a pointer's width, by register."""
    if instruction.opcode != "ld" or not instruction.has("param"):
        return {}
    address = address_of(instruction)
    if address is None or not isinstance(address.base, Symbol):
        return {}
    if len(instruction.types) != 1 or instruction.types[0].bits != 64:
        return {}
    start = address.offset + address.base.offset
    return {
        name: (address.base.name, start + 8 * number)
        for number, item in enumerate(items_of(instruction.operands[0]))
        for name in registers_in(item)
    }


class Dataflow:
    """The flow of values through a kernel's registers.

    Attributes:
        alive: for each block, the registers whose values before it may still be read.
    """

    def __init__(self, flow: ControlFlow) -> None:
        self.flow = flow
        self.alive = self._alive()

    def _alive(self) -> list[frozenset[str]]:
        uses: list[set[str]] = []
        sets: list[set[str]] = []
        for block in self.flow.blocks:
            used: set[str] = set()
            defined: set[str] = set()
            for instruction in [*block.instructions, *([block.ending] if block.ending else [])]:
                used.update(name for name in read(instruction) if name not in defined)
                names = written(instruction)
                if instruction.guard is None:
                    defined.update(names)
                else:  # where the guard doesn't hold, the old value remains
                    used.update(name for name in names if name not in defined)
            uses.append(used)
            sets.append(defined)
        alive = [frozenset(used) for used in uses]
        waiting = list(range(len(alive)))
        while waiting:
            number = waiting.pop()
            after: set[str] = set()
            for successor in self.flow.blocks[number].successors:
                if successor != EXIT:
                    after |= alive[successor]
            new = frozenset(uses[number] | (after - sets[number]))
            if new != alive[number]:
                alive[number] = new
                waiting += self.flow.predecessors[number]
        return alive

    @cached_property
    def definitions(self) -> dict[str, list[Instruction]]:
        """The instructions that write each register."""
        found: dict[str, list[Instruction]] = {}
        for block in self.flow.blocks:
            for instruction in block.instructions:
                for name in written(instruction):
                    found.setdefault(name, []).append(instruction)
        return found

    @cached_property
    def uses(self) -> dict[str, list[Instruction]]:
        """The instructions that read each register."""
        found: dict[str, list[Instruction]] = {}
        for block in self.flow.blocks:
            for instruction in [*block.instructions, *([block.ending] if block.ending else [])]:
                for name in set(read(instruction)):
                    found.setdefault(name, []).append(instruction)
        return found

    def dtype_of(self, access: Instruction) -> str:
        """Returns numpy's name of what an access moves: bits are floats where these are computed with them."""
        type_ = access.types[-1]
        address = address_of(access)
        if type_.kind == "b" and type_.bits in (16, 32, 64):
            moved = [name for each in access.operands if each is not address for name in registers_in(each)]
            near = self.uses if access.opcode in LOADS else self.definitions
            if self._are_floats(moved, near, type_.bits):
                return f"float{type_.bits}"
        return f"{'float' if type_.form == 'tf32' else 'uint'}{type_.bits}" if type_.form else type_.dtype

    def _are_floats(self, names: list[str], near: dict[str, list[Instruction]], bits: int) -> bool:
        """Returns whether registers, or those that they are moved to or from, are computed with as floats."""
        waiting, seen = list(names), set(names)
        while waiting:
            for each in near.get(waiting.pop(), ()):
                if any(type_.is_float and type_.bits == bits for type_ in each.types) and each.opcode != "cvt":
                    return True
                if each.opcode in ("mov", "selp"):
                    more = {*written(each), *read(each)} - seen
                    seen |= more
                    waiting += more
        return False

    def behind(self, names: Iterator[str] | tuple[str, ...]) -> set[Instruction]:
        """Returns the instructions that registers' values follow from, through registers and parameters of calls."""
        registers = reached(names, lambda name: self._just_behind(name)[1])
        return {instruction for name in registers for instruction in self._just_behind(name)[0]}

    def _just_behind(self, name: str) -> tuple[tuple[Instruction, ...], tuple[str, ...]]:
        """Returns the instructions that give a register its value, and the registers that they read."""
        if name not in self._known_behind:
            found: list[Instruction] = []
            for instruction in self.definitions.get(name, ()):
                found.append(instruction)
                if instruction.opcode == "ld" and instruction.has("param"):
                    found += self.stored_parameters(instruction)
            behind = tuple(dict.fromkeys(register for each in found for register in self._read[each]))
            self._known_behind[name] = tuple(found), behind
        return self._known_behind[name]

    @cached_property
    def _known_behind(self) -> dict[str, tuple[tuple[Instruction, ...], tuple[str, ...]]]:
        return {}

    @cached_property
    def _read(self) -> dict[Instruction, tuple[str, ...]]:
        return {each: read(each) for block in self.flow.blocks for each in block.instructions}

    def stored_parameters(self, load: Instruction) -> list[Instruction]:
        """Returns the stores to the parameter of a call that a load reads."""
        address = address_of(load)
        if address is None or not isinstance(address.base, Symbol):
            return []
        return self._parameters.get(address.base.name, [])

    @cached_property
    def _parameters(self) -> dict[str, list[Instruction]]:
        found: dict[str, list[Instruction]] = {}
        for block in self.flow.blocks:
            for instruction in block.instructions:
                address = address_of(instruction)
                is_store = instruction.opcode == "st" and instruction.has("param")
                if is_store and address is not None and isinstance(address.base, Symbol):
                    found.setdefault(address.base.name, []).append(instruction)
        return found
