"""Finds quotients of whole numbers whose divisor another one has had: the assembler makes its reciprocal once, from
a float by the special-function unit, and of further quotients and remainders behind it products with it alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from perfmodel.ptx.dataflow import Dataflow
from perfmodel.ptx.syntax import Instruction, Register

PRODUCTS: Mapping[str, Mapping[str, int]] = {
    "uint32": {"madd": 2, "compare": 2, "add": 2},
    "int32": {"madd": 2, "compare": 3, "add": 3},
}
"""A further quotient or remainder of a type is so many operations, as ptxas 13.0 has instructions for it."""


def with_known_reciprocals(flow: Dataflow) -> Iterator[Instruction]:
    """Iterates over the quotients and remainders of 32 bits whose divisor has had one before, on all ways there."""
    known: dict[int | None, frozenset[tuple[str, str]]] = {None: frozenset()}
    waiting = [(block.number, block) for block in reversed(flow.flow.blocks)]
    while waiting:
        number, block = waiting.pop()
        above = flow.flow.dominators[number] if number != 0 else None
        if above not in known:
            waiting.insert(0, (number, block))
            continue
        here = set(known[above])
        for instruction in block.instructions:
            if instruction.opcode not in ("div", "rem") or instruction.types[-1].dtype not in PRODUCTS:
                continue
            divisor = instruction.operands[-1]
            if not isinstance(divisor, Register) or len(flow.definitions.get(divisor.name, ())) != 1:
                continue
            key = divisor.name, instruction.types[-1].dtype
            if key in here:
                yield instruction
            elif instruction.guard is None:
                here.add(key)
        known[number] = frozenset(here)
