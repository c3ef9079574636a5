"""Finds counters by which blocks share out a launch's work among themselves while they run."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.ptx.code import Code
from perfmodel.ptx.control_flow import Loop
from perfmodel.ptx.dataflow import STORES, address_of, registers_in
from perfmodel.ptx.parameters import shared_variables
from perfmodel.ptx.syntax import Instruction, Special

_SHARED = ("shared", "shared::cta")
_OF_PLACES = frozenset(("mov", "cvta", "add", "ld"))


class Turns:
    """Says how often additions to a counter are made each, as blocks that are not emulated make theirs meanwhile: whole
    numbers that are so many on average.

    Args:
        mean: blocks of the launch for each one that is emulated.
    """

    def __init__(self, mean: float) -> None:
        self.mean, self._made = mean, 0

    def next(self, count: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Returns how often the next so many additions are made."""
        ends = np.floor((self._made + np.arange(count + 1)) * self.mean)
        self._made += count
        made: NDArray[Any] = np.diff(ends).astype(dtype)
        return made


def work_counters(code: Code) -> frozenset[Instruction]:
    """Returns the additions to one number in global memory whose results end a loop that asks for the next one: what
    one block is given, no other is, so that each has a part of all work."""
    found: set[Instruction] = set()
    asking = {each for block in code.flow.blocks for each in block.instructions if _asks(code, each)}
    for loop in code.flow.loops:
        inside = [each for number in loop.blocks for each in code.flow.blocks[number].instructions]
        if asking.intersection(inside):
            behind = asking & _behind_end(code, loop)
            if behind.intersection(inside):
                found |= behind
    return frozenset(found)


def _behind_end(code: Code, loop: Loop) -> set[Instruction]:
    """Returns the instructions that the end of a loop follows from, through registers and shared memory."""
    blocks = [code.flow.blocks[number] for number in loop.blocks]
    ends = [each for each in blocks if each.guard is not None and not loop.blocks.issuperset(each.successors)]
    found = code.dataflow.behind(tuple(each.guard.register.name for each in ends if each.guard is not None))
    loaded = [shared_variables(code, each) for each in found if each.opcode == "ld" and each.has(*_SHARED)]
    everything = [each for block in code.flow.blocks for each in block.instructions]
    for each in everything:
        if each.opcode in STORES and each.has(*_SHARED):
            own = shared_variables(code, each)
            if any(not own or not other or own & other for other in loaded):
                found |= code.dataflow.behind(tuple(_moved(each)))
    return found


def _moved(store: Instruction) -> Collection[str]:
    address = address_of(store)
    return {name for each in store.operands if each is not address for name in registers_in(each)}


def _asks(code: Code, instruction: Instruction) -> bool:
    """Returns whether an instruction adds to a number of which all threads of a launch have the same one."""
    address = address_of(instruction)
    if instruction.opcode != "atom" or not instruction.has("add") or instruction.has(*_SHARED) or address is None:
        return False
    behind = code.dataflow.behind(tuple(registers_in(address)))
    return all(_is_same_for_all(each) for each in behind)


def _is_same_for_all(instruction: Instruction) -> bool:
    if instruction.opcode not in _OF_PLACES or (instruction.opcode == "ld" and not instruction.has("param")):
        return False
    return not any(isinstance(each, Special) for each in instruction.operands)
