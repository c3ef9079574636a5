"""Takes bytes of machine code apart into instructions, each with all that it reads and writes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from perfmodel.x86.alignment import Item
from perfmodel.x86.source import Calls, Place

CALL = ("call", "lcall")
JUMPS_ALWAYS = ("jmp", "ljmp")
FRAMES = ("rsp", "rbp", "rbx")
"""Registers that what a function keeps for itself is found by; where that is differs between versions."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """An instruction, with all that it reads and writes.

    Attributes:
        name: its mnemonic in Intel's syntax.
        file, line, column: of the source that it was made of; line 0 for none.
        calls: the same of the calls by which control comes to the function there, as far as these were inlined: that of
            the function itself first, up to one in the kernel.
        reads, writes: whole registers by their 64-bit names, ``v0`` to ``v31`` for vectors, and ``flags``.
        loads, stores: the address as text; empty where it touches no memory. addressed: the registers in it.
        bytes: of the widest vector register that it names; 0 for none.
        target: the address that it jumps to, if it says so.
        callee: the function that it calls; ``?`` for one that is not known.
        constant: the number that it adds, or that is added to an address; None for none.
    """

    address: int
    name: str
    file: str
    line: int
    column: int
    calls: Calls
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    loads: str
    stores: str
    addressed: tuple[str, ...]
    bytes: int
    target: int | None
    callee: str
    constant: int | None = None

    @property
    def jumps(self) -> bool:
        return self.name[0] == "j" or self.name in JUMPS_ALWAYS

    @property
    def is_masked(self) -> bool:
        """True where a mask says which lanes take part: a register for masks, or a vector in some of AVX2's."""
        return "mask" in self.name or any(_MASK.fullmatch(register) for register in self.reads)


class Disassembled(NamedTuple):
    """Holds an instruction as the disassembler has it, and the function that it calls, if it is a call."""

    raw: Any
    callee: str

    @property
    def address(self) -> int:
        return int(self.raw.address)

    def likeness(self) -> Item:
        """Returns what it does by and large, and as far as it is the same in both versions of a function."""
        raw = self.raw
        operands = []
        for operand in raw.operands:
            if operand.type == 1:
                operands.append(str(_register(raw.reg_name(operand.reg))[1]))
            elif operand.type == 2:
                operands.append("there" if raw.mnemonic[0] == "j" else str(operand.imm))
            else:
                memory = operand.mem
                is_kept = bool(memory.base) and raw.reg_name(memory.base) in FRAMES
                operands.append("kept" if is_kept else f"[{bool(memory.index) and memory.scale}:{memory.disp}]")
        return (raw.mnemonic, self.callee), (raw.mnemonic, self.callee, *operands)

    def at(self, place: Place, calls: Calls) -> Instruction:
        """Returns what it reads and writes, with the place in the source that it was made of."""
        raw = self.raw
        bytes_ = 0
        names: list[tuple[str, ...]] = []
        for group in _accessed(raw):
            whole = []
            for name in group:
                register, width = _register(name)
                whole.append(register)
                bytes_ = max(bytes_, width)
            names.append(tuple(dict.fromkeys(whole)))
        loads = stores = ""
        addressed: tuple[str, ...] = ()
        target = constant = None
        for operand in raw.operands:
            if operand.type == 3 and raw.mnemonic not in ("lea", "nop"):  # memory
                part = next((each for each in raw.op_str.split(",") if "[" in each), "").strip()
                text = part[part.find("[") :]
                parts = (operand.mem.base, operand.mem.index)
                addressed = tuple(_register(raw.reg_name(number))[0] for number in parts if number)
                # What the disassembler says of vectors that are stored is wrong: that they are read.
                is_stored = part == raw.op_str.partition(",")[0].strip() and not raw.mnemonic.startswith(_ONLY_READING)
                stores = text if is_stored else ""
                loads = text if not is_stored or _CHANGING.fullmatch(raw.mnemonic) else ""
            elif operand.type == 2 and raw.mnemonic[0] == "j":
                target = int(operand.imm)
            elif operand.type == 2:
                constant = int(operand.imm)
            elif raw.mnemonic == "lea" and operand.type == 3 and not operand.mem.index:
                constant = int(operand.mem.disp)
        reads, writes = names
        if _CLEARING.fullmatch(raw.mnemonic) and len(set(raw.op_str.replace(" ", "").split(","))) == 1:
            reads = ()
        file, line, column = place
        return Instruction(
            address=raw.address,
            name=raw.mnemonic,
            file=file,
            line=line,
            column=column,
            calls=calls,
            reads=reads,
            writes=writes,
            loads=loads,
            stores=stores,
            addressed=addressed,
            bytes=bytes_,
            target=target,
            callee=self.callee,
            constant=constant,
        )


