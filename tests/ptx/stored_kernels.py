"""Kernels that compilers made PTX of, kept in a file, so that tests run them without these compilers."""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from perfmodel import Kernel
from perfmodel.kernels.arguments import Array, Derived, Described, Scalar
from perfmodel.kernels.ptx_program import PtxProgram

_KINDS = {each.__name__: each for each in (Array, Derived, Described, Scalar)}


def store(path: Path, kernels: Mapping[str, Kernel]) -> None:
    """Writes kernels to a file, by title."""
    found = {}
    for title, kernel in kernels.items():
        program: Any = kernel.program
        declared = [[type(each).__name__, vars(each)] for each in program.declared]
        text, entry, name, grid, block, _, shared, assumptions, _, _, _, free, *_ = program.__reduce__()[1]
        plain = [text, entry, name, grid, block, declared, shared, assumptions, free, kernel.bound]
        found[title] = json.loads(json.dumps(plain))
    path.write_bytes(lzma.compress(json.dumps(found).encode(), preset=9))


@cache
def stored(path: Path) -> dict[str, Any]:
    """Returns what a file holds, by title."""
    found: dict[str, Any] = json.loads(lzma.decompress(path.read_bytes()))
    return found


def load(path: Path, title: str) -> Kernel:
    """Returns a kernel of a file, with its numbers and without contents of arrays."""
    text, entry, name, grid, block, declared, shared, assumptions, free, bound = stored(path)[title]
    arguments = [_KINDS[kind](**fields) for kind, fields in declared]
    program = PtxProgram(text, entry, name, grid, block, arguments, shared, assumptions, free=free)
    return Kernel(program).at(**bound)
