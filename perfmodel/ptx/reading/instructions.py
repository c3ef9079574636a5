"""Reads instructions with their guards and operands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from perfmodel.ptx.dataflow import IMAGES
from perfmodel.ptx.reading.cursor import Cursor
from perfmodel.ptx.reading.opcodes import parts_of
from perfmodel.ptx.syntax import (
    Address,
    Both,
    Guard,
    Immediate,
    Instruction,
    Negated,
    Operand,
    Register,
    Sink,
    Source,
    Special,
    Symbol,
    Vector,
)

SPECIAL = frozenset(
    (
        *(f"%{name}.{axis}" for name in ("tid", "ntid", "ctaid", "nctaid") for axis in "xyz"),
        *(f"%cluster_{name}.{axis}" for name in ("ctaid", "nctaid") for axis in "xyz"),
        *("%laneid", "%warpid", "%nwarpid", "%smid", "%nsmid", "%gridid", "%clock", "%clock_hi", "%clock64"),
        *("%globaltimer", "%globaltimer_lo", "%globaltimer_hi", "%dynamic_smem_size", "%total_smem_size"),
        *(f"%lanemask_{relation}" for relation in ("eq", "lt", "le", "gt", "ge")),
        *("%cluster_ctarank", "%cluster_nctarank", "%clusterid.x", "%nclusterid.x"),
    )
)
"""The special registers that are known."""
_REFUSED = {"sured": "atomics in surfaces"}
"""Instructions for images that are not emulated, by their first words."""
_HINT = "L2::cache_hint"
"""Instructions with this word have a policy of caches as their last operand."""
_BULK = ("cp.async.bulk", "cp.reduce.async.bulk")
"""Copies of tiles know themselves which of their operands is a policy."""


def read_instruction(cursor: Cursor, registers: Mapping[str, str], source: Source | None) -> Instruction:
    """Reads one instruction with its semicolon.

    Args:
        registers: those that are declared, by the names that they have in these braces.
        source: where the instruction comes from.

    Raises:
        SourceError: for one that is not known, with its name and line.
    """
    line = cursor.now.line
    guard = None
    if cursor.takes("@"):
        is_negated = cursor.takes("!")
        guard = Guard(_register(cursor, registers), is_negated)
    text = cursor.word("an instruction")
    parts = parts_of(text)
    if images := _REFUSED.get(text.partition(".")[0]):
        cursor.fail(f"the instruction {text!r} is for {images}, which are not emulated; give the kernel an array", line)
    if isinstance(parts, str):
        which = f"instruction {text!r}" if not parts.startswith(".") else f"word {parts!r} of instruction {text!r}"
        cursor.fail(f"the {which} is not understood; docs/cuda.md says what is", line)
    opcode, modifiers, types = parts
    operands: list[Operand] = []
    while not cursor.sees(";"):
        operands.append(_operand(cursor, registers))
        if not cursor.takes(","):
            break
    cursor.expects(";")
    if opcode == "createpolicy":  # says which lines caches keep, which changes nothing that is computed
        opcode, modifiers, operands = "mov", (), [*operands[:1], Immediate(0)]
    elif opcode in IMAGES:  # which lie in global memory; an access's last type is that of what it moves
        modifiers, types = (*modifiers, "global"), types[::-1]
    elif _HINT in modifiers and not opcode.startswith(_BULK):
        modifiers, operands = tuple(each for each in modifiers if each != _HINT), operands[:-1]
    return Instruction(
        opcode=opcode, modifiers=modifiers, types=types, operands=tuple(operands), line=line, guard=guard, source=source
    )


def _register(cursor: Cursor, registers: Mapping[str, str]) -> Register:
    name = cursor.word("a register")
    if name not in registers:
        cursor.fail(f"register {name!r} is not declared")
    return Register(registers[name])


def _operand(cursor: Cursor, registers: Mapping[str, str]) -> Operand:
    if cursor.takes("["):
        return _address(cursor, registers)
    if cursor.takes("!"):
        return Negated(_register(cursor, registers))
    for opening, closing in (("{", "}"), ("(", ")")):
        if cursor.takes(opening):
            items: list[Operand] = []
            while not cursor.sees(closing):
                items.append(_operand(cursor, registers))
                if not cursor.takes(","):
                    break
            cursor.expects(closing)
            return Vector(tuple(items))
    first = _simple(cursor, registers)
    return Both(first, _simple(cursor, registers)) if cursor.takes("|") else first


def _simple(cursor: Cursor, registers: Mapping[str, str]) -> Operand:
    is_negative = cursor.takes("-")
    if is_negative or cursor.now.kind == "number":
        number = cursor.number("an operand")
        return Immediate(-number.value, number.bits) if is_negative else number
    word = cursor.word("an operand")
    if word == "_":
        return Sink()
    if word in registers:
        return Register(registers[word])
    if word in SPECIAL:
        return Special(word)
    if word == "WARP_SZ":
        return Immediate(32)
    if word.startswith("%envreg"):
        cursor.fail(f"blocks that wait for all others (grid.sync(), {word!r}) are not emulated")
    if word.startswith("%"):
        cursor.fail(f"register {word!r} is not declared, and no special register that is understood")
    offset = 0
    if cursor.takes("+"):
        offset = cursor.whole("an offset")
    return Symbol(word, offset)


def _address(cursor: Cursor, registers: Mapping[str, str]) -> Address:
    if cursor.now.kind == "number":
        found = Address(None, cursor.whole("an address"))
    else:
        word = cursor.word("an address")
        if word.startswith("%") and word not in registers:
            cursor.fail(f"register {word!r} is not declared")
        offset = 0
        if cursor.takes("+") or cursor.sees("-"):
            offset = cursor.whole("an offset")
        found = Address(Register(registers[word]) if word in registers else Symbol(word), offset)
    if cursor.takes(","):
        coordinates = _operand(cursor, registers)
        if not isinstance(coordinates, Vector):
            cursor.fail("coordinates in a tensor are not in braces")
        found = replace(found, coordinates=coordinates.items)
    cursor.expects("]")
    return found
