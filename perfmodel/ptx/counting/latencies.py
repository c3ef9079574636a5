"""Says how long an instruction takes before the next one has its result, in simple operations on floats."""

from __future__ import annotations

from perfmodel.counting.waits import LATENCIES
from perfmodel.ptx.counting.operations import is_multiplied
from perfmodel.ptx.syntax import Instruction

CONDITION = 2
"""A branch, or an instruction under a predicate, waits for a comparison as long as for so many more operations: 13
cycles in all."""
SHUFFLE = 5
"""A value from another lane takes as long as so many operations (23 cycles, as from shared memory at best)."""
CONVERSION, OF_DOUBLES = 4, 2
"""The operations of 4 cycles each that some conversions take (an H200 19 from a float to a whole number or double, and
as many to round it), and sums and products of doubles (8.2)."""
_KINDS = {"ex2": "exp2", "lg2": "log2", "rcp": "div"}
"""Kinds of operations, by opcodes that have other names."""


def latency_of(instruction: Instruction) -> int:
    """Returns how many simple operations take as long as an operation on floats; 0 for other instructions."""
    if instruction.opcode == "cvt":
        return _conversion_latency(instruction)
    if instruction.opcode == "shfl":
        return SHUFFLE
    if not instruction.types or not instruction.types[-1].is_float or instruction.opcode in ("mov", "st"):
        return 0
    if is_multiplied(instruction):
        return 1
    simple = OF_DOUBLES if instruction.types[-1].bits == 64 else 1
    return LATENCIES.get(_KINDS.get(instruction.opcode, instruction.opcode), simple)


def _conversion_latency(instruction: Instruction) -> int:
    """Returns the same of a conversion: those that round to whole numbers, and those from and to doubles, are made by
    the special-function units, others where floats are added."""
    to, source = instruction.types[0], instruction.types[-1]
    if not to.is_float and not source.is_float:
        return 0
    is_rounded = source.is_float and (not to.is_float or to == source)
    return CONVERSION if is_rounded or 64 in (to.bits, source.bits) else 1
