"""Finds operations that wait for each other, from a register's value to its value in a loop's next iteration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from perfmodel.ptx.code import Code
from perfmodel.ptx.control_flow import Loop
from perfmodel.ptx.counting.operations import Purposes
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


@dataclass(frozen=True)
class _Step:
    """An instruction of a loop: the registers that it reads and writes, and what operations of values it does.

    Attributes:
        is_sure: whether it is executed whenever its block is.
    """

    reads: tuple[str, ...]
    writes: tuple[str, ...]
    operations: Way
    is_sure: bool


@dataclass(frozen=True)
class _Way:
    """A way that values went: the operations of its last step, and the way before it."""

    length: int = 0
    operations: Way = field(default_factory=Counter)
    before: _Way | None = None

    def whole(self) -> Way:
        found: Way = Counter()
        at: _Way | None = self
        while at is not None:
            found += at.operations
            at = at.before
        return found


def chains_of(code: Code, purposes: Purposes) -> Iterator[Chain]:
    """Iterates over the chains of a kernel's loops; what loops inside a loop do belongs to their own."""
    for loop in code.flow.loops:
        inner = [other for other in code.flow.loops if other.outer is loop]
        own = [number for number in sorted(loop.blocks) if not any(number in other.blocks for other in inner)]
        set_here = {
            name: number for number in own for each in code.flow.blocks[number].instructions for name in written(each)
        }
        steps = [_step(each, purposes) for number in own for each in code.flow.blocks[number].instructions]
        for register in sorted(code.dataflow.alive[loop.header] & set_here.keys()):
            way = _longest(steps, register).whole()
            if way:
                yield Chain(loop, set_here[register], way)


def _step(instruction: Instruction, purposes: Purposes) -> _Step:
    """Returns an instruction as a step; the multiply-adds of one product of matrices wait as one."""
    own = purposes.operations(instruction) if purposes.values(instruction) else {}
    operations = Counter(dict.fromkeys(own, 1) if instruction.opcode in PRODUCTS else own)
    return _Step(read(instruction), written(instruction), operations, instruction.guard is None)


def _longest(steps: list[_Step], register: str) -> _Way:
    """Returns the way with most operations from a register's value before an iteration to that after it."""
    ways: dict[str, _Way] = {register: _Way()}
    for step in steps:
        before = [ways[name] for name in step.reads if name in ways]
        if not before:
            if step.is_sure:
                for name in step.writes:
                    if name != register or name in ways:
                        ways.pop(name, None)
            continue
        way = max(before, key=lambda each: each.length)
        if step.operations:
            way = _Way(way.length + step.operations.total(), step.operations, way)
        for name in step.writes:
            ways[name] = way
    return ways.get(register, _Way())
