"""Finds which low bits of registers an assembler knows: numbers of the text, not those of a launch, say them."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from perfmodel.ptx.dataflow import Dataflow, written
from perfmodel.ptx.syntax import Immediate, Instruction, Operand, Register, Symbol

MOST = 16
"""Bytes of the widest vector: no more of an address is asked for."""


class Known(NamedTuple):
    """Says that a number is `residue` more than a multiple of `modulus`, a power of two."""

    modulus: int
    residue: int


ANY = Known(1, 0)
_Values = Mapping[str, Known]


def alignment(flow: Dataflow, register: str) -> int:
    """Returns by how many bytes an assembler knows where an address lies: the largest power of two, up to those of the
    widest vector, over which what is left of it follows from the text alone.

    A row of 16 floats begins at a multiple of 16 bytes, one of `d` floats, where a launch says what `d` is, does not.
    """
    behind = flow.behind((register,))
    values: dict[str, Known] = {}
    changed = True
    while changed:  # a register's modulus only becomes smaller, so that this ends
        changed = False
        for instruction in behind:
            found = _result(instruction, values)
            if found is None:
                continue
            for name in written(instruction):
                before = values.get(name)
                is_one_of_several = len(flow.definitions[name]) > 1
                values[name] = _one_of([found, *([before] if before else [])]) if is_one_of_several else found
                changed |= values[name] != before
    return values.get(register, ANY).modulus


def _result(instruction: Instruction, values: _Values) -> Known | None:
    """Returns what is known of an instruction's result; None as long as an operand has no value yet."""
    done = _DONE.get(instruction.opcode)
    if done is None or any(type_.is_float for type_ in instruction.types) or instruction.has("hi", "cc"):
        return ANY
    operands = instruction.operands[1:]
    if instruction.opcode == "selp":
        operands = operands[:2]
    elif instruction.opcode == "shl":
        value, places = operands
        operands = value, Immediate(1 << int(places.value)) if isinstance(places, Immediate) else places
    own = [_value(operand, values) for operand in operands]
    known = [each for each in own if each is not None]
    return done(*known) if len(known) == len(own) else None


def _value(operand: Operand, values: _Values) -> Known | None:
    match operand:
        case Immediate(int(value)):
            return Known(MOST, value % MOST)
        case Symbol():
            return Known(MOST, operand.offset % MOST)
        case Register():
            return values.get(operand.name)
    return ANY


def _one_of(several: Iterable[Known]) -> Known:
    """Returns what is known of a number that is one of several, as a loop's counter is.

    NVIDIA's assembler only keeps the power of two of which all are multiples: a pointer that starts 8 bytes behind one
    of 16, and moves by 16, has loads of 8 bytes at most.
    """
    return Known(math.gcd(*(part for each in several for part in each)), 0)


def _sum(left: Known, right: Known) -> Known:
    modulus = min(left.modulus, right.modulus)
    return Known(modulus, (left.residue + right.residue) % modulus)


def _difference(left: Known, right: Known) -> Known:
    return _sum(left, Known(right.modulus, -right.residue % right.modulus))


def _product(left: Known, right: Known) -> Known:
    crossed = left.residue * right.modulus, right.residue * left.modulus, left.modulus * right.modulus
    modulus = math.gcd(MOST, *crossed)
    return Known(modulus, left.residue * right.residue % modulus)


def _bitwise(done: Callable[[int, int], int], deciding: int | None) -> Callable[[Known, Known], Known]:
    """Returns a bitwise operation; `deciding` is the bit that settles a result whatever the other one is."""

    def of(left: Known, right: Known) -> Known:
        bit = 1
        while bit < MOST:
            sides = [each.residue & bit != 0 for each in (left, right) if bit < each.modulus]
            if len(sides) < 2 and deciding not in sides:
                break
            bit *= 2
        return Known(bit, done(left.residue, right.residue) % bit)

    return of


def _same(value: Known, *_: Known) -> Known:
    return value


_DONE: Mapping[str, Callable[..., Known]] = {
    "mov": _same,
    "cvt": _same,
    "cvta": _same,
    "selp": lambda *either: _one_of(either),
    "add": _sum,
    "sub": _difference,
    "mul": _product,
    "mad": lambda left, right, added: _sum(_product(left, right), added),
    "shl": _product,
    "and": _bitwise(operator.and_, 0),
    "or": _bitwise(operator.or_, 1),
    "xor": _bitwise(operator.xor, None),
}
