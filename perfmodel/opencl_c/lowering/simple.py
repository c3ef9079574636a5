"""What can be told of a syntax tree's expressions before they are lowered."""

from __future__ import annotations

from collections.abc import Callable

from perfmodel.opencl_c import syntax as syn
from perfmodel.opencl_c.lowering.builtin_names import WORK_ITEM
from perfmodel.opencl_c.types import Array, Pointer, Record, Scalar, Type, Vector, element_of


def is_simple(expression: syn.Expression, is_in_memory: Callable[[syn.Variable], bool]) -> bool:
    """Whether it may be evaluated though C would not: no memory is read, nothing is changed, nothing can fail."""
    match expression:
        case syn.Constant():
            return True
        case syn.Name():
            return not is_in_memory(expression.variable)
        case syn.Swizzle():
            return is_simple(expression.vector, is_in_memory)
        case syn.Unary() | syn.Convert():
            return is_simple(expression.operand, is_in_memory)
        case syn.Binary():
            if expression.operator in "/%" and not is_float(expression.type):
                return False
            return is_simple(expression.left, is_in_memory) and is_simple(expression.right, is_in_memory)
        case syn.Logical():
            return is_simple(expression.left, is_in_memory) and is_simple(expression.right, is_in_memory)
        case syn.Conditional():
            parts = (expression.condition, expression.then, expression.otherwise)
            return all(is_simple(part, is_in_memory) for part in parts)
        case syn.Shift():
            return is_simple(expression.pointer, is_in_memory) and is_simple(expression.index, is_in_memory)
        case syn.VectorLiteral():
            return all(is_simple(part, is_in_memory) for part in expression.parts)
        case syn.Decay(array=syn.Name()):
            return True
        case syn.BuiltinCall():
            if expression.name in WORK_ITEM or expression.name.startswith(("as_", "convert_")):
                return all(is_simple(argument, is_in_memory) for argument in expression.arguments)
            is_value = isinstance(expression.type, Scalar | Vector) and not any(
                isinstance(argument.type, Pointer) for argument in expression.arguments
            )
            return is_value and all(is_simple(argument, is_in_memory) for argument in expression.arguments)
    return False


def has_effects(node: object) -> bool:
    """Whether evaluating an expression changes anything."""
    if isinstance(node, syn.Assign | syn.CompoundAssign | syn.Increment | syn.Call):
        return True
    if isinstance(node, tuple):
        return any(map(has_effects, node))
    if isinstance(node, syn.BuiltinCall) and node.name.startswith(("atom", "v")):
        return True
    if not isinstance(node, syn.Node):
        return False
    parts = (getattr(node, field) for field in node.__dataclass_fields__ if field not in ("type", "place"))
    return any(map(has_effects, parts))


def alignment_of(expression: syn.Expression) -> int:
    """Of what an lvalue means: less than its type's within packed structs."""
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


def is_float(type_: Type) -> bool:
    return isinstance(type_, Scalar | Vector) and element_of(type_).is_float


def is_void(type_: Type) -> bool:
    return not isinstance(type_, Scalar | Vector | Pointer | Array | Record)
