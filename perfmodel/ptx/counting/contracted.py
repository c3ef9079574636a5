"""Finds products that the assembler makes one multiply-add with what adds or subtracts them: compilers leave to it what
has no rounding of its own, such as ``a * b - c``."""

from __future__ import annotations

from perfmodel.ptx.dataflow import Dataflow, read, written
from perfmodel.ptx.syntax import Instruction

_ROUNDED = ("rn", "rz", "rm", "rp", "sat")


def contracted(flow: Dataflow) -> dict[Instruction, Instruction]:
    """Returns products of floats that one sum alone reads, in the same basic block, by this sum."""
    found: dict[Instruction, Instruction] = {}
    for block in flow.flow.blocks:
        makers: dict[str, Instruction] = {}
        for instruction in block.instructions:
            if _is_open(instruction, "add", "sub"):
                terms = read(instruction)
                alone = [n for n in terms if n in makers and len(flow.uses[n]) == 1 and terms.count(n) == 1]
                product = next((makers[name] for name in alone if _is_like(makers[name], instruction)), None)
                if product is not None:
                    found[instruction] = product
            for name in written(instruction):
                makers.pop(name, None)
                if _is_open(instruction, "mul"):
                    makers[name] = instruction
    return found


def _is_open(instruction: Instruction, *opcodes: str) -> bool:
    """Returns whether it is one of these, of floats, and leaves it to the assembler how it is rounded."""
    return (
        instruction.opcode in opcodes
        and instruction.types[-1].is_float
        and instruction.guard is None
        and not instruction.has(*_ROUNDED)
    )


def _is_like(product: Instruction, total: Instruction) -> bool:
    return product.types[-1] == total.types[-1] and product.has("ftz") == total.has("ftz")
