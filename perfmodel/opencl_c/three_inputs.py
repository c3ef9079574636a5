"""Whole-number operations as GPUs have them: one instruction joins three inputs bit by bit, or adds up three numbers.

These are NVIDIA's LOP3 and IADD3, and AMD's V_AND_OR_B32, V_BFI_B32 and V_ADD3_U32; a funnel shift (SHF, V_ALIGNBIT)
rotates. What PTX has of that is found in `perfmodel.ptx.counting.three_inputs`.
"""

from __future__ import annotations

from collections.abc import Hashable

from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import walks
from perfmodel.opencl_c.types import BOOL, Scalar, Vector, element_of

BITS = 32
_SHIFTS = {"<<": 1, ">>": -1}


def is_logic(expression: low.Expression) -> bool:
    """Returns whether an expression joins whole numbers bit by bit."""
    if not isinstance(expression.type, Scalar | Vector) or expression.type == BOOL:
        return False
    if isinstance(expression, low.Unary):
        return expression.operator == "~"
    return isinstance(expression, low.Binary) and expression.operator in ("&", "|", "^")


def inputs(expression: low.Expression) -> list[low.Expression]:
    """Returns what is joined bit by bit, from left to right; a rotation of 32 bits as the number that is rotated."""
    if not is_logic(expression):
        return [expression]
    if rotated := _rotated(expression):
        return inputs(rotated)
    return [each for part in walks.parts(expression) for each in inputs(part)]


def instructions(expression: low.Expression) -> dict[str, int]:
    """Returns the instructions that join the inputs of one number, by kind; each input counts once."""
    different = len({_key(each) for each in inputs(expression)})
    rotations = _rotations(expression)
    joins = 0 if _rotated(expression) else max(different // 2, 1)
    return {kind: times for kind, times in (("bitwise", joins), ("shift", rotations)) if times}


def sums(joins: int) -> int:
    """Returns how many instructions add up numbers that so many additions join."""
    return -(-joins // 2)


def _rotations(expression: low.Expression) -> int:
    if not is_logic(expression):
        return 0
    if rotated := _rotated(expression):
        return 1 + _rotations(rotated)
    return sum(map(_rotations, walks.parts(expression)))


def _rotated(expression: low.Expression) -> low.Expression | None:
    """Returns x of an expression such as ``(x << 5) | (x >> 27)``."""
    if not isinstance(expression, low.Binary) or expression.operator not in ("|", "^"):
        return None
    sides = [walks.unconverted(expression.left), walks.unconverted(expression.right)]
    if not all(isinstance(each, low.Binary) and each.operator in _SHIFTS for each in sides):
        return None
    first, second = (each for each in sides if isinstance(each, low.Binary))
    by = [walks.unconverted(each.right) for each in (first, second)]
    if (
        _SHIFTS[first.operator] + _SHIFTS[second.operator] != 0
        or _key(first.left) != _key(second.left)
        or element_of(first.type).size * 8 != BITS
        or not all(isinstance(each, low.Constant) for each in by)
        or sum(int(each.value) for each in by if isinstance(each, low.Constant)) != BITS
    ):
        return None
    return first.left


def _key(expression: low.Expression) -> Hashable:
    value = walks.unconverted(expression)
    if isinstance(value, low.Read):
        return value.register
    return ("number", value.value) if isinstance(value, low.Constant) else id(value)
