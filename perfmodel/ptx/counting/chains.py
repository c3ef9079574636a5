"""Finds operations that wait for each other, from a register's value to its value in a loop's next iteration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from perfmodel.ptx.code import Code
from perfmodel.ptx.control_flow import Loop
from perfmodel.ptx.counting.operations import Purposes, own_operations
from perfmodel.ptx.dataflow import PRODUCTS, read, written
from perfmodel.ptx.syntax import Instruction

Way = Counter[tuple[str, str]]


@dataclass(frozen=True, eq=False)
class Chain:
    """Operations of one iteration of a loop that wait for those of the iteration before.

    Attributes:
        block: the basic block that ends the chain.
    """

    loop: Loop
    block: int
    operations: Way


def chains_of(code: Code, purposes: Purposes) -> Iterator[Chain]:
    """Iterates over the chains of a kernel's loops; what loops inside a loop do belongs to their own."""
    for loop in code.flow.loops:
        inner = [other for other in code.flow.loops if other.outer is loop]
        own = [number for number in sorted(loop.blocks) if not any(number in other.blocks for other in inner)]
        set_here = {
            name: number for number in own for each in code.flow.blocks[number].instructions for name in written(each)
        }
        for register in sorted(code.dataflow.alive[loop.header] & set_here.keys()):
            way = _way(code, own, register, purposes)
            if way:
                yield Chain(loop, set_here[register], way)


def _operations(instruction: Instruction) -> Way:
    """Returns the operations of an instruction; the multiply-adds of one product of matrices wait as one."""
    own = own_operations(instruction)
    return Counter(dict.fromkeys(own, 1) if instruction.opcode in PRODUCTS else own)


def _way(code: Code, blocks: list[int], register: str, purposes: Purposes) -> Way:
    """Returns the operations on the longest way from a register's value before an iteration to that after it."""
    ways: dict[str, Way] = {register: Counter()}
    for number in blocks:
        for instruction in code.flow.blocks[number].instructions:
            names = written(instruction)
            before = [ways[name] for name in read(instruction) if name in ways]
            if not before:
                if instruction.guard is None:
                    for name in names:
                        if name != register or name in ways:
                            ways.pop(name, None)
                continue
            way = max(before, key=Counter.total)
            own = _operations(instruction) if purposes.values(instruction) else Counter()
            for name in names:
                ways[name] = way + own
    return ways.get(register, Counter())
