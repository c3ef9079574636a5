"""Reads the disassembler's listing: instructions with their labels and their control bits.

Since Volta, an instruction has 128 bits, of which the upper ones are for the scheduler: after how many cycles the next
one may issue, which of six barriers the instruction sets when its result is there (or its operands are read), and
which ones it waits for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from perfmodel.basics.errors import SourceError

LENGTH = 16
"""An instruction has so many bytes."""
NONE = 7
"""This number of a barrier is none."""
_SECTION = re.compile(r"^\s*\.section\s+\.text\.([^\s,]+),")
_LABEL = re.compile(r"^(\.?[\w$.]+):\s*$")
_CODE = re.compile(
    r"^\s*/\*(?P<place>[0-9a-f]{4,})\*/\s+(?:(?P<guard>@!?\w+)\s+)?(?P<name>[A-Z][\w.]*)\s*(?P<operands>[^;]*?)\s*;"
    r"\s*/\* 0x(?P<low>[0-9a-f]{16}) \*/\s*$"
)
_HIGH = re.compile(r"^\s*/\* 0x([0-9a-f]{16}) \*/\s*$")
_TARGET = re.compile(r"`\((\.?[\w$.]+)\)")
_SHORT_LOAD = re.compile(r"LD\w*\.(?:\w+\.)*?U(?:8|16)\b")
_LINE = re.compile(r'//## File "\.nv_debug_ptx_txt", line (\d+)')


@dataclass(frozen=True)
class Instruction:
    """One instruction of a kernel's machine code.

    Attributes:
        place: where it lies, in bytes from the kernel's start.
        name: with all its modifiers, such as ``LDG.E.64``.
        guard: the predicate under which it does something, such as ``@!P0``; empty for none.
        target: the place that it branches to; None for none.
        calls: the name of the function that it calls; empty for none.
        line: the line of the PTX that it was made of, counted from 1; 0 where the listing has none.
        stall: cycles before the next one issues.
        sets: the barrier that shows that its result is there, or `NONE`.
        waits: the barriers that it waits for.
    """

    place: int
    name: str
    operands: str
    guard: str
    target: int | None
    stall: int
    sets: int
    waits: tuple[int, ...]
    calls: str = ""
    line: int = 0

    @property
    def opcode(self) -> str:
        """The first word of the name."""
        return self.name.partition(".")[0]

    def of_kind(self, numbers: Mapping[str, float], usual: float) -> float:
        """Returns the number that is said of the first two words of the name, or of the first, or the usual one."""
        longer = ".".join(self.name.split(".", 2)[:2])
        return numbers.get(longer, numbers.get(self.opcode, usual))


def read(listing: str, entry: str) -> tuple[Instruction, ...]:
    """Returns the instructions of a kernel in a listing of ``nvdisasm -c -hex -gp``.

    Raises:
        SourceError: the listing has no such kernel, or no encoding beside its instructions.
    """
    labels: dict[str, int] = {}
    found: list[tuple[re.Match[str], int, int]] = []
    waiting: re.Match[str] | None = None
    section, number = "", 0
    for line in listing.splitlines():
        if match := _SECTION.match(line):
            section = match[1]
        elif section != entry:
            continue
        elif match := _LINE.search(line):
            number = int(match[1])
        elif match := _LABEL.match(line):
            labels[match[1]] = LENGTH * len(found)
        elif match := _CODE.match(line):
            waiting = match
        elif waiting is not None and (match := _HIGH.match(line)):
            found.append((waiting, int(match[1], 16), number))
            waiting = None
    if not found:
        raise SourceError(f"the listing has no machine code of kernel {entry!r}; give that of nvdisasm -c -hex")
    names = _as_drivers_choose([match for match, _, _ in found])
    return tuple(
        _instruction(match, name, high, labels, line) for (match, high, line), name in zip(found, names, strict=True)
    )


def _as_drivers_choose(code: list[re.Match[str]]) -> Iterator[str]:
    """Yields the names of instructions, as assemblers since CUDA 13 choose them, and so the drivers that run the code:
    bytes, and what a load of 16 bits has left, are converted as 32 bits by the pipe of whole numbers if they have no
    sign."""
    written: dict[str, str] = {}
    for match in code:
        name, operands = match["name"], [each.strip().removesuffix(".reuse") for each in match["operands"].split(",")]
        is_loaded = name == "I2F.U16" and _SHORT_LOAD.match(written.get(operands[-1], ""))
        yield "I2FP.F32.U32" if name == "I2F.U8" or is_loaded else name
        written[operands[0]] = name


def _instruction(match: re.Match[str], name: str, high: int, labels: dict[str, int], line: int) -> Instruction:
    control = high >> 41
    target = _TARGET.search(match["operands"])
    called = target[1] if target and match["name"].startswith("CALL") else ""
    return Instruction(
        place=int(match["place"], 16),
        name=name,
        operands=match["operands"],
        guard=match["guard"] or "",
        target=labels.get(target[1]) if target else None,
        stall=control & 15,
        sets=control >> 5 & 7,
        waits=tuple(number for number in range(6) if control >> 11 & 1 << number),
        calls=called,
        line=line,
    )
