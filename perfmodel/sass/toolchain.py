"""Runs NVIDIA's assembler and disassembler, which need neither a GPU nor a driver; results are kept on disk."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from perfmodel.basics.disk_cache import DiskCache
from perfmodel.basics.errors import KernelError, SourceError

ASSEMBLER, DISASSEMBLER = "ptxas", "nvdisasm"
EXTRA = "pip install 'perfmodel[nvidia]'"
SECONDS = 120
"""The assembler may take so long for one kernel."""
BINARY = "kernel.cubin"
TOLD = ("-c", "-hex", "-gp")
"""The disassembler prints code alone, with its encoding and the lines of the PTX that it was made of."""
ENTRIES = DiskCache("sass", most=4096, is_packed=True)
HELD = DiskCache("held", most=4096)


@dataclass(frozen=True)
class Assembled:
    """Holds what the two programs say of a kernel: the assembler's log, and the listing with its encoding."""

    log: str
    listing: str


class Held(NamedTuple):
    """Holds what a thread has while it runs: registers of 32 bits, and bytes of local memory for its stack."""

    registers: int
    stack_bytes: int


def is_installed() -> bool:
    """Returns True if both programs are here."""
    return bool(_found(ASSEMBLER) and _found(DISASSEMBLER))


def target_of(text: str) -> str:
    """Returns the GPUs that a PTX text is for, such as ``sm_90a``."""
    found = re.search(r"^\s*\.target\s+(sm_\w+)", text, re.M)
    return found[1] if found else "sm_90"


def assembled(text: str, entry: str, target: str = "") -> Assembled:
    """Assembles one kernel of a PTX text and takes the result apart again.

    Args:
        target: the GPUs that it is for, such as ``sm_90``; those of the text without.

    Raises:
        SourceError: for what the assembler does not take, with its first words on it.
        KernelError: where the programs are not installed, or do not end.
    """
    tools = _tools()
    target = target or target_of(text)
    key = [text, entry, target, *TOLD, *(_identity(tool) for tool in tools)]
    return ENTRIES.kept(key, lambda: _assembled(text, entry, target, tools), lambda kept: Assembled(**kept), asdict)


def held(text: str, entry: str) -> Held | None:
    """Returns what a thread of a kernel holds, as the assembler alone says; None where it is not installed, or does not
    take the text."""
    assembler = _found(ASSEMBLER)
    if not assembler:
        return None

    def found() -> Held | None:
        with tempfile.TemporaryDirectory(prefix="perfmodel-sass-") as folder, suppress(SourceError, KernelError):
            log = _log(text, entry, target_of(text), assembler, folder)
            registers, stack = re.search(r"Used (\d+) registers", log), re.search(r"(\d+) bytes stack frame", log)
            return Held(int(registers[1]), int(stack[1])) if registers and stack else None
        return None

    return HELD.kept([text, entry, _identity(assembler)], found, lambda kept: Held(*kept) if kept else None, _as_it_is)


def _as_it_is(found: Held | None) -> Held | None:
    return found


def _assembled(text: str, entry: str, target: str, tools: tuple[str, str]) -> Assembled:
    with tempfile.TemporaryDirectory(prefix="perfmodel-sass-") as folder:
        log = _log(text, entry, target, tools[0], folder)
        listing = _ran([tools[1], *TOLD, str(Path(folder, BINARY))], folder)
    return Assembled(log, listing)


def _log(text: str, entry: str, target: str, assembler: str, folder: str) -> str:
    """Returns what the assembler prints of a kernel, whose machine code it leaves in a folder."""
    source, binary = Path(folder, "kernel.ptx"), Path(folder, BINARY)
    source.write_text(text, encoding="utf-8")
    return _ran(
        [assembler, f"-arch={target}", "-v", "-lineinfo", "--entry", entry, str(source), "-o", str(binary)], folder
    )


def _ran(command: list[str], folder: str) -> str:
    """Returns what a program prints."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise KernelError(f"{Path(command[0]).name} does not run to its end ({error}); install it anew") from error
    said = (done.stdout + done.stderr).replace(f"{folder}{os.sep}", "")
    if done.returncode:
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        first = next((line for line in lines if "error" in line or "fatal" in line), lines[0] if lines else "no words")
        raise SourceError(f"{Path(command[0]).name} does not take the kernel: {first}")
    return said


def _tools() -> tuple[str, str]:
    assembler, disassembler = _found(ASSEMBLER), _found(DISASSEMBLER)
    if not assembler or not disassembler:
        missing = DISASSEMBLER if assembler else ASSEMBLER
        raise KernelError(f"machine code needs NVIDIA's {missing}, which is not installed; add it by {EXTRA}")
    return assembler, disassembler


@cache
def _found(name: str) -> str:
    """Returns the path of a program of the optional extra, or else of an installed toolkit; empty if there is none."""
    for folder in _folders():
        for path in sorted(folder.glob(f"*/bin/{name}*"), reverse=True):  # the newest CUDA first
            if path.stem == name:
                return str(path)
    return shutil.which(name) or ""


def _folders() -> Iterator[Path]:
    """Yields where packages of NVIDIA's may lie; never in the working folder."""
    yield from (Path(entry, "nvidia") for entry in sys.path if Path(entry).is_absolute())


@cache
def _identity(path: str) -> str:
    """Returns what tells one version of a program from others, without running it."""
    status = Path(path).stat()
    return f"{path} {status.st_size} {status.st_mtime_ns}"