def _accessed(raw: Any) -> tuple[list[str], list[str]]:
    """Returns the registers that an instruction reads and writes.

    The disassembler tells operands alone of some of AVX-512, such as comparisons whose result is a mask. The first one
    is written then, but for tests, which write flags.
    """
    read, written = ([raw.reg_name(number) for number in group] for group in raw.regs_access())
    if read or written:
        return read, written
    named = [raw.reg_name(operand.reg) for operand in raw.operands if operand.type == 1]
    parts = [operand.mem for operand in raw.operands if operand.type == 3]
    addressed = [raw.reg_name(number) for part in parts for number in (part.base, part.index) if number]
    if raw.mnemonic.startswith(_TESTING):
        return [*named, *addressed], ["rflags"]
    is_store = bool(raw.operands) and raw.operands[0].type == 3
    written = [] if is_store else named[:1]
    return [*named[len(written) :], *addressed], written


def disassembled(code: bytes, start: int, named: Mapping[int, str]) -> Iterator[Disassembled]:
    """Iterates over the instructions of a function.

    Args:
        start: the address of its first byte.
        named: the names that stand at places of the code.
    """
    callees = _Callees()
    for raw in _disassembler().disasm(code, start):
        name = next((named[at] for at in range(raw.address, raw.address + raw.size) if at in named), "")
        yield Disassembled(raw, callees.seen(raw, name))


@cache
def _disassembler() -> Any:
    import capstone  # slow to import, and only for this

    found = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    found.detail = True
    return found


class _Callees:
    """Follows the addresses of functions through registers and the stack."""

    def __init__(self) -> None:
        self._held: dict[str, str] = {}

    def seen(self, raw: Any, name: str) -> str:
        """Returns the function that an instruction calls, if it is a call."""
        operands = [part.strip() for part in raw.op_str.split(",", 1)]
        if raw.mnemonic in CALL:
            return name or self._held.get(operands[0], "?")
        if raw.mnemonic in ("movabs", "mov", "lea") and len(operands) == 2:
            target, source = operands
            held = name or self._held.get(source, "")
            if held:
                self._held[target] = held
            else:
                self._held.pop(target, None)
        return ""


VECTOR_BYTES = {"x": 16, "y": 32, "z": 64}


@cache
def _register(name: str) -> tuple[str, int]:
    """Returns the name of the whole register, and the bytes of a vector."""
    if name[1:3] == "mm" and name[0] in VECTOR_BYTES:
        return f"v{name[3:]}", VECTOR_BYTES[name[0]]
    if name.endswith("flags"):
        return "flags", 0
    if name[0] == "r" and name[1:2].isdigit():
        return name.rstrip("dwb"), 0
    legacy = name.lstrip("re") if len(name) == 3 and name[0] in "re" else name
    for whole in ("ax", "bx", "cx", "dx"):
        if legacy in (whole, f"{whole[0]}l", f"{whole[0]}h"):
            return f"r{whole}", 0
    for whole in ("si", "di", "bp", "sp"):
        if legacy in (whole, f"{whole}l"):
            return f"r{whole}", 0
    return name, 0


_MASK = re.compile("k[1-7]")
_ONLY_READING = ("cmp", "test", "bt", "call", "jmp", "push", "div", "idiv", "mul", "imul", "prefetch")
_TESTING = ("ktest", "kortest")
_CHANGING = re.compile("add|sub|inc|dec|and|or|xor|not|neg|adc|sbb|shl|shr|sar|rol|ror|xchg")
"""Instructions that read what they store to."""
_CLEARING = re.compile("xor|sub|v?pxor[dq]?|v?xorp[sd]|vpsub[bwdq]|vpandn[dq]?|vpcmp(eq|gt)[bwdq]")
"""Instructions whose result does not depend on a register that stands for both operands."""
