"""Tells from where instructions stem how many iterations of a loop a compiler wrote one after the other."""

from __future__ import annotations

from collections import Counter
from math import gcd

from perfmodel.ptx.code import Code
from perfmodel.ptx.counting.operations import Purposes, own_operations
from perfmodel.ptx.dataflow import ACCESSING
from perfmodel.ptx.syntax import Source


class Unrolling:
    """The iterations that basic blocks hold of each place in the source.

    What a place does once in an iteration, such as one operation of a kind or one access of an array, is there once for
    each iteration; so what all kinds of instructions of a place have in common is the number of iterations. Where
    places do whole tiles, there is one.
    """

    def __init__(self, code: Code, purposes: Purposes, arrays: dict[object, str]) -> None:
        kinds: dict[tuple[int, Source], Counter[str]] = {}
        for block in code.flow.blocks:
            for each in block.instructions:
                is_access = each.opcode in ACCESSING and not each.has("param")
                if each.source is not None and (is_access or (own_operations(each) and purposes.values(each))):
                    kind = f"{each.opcode} {arrays.get(each, '')}"
                    kinds.setdefault((block.number, each.source), Counter())[kind] += 1
        is_of_tiles = code.kernel.is_of_tiles
        self._times = {place: 1 if is_of_tiles else gcd(*counts.values()) for place, counts in kinds.items()}

    def times(self, block: int, source: Source | None) -> int:
        """Returns how many iterations a basic block holds of a place in the source; 1 where it isn't known."""
        return 1 if source is None else self._times.get((block, source), 1)
