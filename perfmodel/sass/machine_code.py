"""Says of a kernel's machine code what models and people ask of it."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache

from perfmodel.basics.errors import KernelError, SourceError
from perfmodel.sass.loops import Loop, loops_of, outside
from perfmodel.sass.pipes import mix_of
from perfmodel.sass.reading import LENGTH, Instruction, read
from perfmodel.sass.toolchain import Assembled, assembled, is_installed, target_of
from perfmodel.sass.waiting import GLOBAL, LOCAL, Waiting, waiting

_OF = re.compile(r"(?:Compiling entry function '|Function properties for )(?P<name>[\w$.]+)")
_NUMBERS = {
    "registers": re.compile(r"Used (\d+) registers"),
    "barriers": re.compile(r"used (\d+) barriers"),
    "shared": re.compile(r"(\d+) bytes smem"),
    "stack": re.compile(r"(\d+) bytes stack frame"),
    "spill_stores": re.compile(r"(\d+) bytes spill stores"),
    "spill_loads": re.compile(r"(\d+) bytes spill loads"),
}


@dataclass(frozen=True)
class Piece:
    """A loop without the loops in it, or what lies in no loop.

    Attributes:
        loop: None for what lies in none.
        memory, shared: how it waits for loads from caches and memory, and from shared memory.
        mix: instructions by pipe.
    """

    loop: Loop | None
    memory: Waiting
    shared: Waiting
    mix: dict[str, int]


@dataclass(frozen=True)
class MachineCode:
    """A kernel as NVIDIA's assembler leaves it.

    Attributes:
        target: the GPUs that it is for, such as ``sm_90``.
        registers: of 32 bits of a thread; shared_bytes: of a block, without those that the launch provides.
        stack_bytes: of a thread, spilled registers included; spill_store_bytes, spill_load_bytes: of the instructions
            that spill, each counted once.
        barriers: that blocks meet at.
    """

    target: str
    registers: int
    shared_bytes: int
    stack_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int
    barriers: int
    instructions: tuple[Instruction, ...]

    @property
    def code_bytes(self) -> int:
        return LENGTH * len(self.instructions)

    @cached_property
    def mix(self) -> dict[str, int]:
        """Instructions by pipe."""
        return mix_of(self.instructions)

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """The code that lies in no loop, and the loops in the order in which they lie there, outer ones first."""
        loops = loops_of(self.instructions)
        rest = _piece(outside(self.instructions, loops), None)
        return (rest, *(_piece(loop.own, loop) for loop in loops))

    @property
    def loads_in_flight(self) -> int:
        """The most loads from caches and memory that are under way when a loop waits for one; of code without such a
        loop, when that does."""
        looping = [piece.memory.in_flight for piece in self.pieces if piece.loop and piece.memory.loads]
        return max(looping, default=self.pieces[0].memory.in_flight)


def machine_code(text: str, entry: str, target: str = "") -> MachineCode:
    """Returns the machine code of a kernel of PTX text; see `perfmodel.sass.toolchain.assembled`."""
    target = target or target_of(text)
    return of_listing(assembled(text, entry, target), entry, target)


def machine_code_here(text: str, entry: str, target: str = "") -> MachineCode | None:
    """Returns the machine code of a kernel of PTX text; None where the assembler is missing, does not take the text, as
    one of an old toolkit, or does not end."""
    return _machine_code_or_none(text, entry, target) if is_installed() else None


@lru_cache(maxsize=64)
def _machine_code_or_none(text: str, entry: str, target: str) -> MachineCode | None:
    """Keeps refusals, too, so that nothing is assembled in vain again."""
    with suppress(SourceError, KernelError):
        return machine_code(text, entry, target)
    return None


def of_listing(told: Assembled, entry: str, target: str) -> MachineCode:
    """Returns the machine code of a kernel by what the assembler and the disassembler say of it.

    Raises:
        SourceError: they say nothing of it.
    """
    numbers = _told(told.log, entry)
    return MachineCode(
        target=target,
        registers=numbers["registers"],
        shared_bytes=numbers["shared"],
        stack_bytes=numbers["stack"],
        spill_store_bytes=numbers["spill_stores"],
        spill_load_bytes=numbers["spill_loads"],
        barriers=numbers["barriers"],
        instructions=read(told.listing, entry),
    )


def _told(log: str, entry: str) -> dict[str, int]:
    found = dict.fromkeys(_NUMBERS, 0)
    current = ""
    for line in log.splitlines():
        if said := _OF.search(line):
            current = said["name"]
        elif current == entry:
            found.update({name: int(match[1]) for name, each in _NUMBERS.items() if (match := each.search(line))})
    if not found["registers"]:
        raise SourceError(f"the assembler's log says nothing of kernel {entry!r}; give that of ptxas -v")
    return found


def _piece(code: tuple[Instruction, ...], loop: Loop | None) -> Piece:
    is_loop = loop is not None
    return Piece(loop, waiting(code, GLOBAL, is_loop), waiting(code, LOCAL, is_loop), mix_of(code))
