"""Whole-number operations as GPUs have them: one instruction joins three inputs bit by bit, or adds up three numbers.

These are NVIDIA's LOP3 and IADD3, and AMD's V_AND_OR_B32, V_BFI_B32 and V_ADD3_U32; a funnel shift (SHF, V_ALIGNBIT)
takes 32 bits out of two numbers, or rotates one. What PTX has of that is found in
`perfmodel.ptx.counting.three_inputs`.
"""

from __future__ import annotations

from collections.abc import Hashable

from perfmodel.opencl_c import lowered as low
from perfmodel.opencl_c import walks
from perfmodel.opencl_c.types import BOOL, Scalar, Vector, element_of, is_float

BITS = 32
_SHIFTS = {"<<": 1, ">>": -1}


def is_logic(expression: low.Expression) -> bool:
    """Returns whether an expression joins whole numbers bit by bit."""
    if not isinstance(expression.type, Scalar | Vector) or expression.type == BOOL:
        return False
    if isinstance(expression, low.Unary):
        return expression.operator == "~"
    if isinstance(expression, low.Call):
        return expression.function == "bitselect" and not is_float(expression.type)
    return isinstance(expression, low.Binary) and expression.operator in ("&", "|", "^")


def inputs(expression: low.Expression) -> list[low.Expression]:
    """Returns what is joined bit by bit, from left to right, or the numbers of a funnel shift, one if it rotates."""
    if numbers := _funneled(expression):
        return numbers
    return [each for part in walks.parts(expression) for each in _joined(part)]


def _joined(expression: low.Expression) -> list[low.Expression]:
    """Returns what is joined bit by bit; a funnel shift's result as one."""
    if not is_logic(expression) or _funneled(expression):
        return [expression]
    return [each for part in walks.parts(expression) for each in _joined(part)]


def instructions(expression: low.Expression) -> dict[str, int]:
    """Returns the instructions that join the inputs of one number, by kind; each input counts once."""
    if _funneled(expression):
        return {"shift": 1}
    return {"bitwise": max(len({_key(each) for each in inputs(expression)}) // 2, 1)}


def rotates(expression: low.Expression) -> bool:
    """Returns whether an expression turns the bits of a number round: no index does, but what mixes bits, as hashes."""
    is_called = isinstance(expression, low.Call) and expression.function == "rotate"
    return is_called or len(_funneled(expression)) == 1


def sums(joins: int) -> int:
    """Returns how many instructions add up numbers that so many additions join."""
    return -(-joins // 2)


def _funneled(expression: low.Expression) -> list[low.Expression]:
    """Returns x and y of an expression such as ``(x << 5) | (y >> 27)``, once if they are one; nothing for others."""
    if not isinstance(expression, low.Binary) or expression.operator not in ("|", "^"):
        return []
    sides = [walks.unconverted(expression.left), walks.unconverted(expression.right)]
    if not all(isinstance(each, low.Binary) and each.operator in _SHIFTS for each in sides):
        return []
    first, second = (each for each in sides if isinstance(each, low.Binary))
    by = [walks.unconverted(each.right) for each in (first, second)]
    if (
        _SHIFTS[first.operator] + _SHIFTS[second.operator] != 0
        or element_of(first.type).size * 8 != BITS
        or not all(isinstance(each, low.Constant) for each in by)
        or sum(int(each.value) for each in by if isinstance(each, low.Constant)) != BITS
    ):
        return []
    return [first.left] if _key(first.left) == _key(second.left) else [first.left, second.left]


def _key(expression: low.Expression) -> Hashable:
    value = walks.unconverted(expression)
    if isinstance(value, low.Read):
        return value.register
    return ("number", value.value) if isinstance(value, low.Constant) else id(value)
