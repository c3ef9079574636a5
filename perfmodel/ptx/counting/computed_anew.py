"""Finds what loops compute anew in each iteration: what does not move by a step, as counters and places do."""

from __future__ import annotations

from perfmodel.basics.graphs import reached
from perfmodel.ptx.code import Code
from perfmodel.ptx.control_flow import Loop
from perfmodel.ptx.dataflow import ACCESSING, read, registers_in, written
from perfmodel.ptx.syntax import Instruction

_SUMS = frozenset(("add", "sub", "mov", "cvt", "cvta", "neg"))
_PRODUCTS = frozenset(("mul", "mad", "mul24", "mad24", "shl"))


def computed_anew(code: Code) -> frozenset[Instruction]:
    """Returns the arithmetic of loops whose results do not move by a step from iteration to iteration, so that no
    compiler makes counters of them."""
    return frozenset(each for loop in code.flow.loops for each in _of_loop(code, loop))


def beside_ends(code: Code) -> frozenset[Instruction]:
    """Returns what loops compute in each iteration, but for what the end of a loop of one block follows from, as the
    assembler writes such loops out and has one end for all copies."""
    return frozenset(each for loop in code.flow.loops for each in _beside_end(code, loop))


def _beside_end(code: Code, loop: Loop) -> list[Instruction]:
    guard = code.flow.blocks[loop.header].guard if len(loop.blocks) == 1 else None
    ends = () if guard is None else code.dataflow.behind((guard.register.name,))
    return [each for each in _own_that_write(code, loop, _varying(code, loop)) if each not in ends]


def _of_loop(code: Code, loop: Loop) -> list[Instruction]:
    inside, varying = _inside(code, loop), _varying(code, loop)
    anew = _with_what_follows(
        inside, {name for each in inside if not _is_linear(each, varying) for name in written(each)} & varying
    )
    return _own_that_write(code, loop, anew)


def _own_that_write(code: Code, loop: Loop, names: set[str]) -> list[Instruction]:
    """Returns the arithmetic of a loop, without that of loops within it, whose results are in some registers."""
    own = (number for number in sorted(loop.blocks) if code.flow.around(number)[-1] is loop)
    found = (each for number in own for each in code.flow.blocks[number].instructions)
    return [each for each in found if each.opcode not in ACCESSING and names.intersection(written(each))]


def _inside(code: Code, loop: Loop) -> list[Instruction]:
    return [each for number in sorted(loop.blocks) for each in code.flow.blocks[number].instructions]


def _varying(code: Code, loop: Loop) -> set[str]:
    """Returns the registers of a loop that follow from what its iterations carry on."""
    inside = _inside(code, loop)
    return _with_what_follows(inside, code.dataflow.alive[loop.header] & {n for each in inside for n in written(each)})


def _with_what_follows(inside: list[Instruction], names: frozenset[str] | set[str]) -> set[str]:
    """Returns registers of a loop with those that are computed of them in the same iteration."""
    following: dict[str, list[str]] = {}
    for each in inside:
        for name in read(each):
            following.setdefault(name, []).extend(written(each))
    return reached(names, lambda name: following.get(name, ()))


def _is_linear(instruction: Instruction, varying: set[str]) -> bool:
    """Returns whether a result moves by a step if what it is computed of does."""
    if instruction.opcode in _SUMS:
        return True
    moving = [any(name in varying for name in registers_in(operand)) for operand in instruction.operands[1:]]
    if not any(moving):
        return True
    return instruction.opcode in _PRODUCTS and not instruction.has("hi") and not (moving[0] and moving[1])
