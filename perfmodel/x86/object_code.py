"""Takes the machine code of functions out of what a driver built, instruction by instruction with its line.

A driver that has to tell lines makes other code: it keeps the ids of work-items where a debugger finds them, and the
pieces between barriers become many times as slow. So what is executed comes from one binary, and lines from another one
of the same source, whose instructions are paired with it (`perfmodel.x86.alignment`).
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from perfmodel.x86.alignment import Item, paired
from perfmodel.x86.source import Calls, Place

OBJECT = ".ocl.obj"
"""The section of Intel's binaries that holds an object file of machine code."""
CODE = (".ltext", ".text")
CALL = ("call", "lcall")
JUMPS_ALWAYS = ("jmp", "ljmp")


FRAMES = ("rsp", "rbp", "rbx")
"""Registers that what a function keeps for itself is found by; where that is differs between versions."""
NOWHERE: tuple[Place, Calls] = ("", 0, 0), ()


class Binaries(NamedTuple):
    """Holds what a driver made of a source: what it executes, and what it makes of it where it tells lines."""

    executed: bytes
    lined: bytes


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


class Functions(Mapping[str, tuple[Instruction, ...]]):
    """The functions of a driver's binaries by name; each is taken apart when somebody asks for it.

    Raises:
        ValueError: a binary holds no machine code.
    """

    def __init__(self, binaries: Binaries) -> None:
        self._executed, self._lined = _Code(binaries.executed), _Code(binaries.lined)
        self._known: dict[str, tuple[Instruction, ...]] = {}

    def __getitem__(self, name: str) -> tuple[Instruction, ...]:
        if name not in self._known:
            self._known[name] = tuple(self._told(name))
        return self._known[name]

    def _told(self, name: str) -> Iterator[Instruction]:
        """Iterates over the instructions of a function, each with the place of the one that it is paired with."""
        code, lines = self._executed.raw(name), self._lined.lines
        other = self._lined.raw(name) if name in self._lined.parts else []
        pairs = paired([_likeness(raw) for raw in code], [_likeness(raw) for raw in other])
        for raw, pair in zip(code, pairs, strict=True):
            address = None if pair is None else other[pair].raw.address
            place, calls = NOWHERE if address is None else (lines.at(address), lines.calls_at(address))
            yield _instruction(raw, place, calls)

    def __iter__(self) -> Iterator[str]:
        return iter(self._executed.parts)

    def __len__(self) -> int:
        return len(self._executed.parts)


class _Raw(NamedTuple):
    """An instruction as the disassembler has it, and the function that it calls, if it is a call."""

    raw: Any
    callee: str


def _likeness(each: _Raw) -> Item:
    """Returns what an instruction does by and large, and as far as it is the same in both versions of a function."""
    raw = each.raw
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
    return (raw.mnemonic, each.callee), (raw.mnemonic, each.callee, *operands)


class _Code:
    """The functions of one binary, as bytes, and what is known of their addresses."""

    def __init__(self, binary: bytes) -> None:
        from elftools.common.exceptions import ELFError  # slow to import, and only for this
        from elftools.elf.elffile import ELFFile

        try:
            held = ELFFile(BytesIO(binary)).get_section_by_name(OBJECT)
            elf = ELFFile(BytesIO(binary if held is None else held.data()))
        except ELFError as error:
            raise ValueError("the binary is no ELF file") from error
        section = next((each for name in CODE if (each := elf.get_section_by_name(name)) is not None), None)
        symbols = elf.get_section_by_name(".symtab")
        if section is None or symbols is None:
            raise ValueError("the binary holds no machine code")
        starts: dict[int, tuple[str, int]] = {}
        for symbol in symbols.iter_symbols():
            if symbol["st_info"]["type"] == "STT_FUNC" and symbol["st_shndx"] != "SHN_UNDEF":
                starts[symbol["st_value"]] = symbol.name, symbol["st_size"]
        names = {start: name for start, (name, _) in starts.items()}
        self._relocations = _relocations(elf, section.name, symbols, names)
        self.lines = _Lines(elf)
        code = section.data()
        self.parts = {name: (start, code[start : start + size]) for start, (name, size) in starts.items()}

    def raw(self, name: str) -> list[_Raw]:
        """Returns the instructions of a function."""
        start, code = self.parts[name]
        named = {place: name for place, name in self._relocations if start <= place < start + len(code)}
        callees = _Callees()
        found = []
        for raw in _disassembler().disasm(code, start):
            name_there = next((named[at] for at in range(raw.address, raw.address + raw.size) if at in named), "")
            found.append(_Raw(raw, callees.seen(raw, name_there)))
        return found


def _relocations(elf: Any, section: str, symbols: Any, functions_at: Mapping[int, str]) -> list[tuple[int, str]]:
    """Returns at which places of the code names of others stand, in their order."""
    table = elf.get_section_by_name(f".rela{section}")
    found: list[tuple[int, str]] = []
    for each in table.iter_relocations() if table is not None else ():
        symbol = symbols.get_symbol(each["r_info_sym"])
        name = symbol.name or elf.get_section(symbol["st_shndx"]).name
        if name == section:
            name = functions_at.get(symbol["st_value"] + each["r_addend"], name)
        found.append((each["r_offset"], name))
    return sorted(found)


