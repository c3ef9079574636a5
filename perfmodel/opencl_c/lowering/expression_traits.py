"""These functions tell of a syntax tree's expressions what can be told before they are lowered."""

from __future__ import annotations

from collections.abc import Callable

from perfmodel.opencl_c import syntax as syn
from perfmodel.opencl_c.lowering.builtin_names import WORK_ITEM, CollectiveFunction
from perfmodel.opencl_c.types import Array, Pointer, Record, Scalar, Type, Vector, is_float
from perfmodel.opencl_c.visitor import children, walk

_PURE = (
    *(syn.Constant, syn.Swizzle, syn.Unary, syn.Convert, syn.Logical, syn.Conditional, syn.Shift),
    *(syn.VectorLiteral, syn.BuiltinCall),
)


def is_simple(expression: syn.Expression, is_in_memory: Callable[[syn.Variable], bool]) -> bool:
    """Returns whether it may be evaluated though C would not: nothing is read from memory, changed, or can fail."""
    while isinstance(expression, syn.Binary) and (expression.operator not in "/%" or is_float(expression.type)):
        if not is_simple(expression.right, is_in_memory):
            return False
        expression = expression.left
    match expression:
        case syn.Name():
            return not is_in_memory(expression.variable)
        case syn.Decay():
            return isinstance(expression.array, syn.Name)
        case syn.BuiltinCall() if not _is_of_values(expression):
            return False
    return isinstance(expression, _PURE) and all(is_simple(part, is_in_memory) for part in children(expression))


def _is_of_values(call: syn.BuiltinCall) -> bool:
    """Returns whether a built-in function neither reads memory nor does more than return a value."""
    if call.name in WORK_ITEM or call.name.startswith(("as_", "convert_")):
        return True
    if CollectiveFunction.of(call.name) or "_image" in call.name:
        return False
    has_pointer = any(isinstance(argument.type, Pointer) for argument in call.arguments)
    return isinstance(call.type, Scalar | Vector) and not has_pointer


def has_effects(expression: syn.Expression) -> bool:
    """Returns whether evaluating an expression changes anything."""
    return any(
        isinstance(part, syn.Assign | syn.CompoundAssign | syn.Increment | syn.Call | syn.Block)
        or (isinstance(part, syn.BuiltinCall) and part.name.startswith(("atom", "v", "write_image")))
        for part in walk(expression)
    )


def alignment_of(expression: syn.Expression) -> int:
    """Returns the alignment of what an lvalue means: less than its type's within packed structs."""
    match expression:
        case syn.Member():
            return min(expression.type.alignment, alignment_of(expression.record))
        case syn.Dereference():
            pointer = expression.pointer
            while isinstance(pointer, syn.Shift):
                pointer = pointer.pointer
            if isinstance(pointer, syn.Decay):
                return min(expression.type.alignment, alignment_of(pointer.array))
    return expression.type.alignment


def is_lvalue(expression: syn.Expression) -> bool:
    while isinstance(expression, syn.Swizzle):
        expression = expression.vector
    return isinstance(expression, syn.Name | syn.Dereference | syn.Member)


def is_void(type_: Type) -> bool:
    return not isinstance(type_, Scalar | Vector | Pointer | Array | Record)
