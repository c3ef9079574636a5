"""The shapes of products of matrices, as instructions name them."""

from __future__ import annotations

import re

from perfmodel.basics.errors import SourceError
from perfmodel.ptx.syntax import Instruction


def shape_of(instruction: Instruction) -> tuple[int, int, int]:
    """Returns rows and columns of a product, and the length of its sums."""
    for word in instruction.modifiers:
        found = re.fullmatch(r"m(\d+)n(\d+)k(\d+)", word)
        if found:
            return int(found[1]), int(found[2]), int(found[3])
    raise SourceError(f"{instruction.name!r} has no shape, in PTX", "", instruction.line, 1)
