"""Estimates how many registers a kernel needs, by the values that live at once in its PTX as it stands."""

from __future__ import annotations

from perfmodel.ptx.code import Code
from perfmodel.ptx.control_flow import EXIT
from perfmodel.ptx.dataflow import CARRY, read, written


def words_at_once(code: Code) -> int:
    """Returns the words of 32 bits that live at once, at most; predicates have registers of their own."""
    sizes = words_of(code)
    most = 0
    for block in code.flow.blocks:
        living: set[str] = set()
        for successor in block.successors:
            if successor != EXIT:
                living |= code.dataflow.alive[successor]
        words = sum(sizes.get(name, 0) for name in living)
        most = max(most, words)
        for instruction in reversed([*block.instructions, *([block.ending] if block.ending else [])]):
            ending = living.intersection(written(instruction)) if instruction.guard is None else set()
            living -= ending
            beginning = {name for name in read(instruction) if name != CARRY} - living
            living |= beginning
            words += sum(sizes.get(name, 0) for name in beginning) - sum(sizes.get(name, 0) for name in ending)
            most = max(most, words)
    return most


def words_of(code: Code) -> dict[str, int]:
    """Returns the words of a kernel's registers by their names, without predicates."""
    return {name: max(-(-type_.bits // 32), 1) for name, type_ in code.kernel.registers.items() if type_.kind != "p"}
