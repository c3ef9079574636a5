"""Instructions by which the lanes of a warp, or the threads of a block, do something together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfmodel.basics.errors import EmulationError
from perfmodel.ptx.emulation.lanes import WARP, Mask
from perfmodel.ptx.emulation.registers import Registers
from perfmodel.ptx.syntax import Both, Instruction, Operand
from perfmodel.ptx.types import PREDICATE, TYPES

Step = Callable[[Mask], None]
_U32 = TYPES["u32"]
_LANE = np.arange(WARP)
_ALL = np.uint32(2**32 - 1)
_BIT = (np.uint32(1) << np.arange(WARP, dtype=np.uint32)).astype(np.uint32)


def together(instruction: Instruction, registers: Registers) -> Step | None:
    """Returns what lanes do together; None for an instruction that is none of these."""
    make = {
        "shfl": _shuffle,
        "vote": _vote,
        "match": _match,
        "redux": _reduce,
        "activemask": _active,
        "elect": _elect,
    }.get(instruction.opcode)
    if make is not None:
        return make(instruction, registers)
    if instruction.opcode in ("bar", "barrier") and instruction.has("red"):
        return _barrier_reduction(instruction, registers)
    return None


def _rows(value: Any, total: int) -> NDArray[Any]:
    """Returns values by warps and lanes."""
    return np.broadcast_to(value, (total,)).reshape(-1, WARP)


def _pair(operand: Operand) -> tuple[Operand, Operand | None]:
    return (operand.first, operand.second) if isinstance(operand, Both) else (operand, None)


def _shuffle(instruction: Instruction, registers: Registers) -> Step:
    total = registers.lanes.total
    to, is_there = _pair(instruction.operands[0])
    write = registers.writer(to, TYPES["b32"], instruction)
    write_there = None if is_there is None else registers.writer(is_there, PREDICATE, instruction)
    value, by, limits = (
        registers.reader(each, type_, instruction)
        for each, type_ in zip(instruction.operands[1:4], (TYPES["b32"], _U32, _U32), strict=True)
    )
    mode = next(m for m in instruction.modifiers if m != "sync")

    def shuffle(mask: Mask) -> None:
        moved = _rows(by(), total).astype(np.int64) & 31
        limit = _rows(limits(), total).astype(np.int64)
        clamp, segment = limit & 31, (limit >> 8) & 31
        most = (_LANE & segment) | (clamp & ~segment & 31)
        match mode:
            case "up":
                source = _LANE - moved
                holds = source >= most
            case "down":
                source = _LANE + moved
                holds = source <= most
            case "bfly":
                source = _LANE ^ moved
                holds = source <= most
            case _:
                source = (_LANE & segment) | (moved & ~segment & 31)
                holds = source <= most
        source = np.where(holds, source, _LANE)
        write(np.take_along_axis(_rows(value(), total), source, axis=1).reshape(-1), mask)
        if write_there is not None:
            write_there(np.broadcast_to(holds, source.shape).reshape(-1), mask)

    return shuffle


Companions = Callable[[Mask], NDArray[np.bool_]]


def _companions(operand: Operand | None, instruction: Instruction, registers: Registers) -> Companions:
    """Returns what tells which lanes do an instruction together: by warps, by lanes (one where all have the same), by
    the lanes beside them.

    Args:
        operand: the member mask; lanes that give different ones act on their own. All lanes that are there without it.
    """
    total = registers.lanes.total
    members = None if operand is None else registers.reader(operand, _U32, instruction)

    def companions(mask: Mask) -> NDArray[np.bool_]:
        active = mask.active.reshape(-1, WARP)
        given = None if members is None else _rows(members(), total)
        if given is None or (given[active] == _ALL).all():
            return np.asarray(active[:, None, :])
        named = (given[:, :, None] & _BIT) != 0
        return np.asarray(active[:, None, :] & named & (given[:, :, None] == given[:, None, :]))

    return companions


def _ballot(holds: NDArray[np.bool_]) -> NDArray[np.uint32]:
    """Returns the bits of the lanes, along the last axis, for which something holds."""
    return np.asarray(np.where(holds, _BIT, np.uint32(0)).sum(axis=-1, dtype=np.uint32))


def _each(found: NDArray[Any]) -> NDArray[Any]:
    """Returns what was found by warps, and by lanes or one for all of them, for each lane."""
    return np.broadcast_to(found, (len(found), WARP)).reshape(-1)


def _vote(instruction: Instruction, registers: Registers) -> Step:
    total = registers.lanes.total
    mode = next(m for m in instruction.modifiers if m != "sync")
    type_ = TYPES["b32"] if mode == "ballot" else PREDICATE
    write = registers.writer(instruction.operands[0], type_, instruction)
    predicate = registers.reader(instruction.operands[1], PREDICATE, instruction)
    companions = _companions(next(iter(instruction.operands[2:]), None), instruction, registers)

    def vote(mask: Mask) -> None:
        beside = companions(mask)
        holds = _rows(predicate(), total)[:, None, :]
        yes, no = beside & holds, beside & ~holds
        found: Any
        if mode == "ballot":
            found = _ballot(yes)
        elif mode == "any":
            found = yes.any(axis=-1)
        elif mode == "all":
            found = ~no.any(axis=-1)
        else:
            found = ~(yes.any(axis=-1) & no.any(axis=-1))
        write(_each(found), mask)

    return vote


def _match(instruction: Instruction, registers: Registers) -> Step:
    total = registers.lanes.total
    to, is_same = _pair(instruction.operands[0])
    write = registers.writer(to, TYPES["b32"], instruction)
    write_same = None if is_same is None else registers.writer(is_same, PREDICATE, instruction)
    value = registers.reader(instruction.operands[1], TYPES[f"b{instruction.types[-1].bits}"], instruction)
    companions = _companions(next(iter(instruction.operands[2:]), None), instruction, registers)

    def match(mask: Mask) -> None:
        beside = companions(mask)
        rows = _rows(value(), total)
        equal = rows[:, :, None] == rows[:, None, :]
        if instruction.has("any"):
            write(_each(_ballot(equal & beside)), mask)
            return
        same = (equal | ~beside).all(axis=-1)
        write(_each(np.where(same, _ballot(beside), np.uint32(0))), mask)
        if write_same is not None:
            write_same(_each(same), mask)

    return match


def _reduce(instruction: Instruction, registers: Registers) -> Step:
    total, type_ = registers.lanes.total, instruction.types[-1]
    write = registers.writer(instruction.operands[0], type_, instruction)
    value = registers.reader(instruction.operands[1], type_, instruction)
    name = next(m for m in instruction.modifiers if m != "sync")
    limits = np.iinfo(type_.numpy)
    joins: dict[str, tuple[Any, int]] = {
        "add": (np.add, 0),
        "min": (np.minimum, limits.max),
        "max": (np.maximum, limits.min),
        "and": (np.bitwise_and, -1 if type_.kind == "s" else limits.max),
        "or": (np.bitwise_or, 0),
        "xor": (np.bitwise_xor, 0),
    }
    join, neutral = joins[name]
    companions = _companions(next(iter(instruction.operands[2:]), None), instruction, registers)

    def reduce(mask: Mask) -> None:
        rows = np.where(companions(mask), _rows(value(), total)[:, None, :], type_.numpy.type(neutral))
        write(_each(join.reduce(rows, axis=-1, dtype=type_.numpy)), mask)

    return reduce


def _active(instruction: Instruction, registers: Registers) -> Step:
    write = registers.writer(instruction.operands[0], TYPES["b32"], instruction)

    def active(mask: Mask) -> None:
        write(_each(_ballot(mask.active.reshape(-1, 1, WARP))), mask)

    return active


def _elect(instruction: Instruction, registers: Registers) -> Step:
    to, is_leader = _pair(instruction.operands[0])
    write = registers.writer(to, TYPES["b32"], instruction)
    write_leader = None if is_leader is None else registers.writer(is_leader, PREDICATE, instruction)
    companions = _companions(next(iter(instruction.operands[1:]), None), instruction, registers)

    def elect(mask: Mask) -> None:
        leader = companions(mask).argmax(axis=-1)
        write(_each(leader.astype(np.uint32)), mask)
        if write_leader is not None:
            write_leader(_each(leader) == np.tile(_LANE, len(leader)), mask)

    return elect


def _barrier_reduction(instruction: Instruction, registers: Registers) -> Step:
    lanes = registers.lanes
    is_count = instruction.has("popc")
    write = registers.writer(instruction.operands[0], TYPES["u32"] if is_count else PREDICATE, instruction)
    predicate = registers.reader(instruction.operands[-1], PREDICATE, instruction)
    if not is_count and not instruction.has("and", "or"):
        raise EmulationError(f"line {instruction.line} of the PTX has a barrier that is not known: {instruction.name}")

    def reduce(mask: Mask) -> None:
        active = mask.active.reshape(lanes.count, -1)
        holds = np.broadcast_to(predicate(), (lanes.total,)).reshape(lanes.count, -1)
        yes = active & holds
        found: Any
        if is_count:
            found = np.count_nonzero(yes, axis=1).astype(np.uint32)
        elif instruction.has("or"):
            found = yes.any(axis=1)
        else:
            found = ~(active & ~holds).any(axis=1)
        write(np.repeat(found, lanes.per_block), mask)

    return reduce
