"""Instructions that each lane executes by itself, from registers to registers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from perfmodel.basics.errors import EmulationError
from perfmodel.ptx.dataflow import CARRY
from perfmodel.ptx.emulation import conversions, floats, integers, videos
from perfmodel.ptx.emulation.lanes import Mask
from perfmodel.ptx.emulation.memory import GLOBAL, LOCAL, SHARED
from perfmodel.ptx.emulation.registers import Registers
from perfmodel.ptx.syntax import Both, Immediate, Instruction, Operand, Vector
from perfmodel.ptx.types import PREDICATE, TYPES, Type

Step = Callable[[Mask], None]
WIDE = {"s16": "s32", "u16": "u32", "s32": "s64", "u32": "u64"}
_U32 = TYPES["u32"]


def elementwise(instruction: Instruction, registers: Registers) -> Step | None:
    """Returns what an instruction does to some lanes; None for one that is no matter of each lane by itself."""
    special = _SPECIAL.get(instruction.opcode)
    if special is not None:
        return special(instruction, registers)
    if not instruction.types:
        return None
    if instruction.has("cc") or instruction.opcode in ("addc", "subc", "madc"):
        return _with_carry(instruction, registers)
    found = _function(instruction)
    if found is None:
        return None
    compute, types, result = found
    return _step(instruction, registers, compute, types, result)


def _step(
    instruction: Instruction, registers: Registers, compute: Callable[..., Any], types: list[Type], result: Type
) -> Step:
    if len(instruction.operands) != len(types) + 1:
        raise EmulationError(
            f"line {instruction.line} of the PTX gives {instruction.name!r} {len(instruction.operands)} operands, "
            f"which takes {len(types) + 1}"
        )
    write = registers.writer(instruction.operands[0], result, instruction)
    reads = [registers.reader(o, t, instruction) for o, t in zip(instruction.operands[1:], types, strict=True)]
    match reads:
        case [first]:

            def one(mask: Mask) -> None:
                write(compute(first()), mask)

            return one
        case [first, second]:

            def two(mask: Mask) -> None:
                write(compute(first(), second()), mask)

            return two

    def several(mask: Mask) -> None:
        write(compute(*(read() for read in reads)), mask)

    return several


def _function(instruction: Instruction) -> tuple[Callable[..., Any], list[Type], Type] | None:
    """Returns what an instruction computes, the types of its operands and of its result."""
    opcode, type_ = instruction.opcode, instruction.types[-1]
    if opcode == "testp":
        return floats.tested(instruction), [type_], PREDICATE
    if type_.is_float:
        compute = floats.of_floats(instruction)
        if compute is not None:
            arity = 3 if opcode in ("fma", "mad") else 2 if opcode in _BINARY else 1
            return compute, [type_] * arity, type_
    elif opcode in ("mad", "mad24"):
        product = integers.multiplied(instruction if opcode == "mad" else replace(instruction, opcode="mul24"))
        wide = TYPES[WIDE[type_.name]] if instruction.has("wide") else type_
        return (lambda a, b, c: np.add(product(a, b), c)), [type_, type_, wide], wide
    else:
        compute = integers.binary(instruction)
        if compute is not None:
            wide = TYPES[WIDE[type_.name]] if instruction.has("wide") else type_
            return compute, [type_, type_], wide
        compute = integers.unary(instruction)
        if compute is not None:
            result = _U32 if opcode in ("popc", "clz", "bfind") else type_
            return compute, [type_], result
    match opcode:
        case "shl" | "shr":
            return integers.shifted(instruction), [type_, _U32], type_
        case "shf":
            return integers.funnel(instruction), [_U32, _U32, _U32], _U32
        case "vshl" | "vshr" if len(instruction.types) == 3:
            to, source, _ = instruction.types
            return integers.shifted_with(instruction), [source, _U32, to][: len(instruction.operands) - 1], to
        case "bfe":
            return integers.extracted(type_), [type_, _U32, _U32], type_
        case "bfi":
            return integers.inserted(type_), [type_, type_, _U32, _U32], type_
        case "prmt":
            return integers.permuted(instruction), [_U32, _U32, _U32], _U32
        case "sad":
            return (lambda a, b, c: np.where(a < b, b - a, a - b) + c), [type_] * 3, type_
        case "dp4a" if len(instruction.types) == 2:
            signs = (instruction.types[0].kind, instruction.types[1].kind)
            return integers.dot(signs), [_U32, _U32, TYPES["s32"]], TYPES["s32"]
        case "dp2a" if len(instruction.types) == 2:
            signs = (instruction.types[0].kind, instruction.types[1].kind)
            halves = integers.dot(signs, bits=16, first=2 if instruction.has("hi") else 0)
            return halves, [_U32, _U32, TYPES["s32"]], TYPES["s32"]
        case "selp":
            return (lambda a, b, p: np.where(p, a, b)), [type_, type_, PREDICATE], type_
        case "slct" if len(instruction.types) == 2:
            first = instruction.types[0]
            return (lambda a, b, c: np.where(c >= 0, a, b)), [first, first, type_], first
    return videos.video(instruction)


_BINARY = frozenset(("add", "sub", "mul", "div", "min", "max", "copysign"))


def _move(instruction: Instruction, registers: Registers) -> Step:
    """Returns a move, also one that packs registers into a wider one or takes one apart."""
    type_ = instruction.types[-1]
    to, source = _operands(instruction, 2)
    if isinstance(source, Vector):
        return _packed(instruction, registers, to, source, type_)
    if isinstance(to, Vector):
        return _unpacked(instruction, registers, to, source, type_)
    read, write = registers.reader(source, type_, instruction), registers.writer(to, type_, instruction)

    def move(mask: Mask) -> None:
        write(read(), mask)

    return move


def _packed(instruction: Instruction, registers: Registers, to: Operand, source: Vector, type_: Type) -> Step:
    part = _part(instruction, type_, source)
    reads = [registers.reader(item, part, instruction) for item in source.items]
    whole = TYPES[f"b{type_.bits}"]
    write = registers.writer(to, whole, instruction)

    def pack(mask: Mask) -> None:
        found = np.zeros((), whole.raw)
        for place, read in enumerate(reads):
            found = found | (read().astype(whole.raw) << whole.raw.type(place * part.bits))
        write(found, mask)

    return pack


def _unpacked(instruction: Instruction, registers: Registers, to: Vector, source: Operand, type_: Type) -> Step:
    part = _part(instruction, type_, to)
    whole = TYPES[f"b{type_.bits}"]
    read = registers.reader(source, whole, instruction)
    writes = [registers.writer(item, part, instruction) for item in to.items]

    def unpack(mask: Mask) -> None:
        value = read()
        for place, write in enumerate(writes):
            write((value >> whole.raw.type(place * part.bits)).astype(part.raw), mask)

    return unpack


def _part(instruction: Instruction, type_: Type, vector: Vector) -> Type:
    name = f"b{type_.bits // max(len(vector.items), 1)}"
    if name not in TYPES:
        raise EmulationError(f"line {instruction.line} of the PTX packs {len(vector.items)} parts in {type_.name}")
    return TYPES[name]


def _convert(instruction: Instruction, registers: Registers) -> Step:
    to = instruction.types[0]
    if to.lanes == 2 and len(instruction.operands) == 3:  # two floats become one register of halves
        source = instruction.types[-1]
        narrowed = conversions.narrowed(instruction, to)
        high, low = (registers.reader(each, source, instruction) for each in instruction.operands[1:])
        write = registers.writer(instruction.operands[0], to, instruction)

        def both(mask: Mask) -> None:
            pair = np.broadcast_arrays(low(), high())
            write(np.stack([np.atleast_1d(narrowed(each)) for each in pair], axis=-1), mask)

        return both
    compute = conversions.converted(instruction)
    if compute is None:
        raise EmulationError(
            f"line {instruction.line} of the PTX has a conversion that is not known: {instruction.name}"
        )
    return _step(instruction, registers, compute, [instruction.types[-1]], to)


def _compare(instruction: Instruction, registers: Registers) -> Step:
    """Returns a comparison, whose result may be joined with another predicate, and be given twice."""
    is_set = instruction.opcode == "set"
    type_ = instruction.types[-1]
    to, first, second, *others = instruction.operands
    a, b = (registers.reader(each, type_, instruction) for each in (first, second))
    compare, join = conversions.compared(instruction, type_), conversions.joined(instruction)
    other = registers.reader(others[0], PREDICATE, instruction) if others and join is not None else None
    if is_set:
        result = instruction.types[0]
        write = registers.writer(to, result, instruction)
        yes = result.numpy.type(1) if result.is_float else np.uint64(2**64 - 1).astype(result.raw).view(result.numpy)

        def set_(mask: Mask) -> None:
            holds = compare(a(), b())
            if join is not None and other is not None:
                holds = join(holds, other())
            write(np.where(holds, yes, result.numpy.type(0)), mask)

        return set_
    pair = (to.first, to.second) if isinstance(to, Both) else (to, None)
    write = registers.writer(pair[0], PREDICATE, instruction)
    opposite = None if pair[1] is None else registers.writer(pair[1], PREDICATE, instruction)

    def test(mask: Mask) -> None:
        holds = compare(a(), b())
        if opposite is not None:
            rest = np.logical_not(holds)
            opposite(rest if join is None or other is None else join(rest, other()), mask)
        write(holds if join is None or other is None else join(holds, other()), mask)

    return test


def _to_generic(instruction: Instruction, registers: Registers) -> Step:
    """Returns the conversion of an address between a window and the flat space."""
    window = np.uint64(SHARED if instruction.has("shared", "shared::cta") else LOCAL if instruction.has("local") else 0)
    type_ = TYPES["u64"]
    if instruction.has("param", "param::entry") and not instruction.has("to"):  # which may be given with 32 bits
        in_flat = np.uint64(GLOBAL)
        return _step(instruction, registers, lambda a: np.where(a < in_flat, a + in_flat, a), [type_], type_)
    if instruction.has("to"):
        return _step(instruction, registers, lambda a: a - window, [type_], type_)
    return _step(instruction, registers, lambda a: a + window, [type_], type_)


def _is_in_space(instruction: Instruction, registers: Registers) -> Step:
    window = SHARED if instruction.has("shared", "shared::cta") else LOCAL if instruction.has("local") else 0
    top = np.uint64(window >> 32)

    def is_there(a: Any) -> Any:
        high = a >> np.uint64(32)
        return high == top if window else high < np.uint64(SHARED >> 32)

    return _step(instruction, registers, is_there, [TYPES["u64"]], PREDICATE)


def _logic(instruction: Instruction, registers: Registers) -> Step:
    *operands, table = instruction.operands
    if not isinstance(table, Immediate):
        raise EmulationError(f"line {instruction.line} of the PTX has a lop3 without its table")
    plain = replace(instruction, modifiers=(), operands=tuple(operands))
    return _step(plain, registers, integers.logic(int(table.value)), [_bits(instruction)] * 3, _bits(instruction))


def _bits(instruction: Instruction) -> Type:
    return instruction.types[-1]


def _with_carry(instruction: Instruction, registers: Registers) -> Step:
    """Returns an addition, subtraction or multiply-add that takes a carry, leaves one, or both."""
    type_ = TYPES[f"u{instruction.types[-1].bits}"]
    carry = registers.reader_of_carry()
    leave = registers.write_to(CARRY, _U32, instruction.guard is not None)
    write = registers.writer(instruction.operands[0], type_, instruction)
    takes = instruction.opcode in ("addc", "subc", "madc")
    is_difference = instruction.opcode in ("sub", "subc")
    own = instruction.types[-1]
    types = [own] * (len(instruction.operands) - 1)
    reads = [registers.reader(o, t, instruction) for o, t in zip(instruction.operands[1:], types, strict=True)]
    product = integers.multiplied(instruction) if len(reads) == 3 else None

    def run(mask: Mask) -> None:
        values = [read() for read in reads]
        if product is not None:
            values = [product(values[0], values[1]), values[2]]
        a, b = (value.astype(type_.raw) for value in values)
        extra = carry().astype(type_.raw) if takes else type_.raw.type(0)
        if is_difference:
            found = a - b - extra
            out = (a < b) | ((a == b) & (extra > 0))
        else:
            found = a + b + extra
            out = (found < a) | ((found == a) & (extra > 0) & (b > 0))
        write(found, mask)
        if instruction.has("cc"):
            leave(out.astype(np.uint32), mask)

    return run


def _operands(instruction: Instruction, count: int) -> tuple[Operand, ...]:
    if len(instruction.operands) != count:
        raise EmulationError(
            f"line {instruction.line} of the PTX gives {instruction.name!r} {len(instruction.operands)} operands, "
            f"which takes {count}"
        )
    return instruction.operands


_SPECIAL: dict[str, Callable[[Instruction, Registers], Step]] = {
    "mov": _move,
    "cvt": _convert,
    "setp": _compare,
    "set": _compare,
    "cvta": _to_generic,
    "isspacep": _is_in_space,
    "lop3": _logic,
}