class _Lines:
    """Says which line of the source each address comes from, and by which calls control comes there."""

    def __init__(self, elf: Any) -> None:
        places: dict[int, Place] = {}
        inlined: list[tuple[int, int, Calls]] = []
        for unit in elf.get_dwarf_info().iter_CUs() if elf.has_dwarf_info() else ():
            program = unit.dwarfinfo.line_program_for_CU(unit)
            if program is None:
                continue
            first = 0 if program["version"] >= 5 else 1
            files = [PurePosixPath(each.name.decode(errors="replace")).name for each in program["file_entry"]]
            names = dict(enumerate(files, first))
            for entry in program.get_entries():
                if (state := entry.state) is not None:
                    places[state.address] = names.get(state.file, ""), state.line, state.column
            for function in unit.get_top_DIE().iter_children():
                inlined += _inlined(function, names, _named(function), ())
        self._starts = sorted(places)
        self._places = [places[start] for start in self._starts]
        self._edges = sorted({edge for low, high, _ in inlined for edge in (low, high)})
        self._calls: list[Calls] = [() for _ in self._edges]
        for low, high, calls in inlined:  # those that others lie in come first
            for place in range(bisect_left(self._edges, low), bisect_left(self._edges, high)):
                self._calls[place] = calls

    def at(self, address: int) -> Place:
        number = bisect_right(self._starts, address) - 1
        return self._places[number] if number >= 0 else ("", 0, 0)

    def calls_at(self, address: int) -> Calls:
        number = bisect_right(self._edges, address) - 1
        return self._calls[number] if number >= 0 else ()


def _inlined(entry: Any, files: Mapping[int, str], kernel: str, calls: Calls) -> Iterator[tuple[int, int, Calls]]:
    """Iterates over the ranges of addresses of functions that were inlined, outer ones first.

    Args:
        kernel: the function that all lies in, whose own call in what the driver puts around it is none.
    """
    for each in entry.iter_children():
        inner = calls
        if each.tag == "DW_TAG_inlined_subroutine" and _named(each) != kernel:
            told = (each.attributes.get(f"DW_AT_call_{name}") for name in ("file", "line", "column"))
            file, line, column = (0 if found is None else int(found.value) for found in told)
            inner = (files.get(file, ""), line, column), *calls
            for low, high in _ranges(each):
                yield low, high, inner
        yield from _inlined(each, files, kernel, inner)


def _named(entry: Any) -> str:
    """Returns the name of a function, or of the one that was inlined."""
    while "DW_AT_name" not in entry.attributes and "DW_AT_abstract_origin" in entry.attributes:
        entry = entry.get_DIE_from_attribute("DW_AT_abstract_origin")
    name = entry.attributes.get("DW_AT_name")
    return "" if name is None else str(name.value.decode(errors="replace"))


def _ranges(entry: Any) -> Iterator[tuple[int, int]]:
    """Iterates over the addresses of an entry of debugging information, beginnings and ends."""
    told = entry.attributes
    if "DW_AT_ranges" in told:
        start = entry.cu.get_top_DIE().attributes.get("DW_AT_low_pc")
        base = 0 if start is None else start.value
        lists = entry.cu.dwarfinfo.range_lists()
        for each in lists.get_range_list_at_offset(told["DW_AT_ranges"].value, cu=entry.cu):
            if hasattr(each, "base_address"):
                base = each.base_address
            elif each.is_absolute:
                yield each.begin_offset, each.end_offset
            else:
                yield base + each.begin_offset, base + each.end_offset
    elif "DW_AT_low_pc" in told and "DW_AT_high_pc" in told:
        low, high = told["DW_AT_low_pc"].value, told["DW_AT_high_pc"]
        yield low, high.value if high.form == "DW_FORM_addr" else low + high.value


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


def _instruction(each: _Raw, place: Place, calls: Calls) -> Instruction:
    raw, callee = each
    read, written = raw.regs_access()
    bytes_ = 0
    names: list[tuple[str, ...]] = []
    for group in (read, written):
        whole = []
        for number in group:
            register, width = _register(raw.reg_name(number))
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
        callee=callee,
        constant=constant,
    )


_ONLY_READING = ("cmp", "test", "bt", "call", "jmp", "push", "div", "idiv", "mul", "imul", "prefetch")
_CHANGING = re.compile("add|sub|inc|dec|and|or|xor|not|neg|adc|sbb|shl|shr|sar|rol|ror|xchg")
"""Instructions that read what they store to."""
_CLEARING = re.compile("xor|sub|v?pxor[dq]?|v?xorp[sd]|vpsub[bwdq]|vpandn[dq]?|vpcmp(eq|gt)[bwdq]")
"""Instructions whose result does not depend on a register that stands for both operands."""
