"""Takes the machine code of functions out of what a driver built, instruction by instruction with its line.

A driver that has to tell lines makes other code: it keeps the ids of work-items where a debugger finds them, and the
pieces between barriers become many times as slow. So what is executed comes from one binary, and lines from another one
of the same source, whose instructions are paired with it (`perfmodel.x86.alignment`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from io import BytesIO
from typing import Any, NamedTuple

from perfmodel.x86.alignment import paired
from perfmodel.x86.instructions import Disassembled, Instruction, disassembled
from perfmodel.x86.lines import NOWHERE, Lines

OBJECT = ".ocl.obj"
"""The section of Intel's binaries that holds an object file of machine code."""
CODE = (".ltext", ".text")


class Binaries(NamedTuple):
    """Holds what a driver made of a source: what it executes, and what it makes of it where it tells lines."""

    executed: bytes
    lined: bytes


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
        code, lines = self._executed.instructions(name), self._lined.lines
        other = self._lined.instructions(name) if name in self._lined.parts else []
        pairs = paired([each.likeness() for each in code], [each.likeness() for each in other])
        for each, pair in zip(code, pairs, strict=True):
            address = None if pair is None else other[pair].address
            place, calls = (NOWHERE, ()) if address is None else (lines.at(address), lines.calls_at(address))
            yield each.at(place, calls)

    def __iter__(self) -> Iterator[str]:
        return iter(self._executed.parts)

    def __len__(self) -> int:
        return len(self._executed.parts)


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
        self.lines = Lines(elf)
        code = section.data()
        self.parts = {name: (start, code[start : start + size]) for start, (name, size) in starts.items()}

    def instructions(self, name: str) -> list[Disassembled]:
        start, code = self.parts[name]
        named = {place: name for place, name in self._relocations if start <= place < start + len(code)}
        return list(disassembled(code, start, named))


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
